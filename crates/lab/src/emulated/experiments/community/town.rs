//! Everything that runs: the authority's desk, three registries, a name server, a certificate
//! authority, and seven sites.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::super::super::LabError;
use super::super::super::bench::{Bench, Form};
use super::super::super::certificate_authority::{CertificateAuthority, Face};
use super::super::super::name_server::NameServer;
use super::super::super::network::{Host, Network};
use super::super::super::servers::{
    ADMIN_PORT, ALIASES, Files, REGISTRY_PORT, RESCUE_PORT, SITES, Servers, Site, write,
};
use super::desk::{Desk, LIST, Role};
use super::eyes::Watched;
use super::{MALORY, NEWS, SHOP, TIMES_BOASTED};
use crate::processes::Process;

/// The registries, in the order in which every site asks them.
pub const REGISTRIES: [&str; 3] = ["registry1", "registry2", "registry3"];
/// Every site, those that help first.
pub const MEMBERS: [Member; 7] = [
    Member("alice", Part::Neighbour),
    Member("bob", Part::Neighbour),
    Member("carol", Part::Neighbour),
    Member("boaster", Part::Boaster),
    Member(MALORY, Part::Alterer),
    Member(NEWS, Part::Newspaper),
    Member(SHOP, Part::Shop),
];

/// A site: its host, and its part in the play.
#[derive(Clone, Copy, Debug)]
pub struct Member(pub &'static str, pub Part);

/// What a site does in the play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It helps, also by HTTPS.
    Neighbour,
    /// The same, but it says that its link is thicker than it is.
    Boaster,
    /// It helps, and alters a page.
    Alterer,
    /// It needs help, and has its name in BIND.
    Newspaper,
    /// It needs help, and its visitors come by HTTPS.
    Shop,
}

/// All that runs. Dropped, it is stopped.
#[derive(Debug)]
pub struct Town<'a> {
    network: &'a Network,
    servers: Servers<'a>,
    lab: PathBuf,
    form: Form,
    /// The authority of the community.
    pub desk: Desk,
    /// BIND.
    pub name_server: NameServer,
    authority: CertificateAuthority,
    registries: Vec<Option<Process>>,
    sites: Vec<Option<Site>>,
    face: Option<Process>,
    /// When the first site was started.
    pub began: Instant,
}

/// A process that is killed is gone at once; this is for a machine that is busy.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// A name that resolvers forget soon: the experiment is short.
const TTL: Duration = Duration::from_secs(1);

impl<'a> Town<'a> {
    /// Founds the community and starts everybody; the sites that need help come last.
    pub fn start(bench: &'a Bench, network: &'a Network, files: &Files) -> Result<Self, LabError> {
        let folder = bench.folder("town");
        let desk = Desk::found(&bench.levee, &folder.join("desk"))?;
        let servers = Servers::new(network, &bench.levee, &folder, bench.ground.owner);
        for Member(name, _) in MEMBERS {
            let home = servers.home(name);
            desk.add(&format!("{name}.{SITES}"), &home.join("state"), Role::Site)?;
            write(&home.join("public"), files)?;
        }
        for name in REGISTRIES {
            let state = servers.home(name).join("state");
            desk.add(&format!("{name}.{SITES}"), &state, Role::Registry)?;
        }
        let homes = [NEWS, SHOP].map(|name| (format!("{name}.{SITES}"), network.host(name)));
        let name_server = NameServer::start(
            network.host("nameserver"),
            &folder.join("nameserver"),
            (SITES, &homes),
            &[ALIASES],
        )?;
        let certificates = certify(&desk, network)?;
        let authority = start_authority(network, &folder, &certificates, &name_server)?;
        let mut town = Self {
            network,
            servers,
            lab: bench.lab.clone(),
            form: bench.form,
            desk,
            name_server,
            authority,
            registries: Vec::new(),
            sites: Vec::new(),
            face: None,
            began: Instant::now(),
        };
        for number in 0..REGISTRIES.len() {
            let registry = town.start_registry(number)?;
            town.registries.push(Some(registry));
        }
        town.began = Instant::now();
        for member in MEMBERS {
            let site = town.start_site(member)?;
            town.sites.push(Some(site));
        }
        Ok(town)
    }

    /// Whom to look at.
    pub fn watched(&self) -> Watched {
        let admin = |name: &&str| {
            let host = self.network.host(name);
            let at = SocketAddr::from((host.watched_at, ADMIN_PORT));
            ((*name).to_owned(), at)
        };
        Watched {
            registries: REGISTRIES.iter().map(admin).collect(),
            sites: MEMBERS.iter().map(|Member(name, _)| admin(name)).collect(),
        }
    }

    /// Files with the certificate authorities that visitors believe: pebble alone.
    pub fn believed(&self) -> Vec<PathBuf> {
        vec![self.authority.root.clone()]
    }

    /// File with the root of pebble's certificates.
    pub fn root(&self) -> &Path {
        &self.authority.root
    }

    /// The files of a site's visitors.
    pub fn files(&self, name: &str) -> PathBuf {
        self.servers.home(name).join("public")
    }

    /// Kills a registry, which has no time to say anything.
    pub fn kill_registry(&mut self, number: usize) -> Result<(), LabError> {
        match self.registries[number].take() {
            None => Ok(()),
            Some(process) => kill(process),
        }
    }

    /// Starts a registry again that was killed, with what it has on its disk.
    pub fn revive_registry(&mut self, number: usize) -> Result<(), LabError> {
        self.registries[number] = Some(self.start_registry(number)?);
        Ok(())
    }

    /// Host of a registry, to cut its link.
    pub fn registry_host(&self, number: usize) -> &'a Host {
        self.network.host(REGISTRIES[number])
    }

    /// Hands the newest member list to one registry.
    pub fn hand_list_to(&self, number: usize) -> Result<(), LabError> {
        let home = self.servers.home(REGISTRIES[number]);
        self.desk.hand_list_to(&home)
    }

    /// Kills a site.
    pub fn kill_site(&mut self, name: &str) -> Result<(), LabError> {
        match self.sites[number_of(name)].take() {
            None => Ok(()),
            Some(site) => kill(site.process),
        }
    }

    /// Starts a site again that was killed.
    pub fn revive_site(&mut self, name: &str) -> Result<(), LabError> {
        let number = number_of(name);
        self.sites[number] = Some(self.start_site(MEMBERS[number])?);
        Ok(())
    }

    /// Stops every site in good order, and waits until all are gone.
    pub fn stop_sites(&mut self) {
        for site in self.sites.iter_mut().flatten() {
            site.process.ask_to_stop();
        }
        // Each waits for its process.
        self.sites.iter_mut().for_each(|site| drop(site.take()));
    }

    fn start_registry(&self, number: usize) -> Result<Process, LabError> {
        let host = self.network.host(REGISTRIES[number]);
        let home = self.servers.home(REGISTRIES[number]);
        self.desk.hand_list_to(&home)?;
        let path = |name: &str| home.join(name).display().to_string();
        let mut words: Vec<String> = vec![
            "registry".to_owned(),
            "--listen".to_owned(),
            format!("{}:{REGISTRY_PORT}", host.address),
            "--admin".to_owned(),
            format!("{}:{ADMIN_PORT}", host.watched_at),
            "--allow-private".to_owned(),
            "--state".to_owned(),
            path("state"),
            "--members".to_owned(),
            path(LIST),
            "--authority".to_owned(),
            self.desk.authority.clone(),
        ];
        for address in self.registry_addresses() {
            words.extend(["--peer".to_owned(), address]);
        }
        self.servers.start_levee(host, &words)
    }

    fn registry_addresses(&self) -> [String; 3] {
        REGISTRIES.map(|name| format!("{}:{REGISTRY_PORT}", self.network.host(name).address))
    }

    fn start_site(&mut self, Member(name, part): Member) -> Result<Site, LabError> {
        let host = self.network.host(name);
        let site = self.servers.start_site(host, &self.settings(host, part)?)?;
        if part == Part::Alterer {
            let words = ["alter", "--listen", "", "--to", "127.0.0.1:80"].map(str::to_owned);
            let [alter, listen, _, to, behind] = words;
            let at = format!("{}:80", host.address);
            let words = [alter, listen, at, to, behind];
            let (place, lab) = ((host, "face"), &self.lab);
            self.face = Some(self.servers.start_program(place, lab, &words)?);
        }
        Ok(site)
    }

    fn settings(&self, host: &Host, part: Part) -> Result<String, LabError> {
        let name = &host.plan.name;
        let link = host.plan.link.map_or(0.0, |link| link.as_bytes() as f64);
        let (address, watched_at) = (host.address, host.watched_at);
        let listen = match part {
            Part::Alterer => "listen = [\"127.0.0.1:80\"]\nproxy_protocol = [\"127.0.0.1:80\"]\n\
                              trusted_proxies = [\"127.0.0.1\"]"
                .to_owned(),
            Part::Neighbour | Part::Boaster | Part::Newspaper | Part::Shop => {
                format!("listen = [\"{address}:80\"]")
            }
        };
        let told = match part {
            Part::Boaster => TIMES_BOASTED * link,
            Part::Neighbour | Part::Alterer | Part::Newspaper | Part::Shop => link,
        };
        let registries = self.registry_addresses().join("\", \"");
        let (looks, registered) = match self.form {
            Form::Full => ("500 ms", "3 s"),
            Form::Compressed => ("200 ms", "3 s"),
            Form::Shortest => ("50 ms", "1 s"),
        };
        Ok(format!(
            "# Written by `levee lab`.\n[site]\nname = \"{name}.{SITES}\"\n{listen}\n\
             folder = \"public\"\n\n[link]\nrate = \"{} kB/s\"\n\n[community]\n\
             registries = [\"{registries}\"]\nrescue_listen = \"{address}:{RESCUE_PORT}\"\n\
             address = \"{address}\"\nalias_domain = \"{name}.{ALIASES}\"\nalias_host = \"vh\"\n\
             allow_private = true\nauthority = \"{}\"\n\n[admin]\n\
             listen = \"{watched_at}:{ADMIN_PORT}\"\n\n[state]\nfolder = \"state\"\n\n\
             [rescue]\nregistry_period = \"{registered}\"\nobject_ttl = \"2 h\"\n\n\
             [integrity]\nsampling = \"{looks}\"\n\n{}{}",
            told / 1000.0,
            self.desk.authority,
            self.helps(part),
            self.own_part(host, part)?
        ))
    }

    /// Whom a liar helps. Where there is time, chance decides. In the shortest form one would keep
    /// the other out: `news` would ask who boasts and look for seconds until it asks malory, and
    /// `shop` sends nobody by HTTPS to malory, who has no certificate.
    fn helps(&self, part: Part) -> String {
        let helped = match (self.form, part) {
            (Form::Shortest, Part::Boaster) => SHOP,
            (Form::Shortest, Part::Alterer) => NEWS,
            (Form::Full | Form::Compressed, _)
            | (Form::Shortest, Part::Neighbour | Part::Newspaper | Part::Shop) => {
                return String::new();
            }
        };
        format!("[help]\nmembers = [\"{helped}.{SITES}\"]\n\n")
    }

    /// What only this kind of site has in its settings.
    fn own_part(&self, host: &Host, part: Part) -> Result<String, LabError> {
        let (name, address) = (&host.plan.name, host.address);
        Ok(match part {
            Part::Alterer => String::new(),
            Part::Neighbour | Part::Boaster => {
                let key = self.servers.home(name).join("dns.key");
                let dns = self.name_server.alias_settings(&key, ALIASES)?;
                let acme = self.authority.settings();
                format!(
                    "[tls]\nlisten = [\"{address}:443\"]\n\n{acme}challenge = \"dns-01\"\n\
                     names = [\"*.{name}.{ALIASES}\"]\n\n{dns}"
                )
            }
            Part::Newspaper => {
                let key = self.servers.home(name).join("dns.key");
                self.name_server.settings(&key, TTL)?
            }
            Part::Shop => {
                let acme = self.authority.settings();
                format!("[tls]\nlisten = [\"{address}:443\"]\n\n{acme}")
            }
        })
    }
}

/// A certificate for the certificate authority itself.
fn certify(desk: &Desk, network: &Network) -> Result<PathBuf, LabError> {
    let host = network.host("authority");
    let (address, watched_at) = (host.address.to_string(), host.watched_at.to_string());
    desk.certify(&[&address, &watched_at])
}

fn start_authority(
    network: &Network,
    folder: &Path,
    certificates: &Path,
    name_server: &NameServer,
) -> Result<CertificateAuthority, LabError> {
    let host = network.host("authority");
    let file = |end: &str| certificates.join(format!("{}.{end}", host.address));
    let face = Face {
        certificate: file("pem"),
        key: file("key"),
        voucher: certificates.join("root.pem"),
    };
    let folder = folder.join("authority");
    CertificateAuthority::start(host, &folder, face, name_server.address)
}

fn number_of(name: &str) -> usize {
    let mut members = MEMBERS.iter();
    let found = members.position(|Member(member, _)| *member == name);
    found.expect("the play names members alone")
}

fn kill(mut process: Process) -> Result<(), LabError> {
    let failed = LabError::machine("kill a process");
    process.signal(Signal::KILL).map_err(failed)?;
    let began = Instant::now();
    match process.wait_for_end(GONE_WITHIN) {
        Some(_) => Ok(()),
        None => Err(LabError::machine("wait for the end of a process")(
            std::io::Error::other(format!("it runs on for {:?}", began.elapsed())),
        )),
    }
}
