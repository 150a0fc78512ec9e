//! A community of real processes on 127.0.0.1, for the tests beside it: a registry, an origin on a
//! thin line, and members who help it.
//!
//! Every port is picked by the system: a server is started with an empty folder, tells its address
//! in its ready line, and is given its pages then. Dropped, everything stops; if the test failed,
//! what the processes said is printed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use levee_lab::crowd::ledger::Ledger;
use levee_lab::crowd::meter::Traffic;
use levee_lab::crowd::schedule::Profile;
use levee_lab::crowd::visit::Stage;
use levee_lab::crowd::{Crowd, PATIENCE};
use levee_lab::processes::{Process, levee_beside};
use levee_lab::site::Site;
use levee_vocab::WebAddress;
use serde_json::Value;
use tempfile::TempDir;

use crate::http;

/// Longest wait for anything to come true. Everything takes a few seconds; a busy machine more.
const PATIENT: Duration = Duration::from_secs(40);

/// Longer than any of these tests can take.
const LASTING: Duration = Duration::from_secs(600);

/// What a site is started with, beside what all have.
#[derive(Clone, Debug)]
pub struct Draft {
    pub name: &'static str,
    pub link: &'static str,
    /// Where an application listens; none for a folder.
    pub upstream: Option<SocketAddr>,
    /// Further lines of `[site]`, `[rescue]` and `[log]`.
    pub site: &'static str,
    pub rescue: &'static str,
    pub log: &'static str,
}

/// The origin's line, as in the paper.
pub const ORIGIN: Draft = Draft {
    name: "news",
    link: "54 kB/s",
    upstream: None,
    site: "",
    rescue: "",
    log: "",
};

const MEMBERS: [Draft; 2] = [
    Draft {
        name: "alice",
        link: "1400 kB/s",
        ..ORIGIN
    },
    Draft {
        name: "bob",
        link: "900 kB/s",
        ..ORIGIN
    },
];

/// Everything that runs.
pub struct Community {
    pub origin: Place,
    pub members: Vec<Place>,
    registry: Process,
    folder: TempDir,
}

/// One site.
pub struct Place {
    pub address: WebAddress,
    pub admin: SocketAddr,
    /// Its own folder: settings, state, log.
    pub home: PathBuf,
    /// What it serves, where that is a folder.
    pub site: Arc<Site>,
    process: Process,
}

impl Community {
    /// Starts it and waits until the origin knows both members.
    pub fn start(origin: &Draft) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let levee = levee_beside().unwrap();
        let registry = Process::start("registry", &levee, &arguments, folder.path()).unwrap();
        let at = registry.ready().registry.unwrap();
        let place = |draft| Place::start(&levee, folder.path(), draft, at);
        let community = Self {
            members: MEMBERS.iter().map(place).collect(),
            origin: place(origin),
            registry,
            folder,
        };
        community.origin.wait("two candidates", |status| {
            status["candidates"].as_array().unwrap().len() == MEMBERS.len()
        });
        community
    }

    /// Sends the fediverse stampede and readers to the origin, for `length`.
    pub fn send_crowd(&self, length: Duration) -> Crowd {
        let profile = Profile {
            calm: Duration::ZERO,
            ..Profile::stampede(length)
        };
        let start = Instant::now();
        let stage = Stage {
            site: Arc::clone(&self.origin.site),
            address: self.origin.address.clone(),
            traffic: Traffic::since(start),
            ledger: Arc::new(Ledger::since(start)),
            patience: PATIENCE,
        };
        Crowd::send("stampede", stage, profile.arrivals(7, &self.origin.site)).unwrap()
    }

    /// Sends a crowd and waits until the origin redirects.
    pub fn in_mid_crowd(&self, length: Duration) -> Crowd {
        let crowd = self.send_crowd(length);
        self.origin.wait("redirects", |status| {
            status["state"] == "sos" && status["rates"]["redirects"].as_f64().unwrap() > 20.0
        });
        crowd
    }

    /// The same with a crowd that stays until it is dropped, however long a busy machine takes for
    /// what is looked at in the middle of it.
    pub fn in_lasting_crowd(&self) -> Crowd {
        self.in_mid_crowd(LASTING)
    }

    /// The rescue server that has given `alias` out.
    pub fn member_of(&self, alias: &str) -> &Place {
        let first = alias.split("-vh").next().unwrap();
        let host = format!("{first}.localhost");
        let mut members = self.members.iter();
        members
            .find(|member| member.address.host.as_str() == host)
            .unwrap_or_else(|| panic!("{alias} was given out by nobody here"))
    }

    /// No process has ended.
    pub fn is_whole(&mut self) -> bool {
        let sites = self.members.iter_mut().chain([&mut self.origin]);
        let mut processes = sites
            .map(|place| &mut place.process)
            .chain([&mut self.registry]);
        processes.all(Process::is_running)
    }
}

impl Drop for Community {
    fn drop(&mut self) {
        let sites = self.members.iter_mut().chain([&mut self.origin]);
        // All at once: each then drains while the others do.
        for place in sites {
            place.process.ask_to_stop();
        }
        if std::thread::panicking() {
            for name in ["registry", "alice", "bob", "news"] {
                let log = self.folder.path().join(format!("{name}.log"));
                let said = fs::read_to_string(log).unwrap_or_default();
                eprintln!("---- {name} said:\n{said}");
            }
        }
    }
}

impl Place {
    fn start(levee: &Path, folder: &Path, draft: &Draft, registry: SocketAddr) -> Self {
        let home = folder.join(draft.name);
        let public = home.join("public");
        fs::create_dir_all(&public).unwrap();
        let settings = home.join("levee.toml");
        fs::write(&settings, settings_of(draft, registry)).unwrap();
        let arguments = ["serve", "--config", settings.to_str().unwrap()];
        let process = Process::start(draft.name, levee, &arguments, folder).unwrap();
        let told = process.ready().site.clone().unwrap();
        let port = told.rsplit_once(':').unwrap().1.parse().unwrap();
        let address = WebAddress {
            host: format!("{}.localhost", draft.name).parse().unwrap(),
            port,
        };
        let site = Site::generate(42, &address);
        site.write(&public).unwrap();
        Self {
            admin: process.ready().admin.unwrap(),
            address,
            home,
            site: Arc::new(site),
            process,
        }
    }

    /// Where it listens.
    pub fn socket(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.address.port).into()
    }

    /// Adds a file to what it serves.
    pub fn publish(&self, path: &str, body: &str) {
        fs::write(self.home.join("public").join(path), body).unwrap();
    }

    /// What its admin address answers at `path`.
    pub fn admin_text(&self, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.admin);
        let answer = http::ask(self.admin, &head, b"");
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.admin_text("/status.json")).unwrap()
    }

    /// Waits until its status is as `expected`, and gives it.
    pub fn wait(&self, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        until(what, || {
            last = self.status();
            expected(&last).then(|| last.clone())
        })
    }
}

/// Asks again and again until there is an answer.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn settings_of(draft: &Draft, registry: SocketAddr) -> String {
    let content = match draft.upstream {
        Some(address) => format!("upstream = \"http://{address}\""),
        None => "folder = \"public\"".to_owned(),
    };
    let Draft {
        name,
        link,
        site,
        rescue,
        log,
        ..
    } = draft;
    format!(
        "[site]\nname = \"{name}.localhost\"\nlisten = [\"127.0.0.1:0\"]\n{content}\n{site}\n\
         [link]\nrate = \"{link}\"\n\
         [community]\nregistry = \"{registry}\"\nrescue_listen = \"127.0.0.1:0\"\n\
         address = \"127.0.0.1\"\nalias_domain = \"localhost\"\nallow_private = true\n\
         [rescue]\nregistry_period = \"1 s\"\nlow_intervals = 3\n{rescue}\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n\
         [log]\naccess = \"access.log\"\n{log}\n[state]\nfolder = \"state\"\n"
    )
}
