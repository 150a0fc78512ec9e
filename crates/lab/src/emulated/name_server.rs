//! BIND on an emulated host: the name server that a site already has, which takes its updates.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::LabError;
use super::network::Host;
use crate::crowd::resolvers::Resolvers;

/// The key that sites sign their updates with; it guards nothing but emulated hosts.
const KEY: &str = "levee:hmac-sha256:bm90aGluZyBidXQgZW11bGF0ZWQgaG9zdHMgaGVyZSE=";
const PORT: u16 = 53;
/// Far longer than BIND takes to start, also beside a compiler.
const READY_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

/// A running name server. Dropped, it is ended.
#[derive(Debug)]
pub struct NameServer {
    process: Child,
    /// Where it answers.
    pub address: SocketAddr,
}

impl NameServer {
    /// Starts it on `host` with files in `folder`: the zone `zone`, in which `site` has the address
    /// of `home`. Waits until it answers.
    pub fn start(
        host: &Host,
        folder: &Path,
        (zone, site, home): (&str, &str, &Host),
    ) -> Result<Self, LabError> {
        fs::create_dir_all(folder).map_err(LabError::machine("make a name server's folder"))?;
        let write = |name: &str, text: String| {
            fs::write(folder.join(name), text).map_err(LabError::machine("write a zone"))
        };
        let secret = KEY.rsplit(':').next().unwrap_or_default();
        write(
            "named.conf",
            format!(
                "options {{ directory \".\"; listen-on port {PORT} {{ any; }};\n\
                 listen-on-v6 {{ none; }}; pid-file none; session-keyfile \"session.key\";\n\
                 lock-file none; recursion no; dnssec-validation no; notify no; }};\n\
                 controls {{ }};\nkey \"levee\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n\
                 zone \"{zone}\" {{ type primary; file \"zone.db\"; allow-update {{ key levee; }}; }};\n"
            ),
        )?;
        write(
            "zone.db",
            format!(
                "$TTL 1\n@ SOA ns.{zone}. admin.{zone}. 1 60 30 3600 1\n@ NS ns.{zone}.\n\
                 ns.{zone}. A {}\n{site}. A {}\n",
                host.address, home.address
            ),
        )?;
        let server = Self {
            process: run(host, folder)?,
            address: (host.address, PORT).into(),
        };
        server.wait((host.watched_at, PORT).into(), site)?;
        Ok(server)
    }

    /// What a site is told to send its updates to it, as a table of its settings.
    pub fn settings(&self, key: &Path, ttl: Duration) -> Result<String, LabError> {
        fs::write(key, KEY).map_err(LabError::machine("write a key"))?;
        Ok(format!(
            "[dns]\nserver = \"{}\"\nkey = \"{}\"\nttl = \"{} s\"\n",
            self.address,
            key.display(),
            ttl.as_secs()
        ))
    }

    fn wait(&self, at: SocketAddr, site: &str) -> Result<(), LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let end = Instant::now() + READY_WITHIN;
        let resolvers = Arc::new(Resolvers::new(at, site, 1));
        while Instant::now() < end {
            if runtime.block_on(resolvers.of(0).address()).is_some() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(LabError::Refused {
            command: "named".to_owned(),
            said: "it did not answer; its log is beside its zone".to_owned(),
        })
    }
}

fn run(host: &Host, folder: &Path) -> Result<Child, LabError> {
    let found = Command::new("named").arg("-v").output();
    if found.is_err() {
        return Err(LabError::MissingTool {
            program: "named",
            package: "bind9",
        });
    }
    let log = fs::File::create(folder.join("log")).map_err(LabError::machine("make a log"))?;
    let runner = host.runner();
    Command::new(&runner[0])
        .args(&runner[1..])
        // One thread, in the foreground, all messages to the error stream.
        .args(["named", "-g", "-n", "1", "-c", "named.conf"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(LabError::machine("run named"))
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
