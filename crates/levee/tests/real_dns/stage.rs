//! An origin with a name server of its own, two rescue servers, a registry and a BIND that keeps a
//! copy of the zone: real processes, ended with the test.
//!
//! For the servers every name of the community leads to an address where nobody but the test
//! listens: whoever went by a name would be seen there, and get nowhere.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::named::{Named, SECRET, Stage, free_address};
use crate::program::Program;

/// The name that rotates.
pub const SITE: &str = "www.site.test";
/// Where the servers are, all on one port.
pub const ORIGIN: &str = "127.0.0.1";
pub const LARGE: &str = "127.0.0.2";
pub const SMALL: &str = "127.0.0.3";
/// What the sites of the rescue servers themselves show.
pub const OWN_PAGE: &str = "a page of the rescue server itself";
/// The folders of pages, of the origin and of its rescue servers.
const OURS: &str = "public";
const THEIRS: &str = "theirs";
/// No member is here.
const OTHER: &str = "127.0.0.8";
/// Where their names lead.
const NOWHERE: &str = "127.0.0.9";

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Visitors of a crowd at a time, and the pause of each after a visit: some sixty visits a second.
const VISITORS: usize = 8;
const PAUSE: Duration = Duration::from_millis(125);
const PAGE_BYTES: usize = 8000;

/// The zone file of the site.
pub const ZONE: &str = "$TTL 1\n@ IN SOA ns admin 1 60 1 3600 1\n@ IN NS ns\nns IN A 127.0.0.1\n\
    www IN A 127.0.0.1\n";

/// Waits until `holds`.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: never");
        park_timeout(Duration::from_millis(20));
    }
    println!("{what}: {:.2} s", began.elapsed().as_secs_f64());
}

/// See the file header.
pub struct Community {
    folder: TempDir,
    origin: Levee,
    large: Levee,
    small: Levee,
    _registry: Levee,
    /// The origin's own.
    pub name_server: SocketAddr,
    pub secondary: Named,
    port: u16,
    strays: Arc<AtomicUsize>,
}

impl Community {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With these further tables in the settings of the origin.
    pub fn start_with(more: &str) -> Self {
        Self::start_among(more, &hosts())
    }

    /// With a name server of the large rescue server that lies: its aliases lead to another machine
    /// as well, `OTHER`.
    pub fn start_with_a_second_address(more: &str) -> Self {
        let mut names = hosts();
        for number in 1..9 {
            names.push_str(&format!("{OTHER} large-vh{number}.aliases.test\n"));
        }
        Self::start_among(more, &names)
    }

    fn start_among(more: &str, names: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for folder in [OURS, THEIRS] {
            std::fs::create_dir(path.join(folder)).unwrap();
        }
        let page = format!("<!doctype html><p>Hello{}", " hello".repeat(PAGE_BYTES / 6));
        for (name, text) in [
            ("public/index.html", page.as_str()),
            ("public/other.html", "another page"),
            ("theirs/index.html", OWN_PAGE),
            ("theirs/own.html", OWN_PAGE),
            ("site.zone", ZONE),
            ("hosts", names),
        ] {
            std::fs::write(path.join(name), text).unwrap();
        }
        let list = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let registry = Levee::start(path, &list);
        let place = registry.program.port("127.0.0.1:");
        let (name_server, secondary) = (free_address(), free_address());
        let dns = format!(
            "[dns]\nlisten = \"{name_server}\"\nzone_file = \"site.zone\"\nttl = \"1 s\"\n\
             secondaries = [\"{secondary}\"]\nweighted = true\n{more}"
        );
        let site = |name: &str, address: &str, port: u16, rate: u32, more: &str| {
            let text = settings(name, (address, port), place, rate) + more;
            std::fs::write(path.join(format!("{name}.toml")), text).unwrap();
            Levee::start(path, &["serve", "-c", &format!("{name}.toml")])
        };
        let origin = site(SITE, ORIGIN, 0, 100, &dns);
        let port = origin.program.port(&format!("http://{SITE}:"));
        let large = site("large.example", LARGE, port, 800, "");
        let small = site("small.example", SMALL, port, 300, "");
        let primary = format!("127.0.0.1 port {}", name_server.port());
        let secondary = Named::start_as(&Stage {
            name: "site.test",
            zone: None,
            at: Some(secondary),
            statement: &format!("type secondary; primaries {{ {primary}; }};"),
        });
        Self {
            folder,
            origin,
            large,
            small,
            _registry: registry,
            name_server,
            secondary,
            port,
            strays: count_strays(port),
        }
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Visitors of the front page, who come to the origin until they leave.
    pub fn crowd(&self) -> Crowd {
        let (is_over, port) = (Arc::new(AtomicBool::new(false)), self.port);
        let visit = move |is_over: Arc<AtomicBool>| {
            while !is_over.load(Ordering::Relaxed) {
                ask((ORIGIN, port), SITE, "/");
                park_timeout(PAUSE);
            }
        };
        let visitor = || {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || visit(is_over))
        };
        let visitors = (0..VISITORS).map(|_| visitor()).collect();
        Crowd { is_over, visitors }
    }

    /// SIGKILL.
    pub fn kill_origin(&mut self) {
        self.origin.kill();
    }

    /// Has the other machine answer whatever is asked, until the test ends.
    pub fn other_answers(&self, page: &'static str) {
        let listener = TcpListener::bind((OTHER, self.port)).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let length = page.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
                let answer = format!("{head}\r\ncontent-length: {length}\r\n\r\n{page}");
                // Who has hung up does not want it.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
    }

    /// Whom the origin has expelled.
    pub fn expelled(&self) -> String {
        self.origin.status()["integrity"]["expelled"].to_string()
    }

    /// Connections to where the names lead.
    pub fn strays(&self) -> usize {
        self.strays.load(Ordering::Relaxed)
    }

    /// Whether a visitor who comes by the site's name to `address` gets its page.
    pub fn shows_page(&self, address: &str) -> bool {
        self.visit(address, "/").contains("Hello hello")
    }

    /// What a visitor gets who comes by the site's name to `address`.
    pub fn visit(&self, address: &str, path: &str) -> String {
        ask((address, self.port), SITE, path)
    }

    /// What a visitor gets who wants the site of the large rescue server itself.
    pub fn visit_large(&self) -> String {
        ask((LARGE, self.port), "large.example", "/")
    }

    /// Whether a visitor who was redirected to the large rescue server gets the page at `path`.
    pub fn alias_shows(&self, path: &str) -> bool {
        let servers = self.origin.status()["rescue_servers"].clone();
        let servers = servers.as_array().unwrap().iter();
        let mut aliases = servers.filter_map(|server| server["alias"].as_str());
        let alias = aliases.find(|alias| alias.starts_with("large-")).unwrap();
        let host = alias.split(':').next().unwrap();
        ask((LARGE, self.port), host, path).contains("another page")
    }

    /// What the rescue servers told that they take.
    pub fn rates(&self) -> Vec<u64> {
        let servers = self.origin.status()["rescue_servers"].clone();
        let servers = servers.as_array().unwrap().iter();
        servers
            .map(|server| server["rate"].as_u64().unwrap())
            .collect()
    }

    /// Requests by rescue servers that the origin has answered.
    pub fn fetches_served(&self) -> u64 {
        number(&self.origin.status(), "/lifetime/fetches_served")
    }

    /// Copies of ours that rescue servers confirmed.
    pub fn copies_held(&self) -> u64 {
        number(&self.origin.status(), "/lifetime/copies/sent/held")
    }

    /// Whether the rescue server at `address` goes on without the origin, as that permitted.
    pub fn goes_on(&self, address: &str) -> bool {
        let server = match address == LARGE {
            true => &self.large,
            false => &self.small,
        };
        let until = server.status()["origins"][0]["orphaned_until"].as_f64();
        until.unwrap_or_default() > 0.0
    }

    /// Has the origin read its settings again: whether it did, and what it said.
    pub fn reload(&self) -> (bool, String) {
        let admin = format!("127.0.0.1:{}", self.origin.admin_port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        let output = command
            .args(["reload", "--admin", &admin])
            .output()
            .unwrap();
        let told = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(told).unwrap())
    }
}

fn number(status: &Value, pointer: &str) -> u64 {
    let found = status.pointer(pointer);
    found.and_then(Value::as_u64).unwrap_or_default()
}

/// What a server knows of names: those of sites lead to where nobody is. Aliases lead to their
/// rescue server, or nobody would be sent there.
fn hosts() -> String {
    let mut text = format!("127.0.0.1 localhost\n{NOWHERE} {SITE} large.example small.example\n");
    for number in 1..9 {
        for (host, address) in [("www", ORIGIN), ("large", LARGE), ("small", SMALL)] {
            text.push_str(&format!("{address} {host}-vh{number}.aliases.test\n"));
        }
    }
    text
}

fn settings(name: &str, (address, port): (&str, u16), registry: u16, rate: u32) -> String {
    let folder = if name == SITE { OURS } else { THEIRS };
    format!(
        "[site]\nname = \"{name}\"\nlisten = [\"{address}:{port}\"]\nfolder = \"{folder}\"\n\
         [link]\nrate = \"{rate} kB/s\"\n[community]\nregistry = \"127.0.0.1:{registry}\"\n\
         address = \"{address}\"\nrescue_listen = \"{address}:0\"\nallow_private = true\n\
         alias_domain = \"aliases.test\"\n[rescue]\ninterval = \"200 ms\"\nlow_intervals = 5\n\
         registry_period = \"1 s\"\n[state]\nfolder = \"state-{name}\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n"
    )
}

/// Counts whoever connects to where the names lead.
fn count_strays(port: u16) -> Arc<AtomicUsize> {
    let strays = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&strays);
    let listener = TcpListener::bind((NOWHERE, port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    strays
}

/// What `place` answers to a GET; empty where it cannot be reached.
fn ask(place: (&str, u16), host: &str, path: &str) -> String {
    let mut answer = Vec::new();
    let mut exchange = || {
        let mut stream = TcpStream::connect(place)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        stream.read_to_end(&mut answer)
    };
    // Who is refused, or comes to a server that is killed, has nothing.
    let _ = exchange();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Visitors who come again and again.
pub struct Crowd {
    is_over: Arc<AtomicBool>,
    visitors: Vec<JoinHandle<()>>,
}

impl Crowd {
    pub fn leaves(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for visitor in self.visitors.drain(..) {
            visitor.join().unwrap();
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A program of ours.
struct Levee {
    program: Program,
}

impl Levee {
    /// Starts it where the names lead nowhere: it has a hosts file of its own.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            command.arg("--map-root-user");
        }
        let script = "mount --bind hosts /etc/hosts && exec \"$@\"";
        command
            .current_dir(folder)
            .args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_levee")])
            .args(arguments);
        Self {
            program: Program::start(&mut command),
        }
    }

    fn admin_port(&self) -> u16 {
        self.program.port("admin http://127.0.0.1:")
    }

    fn status(&self) -> Value {
        let answer = ask(
            ("127.0.0.1", self.admin_port()),
            "localhost",
            "/status.json",
        );
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        serde_json::from_str(body).unwrap_or_default()
    }

    fn kill(&mut self) {
        let _ = self.program.process.kill();
        let _ = self.program.process.wait();
    }
}

/// The name server of a community, whose members have keys.
pub struct NameServer {
    folder: TempDir,
    process: Levee,
    pub address: SocketAddr,
}

/// A file of keys in which each of these may change its own name.
pub fn keys(members: &[&str]) -> String {
    let line = |member: &&str| format!("{member}:hmac-sha256:{SECRET} {member}.aliases.test\n");
    members.iter().map(line).collect()
}

impl NameServer {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("aliases.zone", ZONE),
            ("hosts", &hosts()),
            ("keys", &keys(&["alice"])),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let files = "--zone aliases.test --zone-file aliases.zone --keys keys";
        let mut arguments = vec!["dns", "--listen", "127.0.0.1:0"];
        arguments.extend(files.split(' '));
        let process = Levee::start(folder.path(), &arguments);
        let port = process.program.port("127.0.0.1:");
        Self {
            folder,
            process,
            address: ([127, 0, 0, 1], port).into(),
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// SIGHUP.
    pub fn hangs_up(&self) {
        let process = self.process.program.process.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &process]).status();
        assert!(sent.unwrap().success());
    }

    /// Whether `member` can change its name.
    pub fn updates(&self, member: &str) -> bool {
        let lines = format!(
            "server 127.0.0.1 {}\nzone aliases.test\n\
             update add {member}.aliases.test 5 A 192.0.2.10\nsend\n",
            self.address.port()
        );
        let mut process = Command::new("nsupdate")
            .args(["-y", &format!("hmac-sha256:{member}:{SECRET}")])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        process.wait().unwrap().success()
    }
}
