//! A certificate authority of our own: pebble, and a name server that sends every name to this
//! machine.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::ports::free_address;

/// How pebble looks at us.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// Where it asks for pages; a port at which nobody listens, where there is none.
    pub http: Option<u16>,
    /// The same for handshakes.
    pub tls: Option<u16>,
    /// Below this many seconds it waits before it looks, and not at all without. It draws anew for
    /// each of its three looks, and what it says follows the last: that all of them are at once
    /// happens once in the cube of this number.
    pub waits: Option<u8>,
    /// A name server that it asks instead of its own.
    pub names: Option<u16>,
    /// Where that is, if not at 127.0.0.1.
    pub names_host: Option<&'static str>,
    /// It knows its clients already.
    pub external: bool,
    /// How many nonces in a hundred it refuses on purpose.
    pub refused_nonces: u8,
}

/// The place of an authority: its address and its own certificate are known before it runs.
pub struct Place {
    folder: tempfile::TempDir,
    port: u16,
    management: u16,
}

/// The authority, ended with the test.
pub struct Pebble {
    processes: Vec<Child>,
}

/// The account that pebble knows when it wants one.
pub const EXTERNAL_ID: &str = "kid-1";
pub const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

impl Place {
    pub fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            port: free_address().port(),
            management: free_address().port(),
        };
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(place.path("ca.pem"), made.cert.pem()).unwrap();
        std::fs::write(place.path("ca.key"), made.signing_key.serialize_pem()).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the settings say of it.
    pub fn settings(&self) -> String {
        format!(
            "directory = \"https://localhost:{}/dir\"\nroot = \"{}\"\n",
            self.port,
            self.path("ca.pem").display()
        )
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn root_file(&self) -> PathBuf {
        self.path("root.pem")
    }

    /// Starts it, and waits until it answers. The root of its certificates is written down.
    pub fn start(&self, looks: &Looks) -> Pebble {
        let dns_port = free_address().port();
        let asked = looks.names.unwrap_or(dns_port);
        let asked = format!("{}:{asked}", looks.names_host.unwrap_or("127.0.0.1"));
        let silent = free_address().port();
        let text = format!(
            "{{\"pebble\": {{\"listenAddress\": \"127.0.0.1:{}\", \
             \"managementListenAddress\": \"127.0.0.1:{}\", \"certificate\": \"{}\", \
             \"privateKey\": \"{}\", \"httpPort\": {}, \"tlsPort\": {}, \
             \"ocspResponderURL\": \"\", \"externalAccountBindingRequired\": {}, \
             \"externalAccountMACKeys\": {{\"{EXTERNAL_ID}\": \"{EXTERNAL_KEY}\"}}}}}}",
            self.port,
            self.management,
            self.path("ca.pem").display(),
            self.path("ca.key").display(),
            looks.http.unwrap_or(silent),
            looks.tls.unwrap_or(silent),
            looks.external,
        );
        std::fs::write(self.path("pebble.json"), text).unwrap();
        let management = free_address().port();
        let names = Command::new("pebble-challtestsrv")
            .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""])
            .args(["-http01", "", "-https01", "", "-tlsalpn01", ""])
            .args(["-dns01", &format!("127.0.0.1:{dns_port}")])
            .args(["-management", &format!("127.0.0.1:{management}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let log = std::fs::File::create(self.path("pebble.log")).unwrap();
        let mut pebble = Command::new("pebble");
        pebble
            .arg("-config")
            .arg(self.path("pebble.json"))
            .args(["-dnsserver", &asked])
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", looks.refused_nonces.to_string())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        match looks.waits {
            Some(seconds) => pebble.env("PEBBLE_VA_SLEEPTIME", seconds.to_string()),
            None => pebble.env("PEBBLE_VA_NOSLEEP", "1"),
        };
        let processes = vec![names, pebble.spawn().unwrap()];
        let mut pebble = Pebble { processes };
        while TcpStream::connect(("127.0.0.1", management)).is_err() || !self.write_root() {
            assert!(pebble.is_alive(), "pebble has ended: {}", self.log());
            std::thread::yield_now();
        }
        pebble
    }

    fn write_root(&self) -> bool {
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "5", "--cacert"])
            .arg(self.path("ca.pem"))
            .args([
                "--retry",
                "100",
                "--retry-connrefused",
                "--retry-delay",
                "1",
            ])
            .arg(format!("https://localhost:{}/roots/0", self.management))
            .output()
            .unwrap();
        let is_root = output.stdout.starts_with(b"-----BEGIN CERTIFICATE");
        if is_root {
            std::fs::write(self.root_file(), output.stdout).unwrap();
        }
        is_root
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("pebble.log")).unwrap()
    }
}

impl Pebble {
    fn is_alive(&mut self) -> bool {
        let mut ends = self.processes.iter_mut().map(Child::try_wait);
        ends.all(|end| end.unwrap().is_none())
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
