//! BIND on an emulated host: the name server that sites already have, which takes their updates.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::LabError;
use super::network::Host;
use super::program::{Call, Program};
use crate::crowd::resolvers::Resolvers;

/// The key that sites sign their updates with; it guards nothing but emulated hosts.
const KEY: &str = "levee:hmac-sha256:bm90aGluZyBidXQgZW11bGF0ZWQgaG9zdHMgaGVyZSE=";
const PORT: u16 = 53;
const NAMED: Call<'_> = Call {
    program: "named",
    package: "bind9",
    // One thread, in the foreground, all messages to the error stream.
    arguments: &["-g", "-n", "1", "-c", "named.conf"],
    environment: &[],
};
/// Far longer than BIND takes to start, also beside a compiler.
const READY_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

/// A running name server. Dropped, it is ended.
#[derive(Debug)]
pub struct NameServer {
    _program: Program,
    /// Where it answers.
    pub address: SocketAddr,
    /// The same by the cable of the watch.
    watched_at: SocketAddr,
}

impl NameServer {
    /// Starts it on `host` with files in `folder`: the zone `zone`, in which each of `sites` has
    /// the address of its host, and empty `others`. Waits until it answers.
    pub fn start(
        host: &Host,
        folder: &Path,
        (zone, sites): (&str, &[(String, &Host)]),
        others: &[&str],
    ) -> Result<Self, LabError> {
        fs::create_dir_all(folder).map_err(LabError::machine("make a name server's folder"))?;
        let write = |name: &str, text: String| {
            fs::write(folder.join(name), text).map_err(LabError::machine("write a zone"))
        };
        let secret = KEY.rsplit(':').next().unwrap_or_default();
        let zones: String = [zone]
            .iter()
            .chain(others)
            .map(|zone| {
                format!(
                    "zone \"{zone}\" {{ type primary; file \"{zone}.db\"; \
                     allow-update {{ key levee; }}; }};\n"
                )
            })
            .collect();
        write(
            "named.conf",
            format!(
                "options {{ directory \".\"; listen-on port {PORT} {{ any; }};\n\
                 listen-on-v6 {{ none; }}; pid-file none; session-keyfile \"session.key\";\n\
                 lock-file none; recursion no; dnssec-validation no; notify no; }};\n\
                 controls {{ }};\nkey \"levee\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n{zones}"
            ),
        )?;
        let head = |zone: &str| {
            format!(
                "$TTL 1\n@ SOA ns.{zone}. admin.{zone}. 1 60 30 3600 1\n@ NS ns.{zone}.\n\
                 ns.{zone}. A {}\n",
                host.address
            )
        };
        for other in others {
            write(&format!("{other}.db"), head(other))?;
        }
        let mut records = head(zone);
        for (site, home) in sites {
            records += &format!("{site}. A {}\n", home.address);
        }
        write(&format!("{zone}.db"), records)?;
        let server = Self {
            _program: Program::start(host, folder, NAMED)?,
            address: (host.address, PORT).into(),
            watched_at: (host.watched_at, PORT).into(),
        };
        let first = sites.first().map_or(zone, |(site, _)| site);
        server.wait(first)?;
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

    /// What a site is told to register its aliases in `zone`, as a table of its settings.
    pub fn alias_settings(&self, key: &Path, zone: &str) -> Result<String, LabError> {
        fs::write(key, KEY).map_err(LabError::machine("write a key"))?;
        Ok(format!(
            "[dns]\nalias_server = \"{}\"\nalias_zone = \"{zone}\"\nalias_key = \"{}\"\n",
            self.address,
            key.display()
        ))
    }

    /// The key as `nsupdate -y` takes it.
    pub fn key_of_nsupdate(&self) -> String {
        let words: Vec<&str> = KEY.split(':').collect();
        match words[..] {
            [name, algorithm, secret] => format!("{algorithm}:{name}:{secret}"),
            [] | [_, ..] => KEY.to_owned(),
        }
    }

    /// The addresses that `name` has now; none where nothing is said.
    pub fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let resolvers = Arc::new(Resolvers::new(self.watched_at, name, 1));
        Ok(runtime.block_on(resolvers.of(0).addresses()))
    }

    fn wait(&self, site: &str) -> Result<(), LabError> {
        let end = Instant::now() + READY_WITHIN;
        while Instant::now() < end {
            if !self.addresses(site)?.is_empty() {
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
