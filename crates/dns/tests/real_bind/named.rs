//! A BIND of our own: on loopback, on a port that was free, in a folder that is deleted with it.
//!
//! Other tests that need a name server take this file by its path.

#[path = "../../../levee/tests/support/ports.rs"]
mod ports;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use ports::free_address;

/// The secret of every key of these tests.
pub const SECRET: &str = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";
/// The key that the server knows, as settings have it.
pub const KEY: &str = "community.:hmac-sha256:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";

/// How long a server may take to answer.
const READY_MAX: Duration = Duration::from_secs(20);

/// What is different from one test to the next.
pub struct Stage<'a> {
    /// Name of the zone.
    pub name: &'a str,
    /// Its text; none where the server gets it from somewhere.
    pub zone: Option<&'a str>,
    /// Where it listens; none where that does not matter.
    pub at: Option<SocketAddr>,
    /// What stands in its `zone` statement beside the file.
    pub statement: &'a str,
}

/// A running name server.
pub struct Named {
    process: Child,
    folder: TempDir,
    address: SocketAddr,
    zone: String,
}

impl Named {
    /// A server on that stage.
    pub fn start_as(stage: &Stage<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(zone) = stage.zone {
            fs::write(folder.path().join("zone.db"), zone).unwrap();
        }
        // Between finding a port and using it somebody else may take it.
        for _ in 0..3 {
            let address = stage.at.unwrap_or_else(free_address);
            configure(folder.path(), address, stage);
            let mut process = run(folder.path());
            if is_ready(&mut process, address, stage.name) {
                return Self {
                    process,
                    folder,
                    address,
                    zone: stage.name.to_owned(),
                };
            }
        }
        panic!("named does not start:\n{}", log(folder.path()));
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again where it was.
    pub fn restart(&mut self) {
        self.process = run(self.folder.path());
        let ready = is_ready(&mut self.process, self.address, &self.zone);
        assert!(ready, "{}", self.log());
    }

    /// What it logged.
    pub fn log(&self) -> String {
        log(self.folder.path())
    }

    /// What `dig` prints for `arguments` in short form, line by line in order.
    pub fn dig(&self, arguments: &str) -> Vec<String> {
        dig(self.address, arguments)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What `dig` prints in short form when it asks `server`, sorted.
pub fn dig(server: SocketAddr, arguments: &str) -> Vec<String> {
    let mut lines: Vec<String> = dig_with(server, &format!("+short {arguments}"))
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// All that `dig` prints when it asks `server`.
pub fn dig_with(server: SocketAddr, arguments: &str) -> String {
    let output = Command::new("dig")
        .arg(format!("@{}", server.ip()))
        .args(["-p", &server.port().to_string(), "+tries=1", "+time=2"])
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn configure(folder: &Path, address: SocketAddr, stage: &Stage<'_>) {
    let port = address.port();
    let Stage {
        name, statement, ..
    } = stage;
    let text = format!(
        "options {{ directory \".\"; listen-on port {port} {{ 127.0.0.1; }};\n\
         listen-on-v6 {{ none; }}; pid-file none; session-keyfile \"./session.key\";\n\
         lock-file none; recursion no; dnssec-validation no; allow-query {{ any; }};\n\
         allow-transfer {{ key \"community.\"; }}; empty-zones-enable no; notify no;\n\
         request-ixfr no; min-refresh-time 1; max-refresh-time 2; }};\n\
         controls {{ }};\n\
         key \"community.\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         zone \"{name}\" {{ file \"zone.db\"; {statement} }};\n"
    );
    fs::write(folder.join("named.conf"), text).unwrap();
}

fn run(folder: &Path) -> Child {
    let log = fs::File::create(folder.join("log")).unwrap();
    Command::new("named")
        .current_dir(folder)
        // One thread, in the foreground, all messages to the error stream.
        .args(["-g", "-n", "1", "-c", "named.conf"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn is_ready(process: &mut Child, address: SocketAddr, zone: &str) -> bool {
    let end = Instant::now() + READY_MAX;
    while Instant::now() < end {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        let question = format!("+short {zone} SOA");
        if TcpStream::connect(address).is_ok() && !dig_with(address, &question).is_empty() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}
