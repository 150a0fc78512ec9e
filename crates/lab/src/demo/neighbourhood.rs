//! The sites of the demo as real processes on 127.0.0.1: a registry, the origin server on its thin
//! line, the same site alone on the same line, and four other members of the community.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levee_vocab::{HostName, WebAddress};
use thiserror::Error;

use crate::processes::{Process, StartError};
use crate::site::Site;

/// B of the origin server, bytes a second: the DSL line of the paper, 54 kB/s.
pub const LINK: u64 = 54_000;

/// The other members and their links in kB/s: of different sizes, and together offering (40 % of
/// each) at least twice what the crowd asks for.
const MEMBERS: [(&str, u64); 4] = [
    ("alice", 1_400),
    ("bob", 900),
    ("carol", 700),
    ("dave", 500),
];

/// Everything that runs.
#[derive(Debug)]
pub struct Neighbourhood {
    /// The origin server, in the community.
    pub origin: Place,
    /// The same site without a community.
    pub alone: Place,
    /// The other members, largest link first.
    pub members: Vec<Place>,
    registry: Process,
}

/// One site and its process.
#[derive(Debug)]
pub struct Place {
    /// How visitors reach it.
    pub address: WebAddress,
    /// What it should serve.
    pub site: Arc<Site>,
    /// Its link in bytes a second.
    pub link: u64,
    /// Its admin pages.
    pub admin: SocketAddr,
    process: Process,
}

/// The neighbourhood could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Files or ports were not to be had.
    #[error("cannot prepare {what}: {error}")]
    Prepare {
        /// What was being prepared.
        what: String,
        /// What went wrong.
        error: io::Error,
    },
    /// A process did not come up.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A process came up, but did not say where.
    #[error("{0} did not tell its address in its ready line")]
    NoAddress(String),
}

impl Neighbourhood {
    /// Starts all of it from the binary `levee`, with files in `folder`.
    pub fn start(levee: &Path, folder: &Path, seed: u64) -> Result<Self, BuildError> {
        let arguments = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let registry = Process::start("registry", levee, &arguments, folder)?;
        let at = registry.ready().registry;
        let at = at.ok_or_else(|| BuildError::NoAddress("the registry".to_owned()))?;
        let builder = Builder {
            levee,
            folder,
            seed,
        };
        let members = MEMBERS
            .iter()
            .map(|&(name, kilobytes)| builder.place(name, kilobytes * 1000, Some(at)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            // The names are equally long, so that both sites weigh the same to the byte.
            alone: builder.place("solo", LINK, None)?,
            origin: builder.place("news", LINK, Some(at))?,
            members,
            registry,
        })
    }

    /// The first process that no longer runs, by name.
    pub fn missing(&mut self) -> Option<String> {
        self.processes()
            .find_map(|process| (!process.is_running()).then(|| process.name().to_owned()))
    }

    /// Every site: origin server, alone, members.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        [&self.origin, &self.alone].into_iter().chain(&self.members)
    }

    /// Name of the site behind a web port.
    pub fn name_of(&self, port: u16) -> Option<&str> {
        let place = self.places().find(|place| place.address.port == port);
        place.map(Place::name)
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        [&mut self.origin.process, &mut self.alone.process]
            .into_iter()
            .chain(self.members.iter_mut().map(|place| &mut place.process))
            .chain([&mut self.registry])
    }
}

impl Drop for Neighbourhood {
    fn drop(&mut self) {
        // All at once: each then drains while the others do.
        self.processes().for_each(Process::ask_to_stop);
    }
}

impl Place {
    /// Its name in the demo, `alice`.
    pub fn name(&self) -> &str {
        self.process.name()
    }
}

struct Builder<'a> {
    levee: &'a Path,
    folder: &'a Path,
    seed: u64,
}

impl Builder<'_> {
    fn place(
        &self,
        name: &str,
        link: u64,
        registry: Option<SocketAddr>,
    ) -> Result<Place, BuildError> {
        let prepare = |what: &str| {
            let what = what.to_owned();
            move |error| BuildError::Prepare { what, error }
        };
        let port = free_port().map_err(prepare("a port"))?;
        let address = WebAddress {
            host: host(name),
            port,
        };
        let site = Site::generate(self.seed, &address);
        let home = self.folder.join(name);
        let public = home.join("public");
        site.write(&public).map_err(prepare("the site's files"))?;
        let settings = home.join("levee.toml");
        let log = home.join("access.log");
        fs::write(&settings, settings_of(&address, link, registry, &log))
            .map_err(prepare("a settings file"))?;
        let arguments = [
            PathBuf::from("serve"),
            PathBuf::from("--config"),
            settings.clone(),
        ];
        let process = Process::start(name, self.levee, &arguments, self.folder)?;
        let admin = process.ready().admin;
        Ok(Place {
            address,
            site: Arc::new(site),
            link,
            admin: admin.ok_or_else(|| BuildError::NoAddress(name.to_owned()))?,
            process,
        })
    }
}

/// The settings file of a site; ports of the rescue protocol and of the admin pages are picked by
/// the server.
fn settings_of(
    address: &WebAddress,
    link: u64,
    registry: Option<SocketAddr>,
    log: &Path,
) -> String {
    let community = registry.map_or_else(String::new, |registry| {
        format!(
            "[community]\nregistry = \"{registry}\"\nrescue_listen = \"127.0.0.1:0\"\n\
             address = \"127.0.0.1\"\nalias_domain = \"localhost\"\nallow_private = true\n\n\
             [rescue]\nregistry_period = \"2 s\"\nobject_ttl = \"10 min\"\n\n"
        )
    });
    format!(
        "# Written by `levee-lab demo`.\n[site]\nname = \"{host}\"\n\
         listen = [\"127.0.0.1:{port}\"]\nfolder = \"public\"\n\n\
         [link]\nrate = \"{kilobytes} kB/s\"\n\n{community}\
         [admin]\nlisten = \"127.0.0.1:0\"\n\n[log]\naccess = {log:?}\n\n\
         [state]\nfolder = \"state\"\n",
        host = address.host,
        port = address.port,
        kilobytes = link / 1000,
    )
}

fn host(name: &str) -> HostName {
    format!("{name}.localhost")
        .parse()
        .expect("the demo's names are host names")
}

/// A port that is free now. The post names its preview image by an absolute address, so the port
/// must be known before the site is written, and cannot be picked by the server.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_a_community_and_a_site_alone_has_none() {
        let address = WebAddress {
            host: host("news"),
            port: 4000,
        };
        let log = Path::new("/home/news/access.log");
        let member = settings_of(&address, LINK, Some(([127, 0, 0, 1], 7070).into()), log);
        assert!(member.contains("registry = \"127.0.0.1:7070\""));
        assert!(member.contains("rate = \"54 kB/s\""));
        assert!(member.contains("access = \"/home/news/access.log\""));
        assert!(!settings_of(&address, LINK, None, log).contains("[community]"));
    }
}
