//! Real Levee processes on emulated hosts: a registry, and sites in a community or alone.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use levee_vocab::ByteRate;

use super::LabError;
use super::network::{Host, Network};
use super::processor::Limit;
use crate::crowd::client::{Following, Habit, Visitor};
use crate::crowd::meter::Traffic;
use crate::crowd::names::Names;
use crate::demo::watch::{self, Seen};
use crate::processes::Process;

/// What a site has, by path.
pub type Files = BTreeMap<String, Bytes>;

/// A site that is to be started.
#[derive(Clone, Debug)]
pub struct SitePlan<'a> {
    /// Name of its host.
    pub host: &'a str,
    /// What it serves.
    pub files: &'a Files,
    /// B as its settings tell it; none for one that measures.
    pub link: Option<ByteRate>,
    /// U.
    pub usable: f64,
    /// Whether it has neighbours.
    pub company: Company,
    /// Further settings, as lines of its file.
    pub more: &'a str,
}

/// Whether a site has neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// It stands alone.
    Alone,
    /// It is a member of the community.
    Member,
}

impl Company {
    /// What the case of an experiment is called in which a site has this company.
    pub const fn case(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Member => "helped",
        }
    }
}

/// A running site. Dropped, it is stopped.
#[derive(Debug)]
pub struct Site {
    /// Its process.
    pub process: Process,
    /// Where its admin pages are.
    pub admin: SocketAddr,
    _limit: Option<Limit>,
}

/// Everything that runs on a network's hosts.
#[derive(Debug)]
pub struct Servers<'a> {
    network: &'a Network,
    levee: &'a Path,
    folder: PathBuf,
    owner: u32,
    registry: Option<Process>,
}

/// Port of the registry on its host.
pub const REGISTRY_PORT: u16 = 7070;
/// Port for calls for help.
pub const RESCUE_PORT: u16 = 7401;
/// Port of the admin pages, on the cable of the watch.
pub const ADMIN_PORT: u16 = 9100;
/// Domain of the sites: a name that nobody can own (RFC 2606).
pub const SITES: &str = "example";
/// Domain of their aliases: not theirs, as it should be.
pub const ALIASES: &str = "test";

impl<'a> Servers<'a> {
    /// Nothing runs yet; files go into `folder`.
    pub fn new(network: &'a Network, levee: &'a Path, folder: &Path, owner: u32) -> Self {
        Self {
            network,
            levee,
            folder: folder.to_owned(),
            owner,
            registry: None,
        }
    }

    /// Starts the registry on the host of that name.
    pub fn start_registry(&mut self) -> Result<(), LabError> {
        let host = self.network.host("registry");
        let listen = SocketAddr::from((host.address, REGISTRY_PORT)).to_string();
        let arguments = ["registry", "--listen", &listen, "--allow-private"];
        let registry = self.start_levee(host, &arguments.map(str::to_owned))?;
        self.registry = Some(registry);
        Ok(())
    }

    /// Starts a site and waits until it is ready.
    pub fn start(&self, plan: &SitePlan<'_>) -> Result<Site, LabError> {
        let home = self.home(plan.host);
        write(&home.join("public"), plan.files)?;
        let host = self.network.host(plan.host);
        self.start_site(host, &self.settings_of(plan, host))
    }

    /// The folder of a host: settings, and what is served from `public`.
    pub fn home(&self, host: &str) -> PathBuf {
        self.folder.join(host)
    }

    /// Starts a site with these settings, and waits until it is ready.
    pub fn start_site(&self, host: &Host, text: &str) -> Result<Site, LabError> {
        let settings = self.home(&host.plan.name).join("levee.toml");
        fs::write(&settings, text).map_err(LabError::machine("write settings"))?;
        let config = settings.display().to_string();
        let process = self.start_levee(host, &["serve".to_owned(), "-c".to_owned(), config])?;
        let limit = match host.plan.cpu {
            None => None,
            Some(share) => {
                let limit = Limit::new(self.owner, &host.plan.name, share)?;
                limit.hold(process.id())?;
                Some(limit)
            }
        };
        Ok(Site {
            process,
            admin: SocketAddr::from((host.watched_at, ADMIN_PORT)),
            _limit: limit,
        })
    }

    /// Starts `levee` with these arguments on `host`, and waits until it is ready.
    pub fn start_levee(&self, host: &Host, arguments: &[String]) -> Result<Process, LabError> {
        self.start_program((host, &host.plan.name), self.levee, arguments)
    }

    /// Starts a program of ours on a host under a name of its own, and waits until it is ready.
    pub fn start_program(
        &self,
        (host, name): (&Host, &str),
        program: &Path,
        arguments: &[String],
    ) -> Result<Process, LabError> {
        let ours = program.display().to_string();
        let [program, network, end] = host.runner();
        let mut words = vec![network, end, ours];
        words.extend_from_slice(arguments);
        let logs = &self.folder;
        fs::create_dir_all(logs).map_err(LabError::machine("make a folder for logs"))?;
        Ok(Process::start(name, Path::new(&program), &words, logs)?)
    }

    fn settings_of(&self, plan: &SitePlan<'_>, host: &Host) -> String {
        let name = plan.host;
        let link = plan.link.map_or_else(String::new, |rate| {
            let kilobytes = rate.as_bytes() as f64 / 1000.0;
            let usable = plan.usable * 100.0;
            format!("[link]\nrate = \"{kilobytes} kB/s\"\nusable = \"{usable} %\"\n\n")
        });
        let community = match plan.company {
            Company::Alone => String::new(),
            Company::Member => format!(
                "[community]\nregistry = \"{}:{REGISTRY_PORT}\"\n\
                 rescue_listen = \"{address}:{RESCUE_PORT}\"\naddress = \"{address}\"\n\
                 alias_domain = \"{name}.{ALIASES}\"\nalias_host = \"vh\"\n\
                 allow_private = true\n\n",
                self.network.host("registry").address,
                address = host.address,
            ),
        };
        format!(
            "# Written by `levee lab`.\n[site]\nname = \"{name}.{SITES}\"\n\
             listen = [\"{}:80\", \"{}:80\"]\nfolder = \"public\"\n\n{link}{community}\
             [admin]\nlisten = \"{}:{ADMIN_PORT}\"\n\n[state]\nfolder = \"state\"\n\n{}",
            host.address, host.watched_at, host.watched_at, plan.more
        )
    }
}

/// Names of all sites and aliases that visitors may be led to.
pub fn names(network: &Network) -> BTreeMap<String, IpAddr> {
    let hosts = network.hosts().iter();
    hosts
        .flat_map(|host| {
            let name = &host.plan.name;
            let address = IpAddr::V4(host.address);
            [SITES, ALIASES].map(|domain| (format!("{name}.{domain}"), address))
        })
        .collect()
}

/// As [`names`], by the cables of the watch.
pub fn names_of_watch(network: &Network) -> BTreeMap<String, IpAddr> {
    let hosts = network.hosts().iter();
    let alias = |host: &Host| {
        (
            format!("{}.{ALIASES}", host.plan.name),
            IpAddr::V4(host.watched_at),
        )
    };
    hosts.map(alias).collect()
}

/// Writes files below `folder`.
pub fn write(folder: &Path, files: &Files) -> Result<(), LabError> {
    for (path, body) in files {
        let file = folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().unwrap_or(folder))
            .and_then(|()| fs::write(file, body))
            .map_err(LabError::machine("write a site's files"))?;
    }
    Ok(())
}

impl Site {
    /// What it says of itself now; empty where it says nothing.
    pub async fn look(&self) -> Seen {
        look_at(self.admin).await.unwrap_or_default()
    }
}

/// What the site with these admin pages says of itself; none where it says nothing.
pub async fn look_at(admin: SocketAddr) -> Option<Seen> {
    watch::look(&watcher(admin), admin).await
}

/// Who looks at the admin pages there.
pub fn watcher(admin: SocketAddr) -> Visitor {
    let known = [("watched".to_owned(), admin.ip())];
    let visitor = Visitor::new(
        Traffic::since(Instant::now()),
        "levee-lab watch".to_owned(),
        Habit::OneRequestEach,
    );
    visitor.among(Names::Hosts(known.into()), Following::Follows)
}
