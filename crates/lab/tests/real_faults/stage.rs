//! A community of real processes on 127.0.0.1 that are meant to suffer: each can be killed, frozen,
//! stopped, and started again at the same address with the same folders.
//!
//! Every port is picked by the system the first time. Dropped, everything is stopped, frozen or
//! not; if the test failed, what the processes said is printed.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use levee_lab::processes::{Process, levee_beside};
use levee_vocab::WebAddress;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use tempfile::TempDir;

use crate::http;

/// Longest wait for anything to come true. Everything takes a few seconds; a busy machine more.
const PATIENT: Duration = Duration::from_secs(30);
/// The control interval of all sites: half the default, so that the tests are short, and twice what
/// a busy machine may keep a thread waiting.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// What a visitor may see later than it happened on a machine that is busy: half an interval.
pub const TOLERANCE: Duration = Duration::from_millis(250);
/// Pages of each site, the same paths on all of them.
pub const PAGES: u32 = 8;
/// Visitors a second who overrun a site of 54 kB/s three times, and whose redirects do not fill a
/// third of its link.
pub const RUSH: u32 = 40;

/// The folder, the binary and the registry of a community.
pub struct Town {
    pub folder: TempDir,
    levee: PathBuf,
    registry: Option<Process>,
    pub registry_at: SocketAddr,
    starts: u32,
}

/// What a site is started with, beside what all have.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    pub name: &'static str,
    pub link: &'static str,
    /// Where it listens, and where others reach it.
    pub address: IpAddr,
    /// Where it listens the first time; 0 is any port that is free.
    pub port: u16,
    /// Further lines of `[rescue]`.
    pub rescue: &'static str,
}

/// The site that is overrun, on the line of the paper.
pub const NEWS: Draft = Draft {
    name: "news",
    link: "54 kB/s",
    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    port: 0,
    rescue: "",
};
/// The same, whose rescue servers may not go on without it.
pub const UNPERMITTING: Draft = Draft {
    rescue: "[integrity]\npermit = \"0 s\"\n",
    ..NEWS
};
/// Settings of those whom nobody looks at: a look comes as a browser, for which a rescue server
/// fetches a page once more, and here fetches are counted.
pub const UNSEEN: &str = "[integrity]\nsampling = \"0 s\"\n";
/// A member who can carry the whole crowd, and is asked first.
pub const ALICE: Draft = Draft {
    name: "alice",
    link: "2000 kB/s",
    ..NEWS
};
/// One who can as well, and is asked next.
pub const BOB: Draft = Draft {
    name: "bob",
    link: "1200 kB/s",
    ..NEWS
};

/// One site.
pub struct Place {
    pub name: &'static str,
    pub address: WebAddress,
    pub admin: SocketAddr,
    pub home: PathBuf,
    draft: Draft,
    /// The words that run it, up to the `levee` binary.
    command: Vec<String>,
    registry_at: SocketAddr,
    starts: u32,
    process: Process,
}

impl Town {
    /// Starts a registry.
    pub fn new() -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into())
    }

    /// Starts a registry that listens at `address`.
    pub fn at(address: IpAddr) -> Self {
        let mut town = Self {
            folder: tempfile::tempdir().unwrap(),
            levee: levee_beside().unwrap(),
            registry: None,
            registry_at: (address, 0).into(),
            starts: 0,
        };
        town.start_registry();
        town
    }

    /// A site with its pages.
    pub fn start(&self, draft: &Draft) -> Place {
        self.start_through(&[], draft)
    }

    /// A site that another program runs, which is given with its arguments.
    pub fn start_through(&self, runner: &[String], draft: &Draft) -> Place {
        let mut command = runner.to_vec();
        command.push(self.levee.to_str().unwrap().to_owned());
        Place::start(draft, command, self.folder.path(), self.registry_at)
    }

    /// The usual cast: the origin, which knows both members, alice and bob.
    pub fn cast() -> (Self, Place, Place, Place) {
        let town = Self::new();
        let (alice, bob) = (town.start(&ALICE), town.start(&BOB));
        let news = town.start(&NEWS);
        news.knows(&["alice", "bob"]);
        (town, news, alice, bob)
    }

    pub fn kill_registry(&mut self) {
        let mut registry = self.registry.take().unwrap();
        registry.signal(Signal::KILL).unwrap();
        registry.wait_for_end(PATIENT).unwrap();
    }

    /// At the same address as before.
    pub fn start_registry(&mut self) {
        self.starts += 1;
        let listen = self.registry_at.to_string();
        let arguments = ["registry", "--listen", &listen, "--allow-private"];
        let name = format!("registry-{}", self.starts);
        let process = Process::start(&name, &self.levee, &arguments, self.folder.path()).unwrap();
        self.registry_at = process.ready().registry.unwrap();
        self.registry = Some(process);
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for entry in fs::read_dir(self.folder.path()).unwrap().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "log")
            {
                let said = fs::read_to_string(entry.path()).unwrap_or_default();
                eprintln!("---- {:?} says:\n{said}", entry.file_name());
            }
        }
    }
}

impl Place {
    fn start(draft: &Draft, command: Vec<String>, folder: &Path, registry_at: SocketAddr) -> Self {
        let home = folder.join(draft.name);
        let public = home.join("public");
        fs::create_dir_all(&public).unwrap();
        for number in 0..PAGES {
            let path = page(number);
            fs::write(public.join(&path[1..]), body_of(draft.name, &path)).unwrap();
        }
        write_settings(&home, draft, registry_at, draft.port);
        let process = run(draft, &command, &home, 1);
        let told = process.ready().site.clone().unwrap();
        let address = told.strip_prefix("http://").unwrap();
        let (host, port) = address.split_once(':').unwrap();
        Self {
            name: draft.name,
            address: WebAddress {
                host: host.parse().unwrap(),
                port: port.parse().unwrap(),
            },
            admin: process.ready().admin.unwrap(),
            home,
            draft: *draft,
            command,
            registry_at,
            starts: 1,
            process,
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.signal(Signal::KILL).unwrap();
        self.process.wait_for_end(PATIENT).unwrap();
    }

    /// Runs it again after its end, at the same address and with the same folders.
    pub fn restart(&mut self) {
        write_settings(&self.home, &self.draft, self.registry_at, self.address.port);
        self.starts += 1;
        self.process = run(&self.draft, &self.command, &self.home, self.starts);
        self.admin = self.process.ready().admin.unwrap();
    }

    /// SIGSTOP: it stays where it is, its connections open, and does nothing.
    pub fn freeze(&self) {
        self.process.signal(Signal::STOP).unwrap();
        // Its threads stop one by one, and one on another core may still send an answer: the
        // kernel tells us once all of them stand.
        let id = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        waitid(WaitId::Pid(id), WaitIdOptions::STOPPED).unwrap();
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.process.signal(Signal::CONT).unwrap();
    }

    /// SIGTERM: it drains.
    pub fn ask_to_stop(&mut self) {
        self.process.ask_to_stop();
    }

    /// How it ended.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let end = self.process.wait_for_end(PATIENT);
        end.unwrap_or_else(|| panic!("{} does not end", self.name))
    }

    /// SIGHUP: it reads its settings again.
    pub fn reload(&self) {
        self.process.signal(Signal::HUP).unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// What stands in its settings file.
    pub fn settings(&self) -> PathBuf {
        self.home.join("levee.toml")
    }

    /// What it has said since it was started last.
    pub fn log(&self) -> String {
        let file = format!("{}-{}.log", self.name, self.starts);
        fs::read_to_string(self.home.parent().unwrap().join(file)).unwrap()
    }

    /// Where it serves visitors.
    pub fn socket(&self) -> SocketAddr {
        (self.draft.address, self.address.port).into()
    }

    /// GETs a page under the name `authority`, its own or an alias.
    pub fn get(&self, authority: &str, path: &str) -> http::Answer {
        http::get(self.socket(), authority, path)
    }

    pub fn status(&self) -> Value {
        let answer = http::get(self.admin, &self.admin.to_string(), "/status.json");
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Waits until its status is as `expected`, and gives it.
    pub fn wait(&self, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{what} at {}", self.name), || {
            let status = self.status();
            expected(&status).then_some(status)
        })
    }

    /// Waits until it could ask these members, best first.
    pub fn knows(&self, members: &[&str]) {
        self.wait(&format!("candidates {members:?}"), |status| {
            let known = status["candidates"].as_array().unwrap().iter();
            let names = known.map(|known| first_label(known[0].as_str().unwrap()).to_owned());
            names.eq(members.iter().copied())
        });
    }

    /// Waits until `member` rescues it, and gives the alias in use.
    pub fn rescued_by(&self, member: &str) -> String {
        self.rescued_anew(member, "")
    }

    /// The same, by another alias than the one of before.
    pub fn rescued_anew(&self, member: &str, before: &str) -> String {
        until(&format!("rescue of {} by {member}", self.name), || {
            let status = self.status();
            let mut peers = status["rescue_servers"].as_array().unwrap().iter();
            let text = |peer: &Value, field: &str| peer[field].as_str().unwrap().to_owned();
            let peer = peers.find(|peer| first_label(&text(peer, "site")) == member)?;
            let alias = text(peer, "alias");
            (alias != before).then_some(alias)
        })
    }

    /// Waits until it neither rescues nor is rescued.
    pub fn is_normal_again(&self) {
        self.wait("normal state", |status| {
            let rescues = status["origins"].as_array().unwrap();
            status["state"] == "normal"
                && status["rescue_servers"].as_array().unwrap().is_empty()
                && rescues.iter().all(|origin| origin["phase"] != "live")
        });
    }
}

/// The path of a page.
pub fn page(number: u32) -> String {
    format!("/page-{number}.html")
}

/// What stands on a page of a site: about 3 kB that no other page and no other site has.
pub fn body_of(site: &str, path: &str) -> String {
    format!("<p>{path} of {site}, where nobody else has it.</p>\n").repeat(60)
}

/// `answer` leads back to the page at `origin`, with a proof of who says so.
pub fn assert_leads_back(answer: &http::Answer, origin: &Place, path: &str) {
    let before = format!("http://{}{path}?levee-back=", origin.address);
    let location = answer.location.as_deref().unwrap_or_default();
    let word = location.strip_prefix(&before);
    assert_eq!(word.map(str::len), Some(16), "{answer:?}");
}

/// Asks again and again until there is an answer.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        // Each look at a status costs a debug build some milliseconds, and a server that is asked
        // all the time is not at rest.
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn first_label(address: &str) -> &str {
    address.split('.').next().unwrap()
}

fn run(draft: &Draft, command: &[String], home: &Path, start: u32) -> Process {
    let name = format!("{}-{start}", draft.name);
    let settings = home.join("levee.toml");
    let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.extend(["serve", "--config", settings.to_str().unwrap()]);
    let program = Path::new(words.remove(0));
    Process::start(&name, program, &words, home.parent().unwrap()).unwrap()
}

fn write_settings(home: &Path, draft: &Draft, registry: SocketAddr, port: u16) {
    let Draft {
        name,
        link,
        address,
        rescue,
        ..
    } = draft;
    let milliseconds = INTERVAL.as_millis();
    let text = format!(
        "[site]\nname = \"{name}.localhost\"\nlisten = [\"{address}:{port}\"]\n\
         folder = \"public\"\n[link]\nrate = \"{link}\"\n\
         [community]\nregistry = \"{registry}\"\nrescue_listen = \"{address}:0\"\n\
         address = \"{address}\"\nalias_domain = \"localhost\"\nallow_private = true\n\
         [rescue]\ninterval = \"{milliseconds} ms\"\nlow_intervals = 2\n\
         registry_period = \"1 s\"\n{rescue}\n\
         [admin]\nlisten = \"{address}:0\"\n[state]\nfolder = \"state\"\n"
    );
    fs::write(home.join("levee.toml"), text).unwrap();
}
