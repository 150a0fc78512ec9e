//! Name servers of our own: a BIND that keeps `site.test` and asks another for `alias.test`, and
//! that other, `levee dns`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The secret of every key.
const SECRET: &str = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";
/// How long a name server may take to answer.
const READY_MAX: Duration = Duration::from_secs(20);

/// A name server, ended with the test.
pub struct NameServer {
    process: Child,
    folder: tempfile::TempDir,
    pub address: SocketAddr,
}

/// The key file for those who may change records under this name of the key.
pub fn key(name: &str) -> String {
    format!("{name}:hmac-sha256:{SECRET}\n")
}

impl NameServer {
    /// BIND with the zone `site.test`, in which the key `site` may change one TXT record and
    /// nothing else. What is below `alias.test` it asks from `aliases`.
    pub fn bind(address: SocketAddr, aliases: SocketAddr) -> Self {
        let zone = "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\n\
                    ns IN A 127.0.0.1\n@ IN A 127.0.0.1\n";
        let zones = format!(
            "zone \"site.test\" {{ type primary; file \"zone.db\"; notify no;\n\
             update-policy {{ grant site name _acme-challenge.site.test TXT; }}; }};\n\
             zone \"alias.test\" {{ type forward; forward only;\n\
             forwarders {{ 127.0.0.1 port {}; }}; }};\n",
            aliases.port()
        );
        Self::bind_with(address, &[("zone.db", zone)], &zones)
    }

    /// BIND with these files and `zones`, of which one is `site.test`; it knows the key `site`.
    pub fn bind_with(address: SocketAddr, files: &[(&str, &str)], zones: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in files {
            std::fs::write(at(name), text).unwrap();
        }
        let (host, port) = (address.ip(), address.port());
        let text = format!(
            "options {{ directory \".\"; listen-on port {port} {{ {host}; }};\n\
             listen-on-v6 {{ none; }}; pid-file none; session-keyfile \"./session.key\";\n\
             lock-file none; recursion yes; dnssec-validation no; empty-zones-enable no;\n\
             min-refresh-time 1; max-refresh-time 1; allow-transfer {{ any; }}; }};\n\
             controls {{ }};\n\
             key \"site\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n{zones}"
        );
        std::fs::write(at("named.conf"), text).unwrap();
        let process = Command::new("named")
            .current_dir(folder.path())
            // One thread, in the foreground, all messages to the error stream.
            .args(["-g", "-n", "1", "-c", "named.conf"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        let bind = Self {
            process,
            folder,
            address,
        };
        let began = Instant::now();
        while bind.dig("site.test SOA").is_empty() {
            assert!(began.elapsed() < READY_MAX, "{}", bind.log());
        }
        bind
    }

    /// `levee dns` with the zone `alias.test`, in which the key `alice` has a part of its own.
    pub fn levee() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let zone = "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\n\
                    ns IN A 127.0.0.1\n";
        std::fs::write(at("zone.db"), zone).unwrap();
        let grant = format!("{} alice.alias.test\n", key("alice").trim());
        std::fs::write(at("keys"), grant).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(folder.path())
            .args(["dns", "--listen", "127.0.0.1:0", "--zone", "alias.test"])
            .args(["--zone-file", "zone.db", "--keys", "keys"])
            .args(["--state", "state"])
            .env("LEVEE_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.split("ready on ").nth(1).unwrap();
        let address = address.split(',').next().unwrap().parse().unwrap();
        Self {
            process,
            folder,
            address,
        }
    }

    /// What it answers to `question`, without ends of lines.
    pub fn dig(&self, question: &str) -> String {
        let output = Command::new("dig")
            .arg(format!("@{}", self.address.ip()))
            .args(["-p", &self.address.port().to_string()])
            .args(["+short", "+tries=1", "+time=2"])
            .args(question.split(' '))
            .output()
            .unwrap();
        // What it says of a server that is not there yet begins with a semicolon.
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        lines.collect::<Vec<_>>().join(" ")
    }

    /// Waits until it has no record that was for an authority.
    pub fn wait_for_no_record(&self, name: &str) {
        let question = format!("_acme-challenge.{name} TXT");
        let began = Instant::now();
        while !self.dig(&question).is_empty() {
            assert!(began.elapsed() < READY_MAX, "{}", self.dig(&question));
        }
    }

    /// Sends it a signal, such as `-STOP`.
    pub fn signal(&self, signal: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.unwrap().success());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
