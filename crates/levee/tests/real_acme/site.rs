//! A real levee that orders certificates, asked by curl and openssl.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::pebble::{Looks, Pebble, Place};
use crate::program::Program;

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A site in a folder of its own.
pub struct Site {
    folder: tempfile::TempDir,
    name: String,
}

/// A levee that serves it, ended with the test.
pub struct Levee {
    program: Program,
    name: String,
    pub http: u16,
    pub https: u16,
    admin: String,
}

impl Site {
    /// A site called `site.test` that orders certificates from `place`; `more` are further lines
    /// below `[acme]`.
    pub fn new(place: &Place, more: &str) -> Self {
        Self::named("site.test", place, more)
    }

    /// The same, with another name.
    pub fn named(name: &str, place: &Place, more: &str) -> Self {
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
            name: name.to_owned(),
        };
        std::fs::create_dir(site.path("public")).unwrap();
        std::fs::write(site.path("public/index.html"), "hello").unwrap();
        let text = format!(
            "[site]\nname = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
             [tls]\nlisten = [\"127.0.0.1:0\"]\nredirect = true\n\
             [acme]\nagree = true\ncontact = [\"webmaster@site.test\"]\n{}{more}\
             [state]\nfolder = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
            place.settings()
        );
        std::fs::write(site.path("levee.toml"), text).unwrap();
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn start(&self) -> Levee {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        command
            .current_dir(self.folder.path())
            .args(["serve", "-c", "levee.toml"]);
        let program = Program::start(&mut command);
        Levee {
            http: program.port(&format!(" http://{}:", self.name)),
            https: program.port(&format!(" https://{}:", self.name)),
            admin: format!("127.0.0.1:{}", program.port("admin http://127.0.0.1:")),
            name: self.name.clone(),
            program,
        }
    }

    /// Starts it, and then the authority, which looks at it as `looks` says. What it could not
    /// order before is ordered at once.
    pub fn start_before(
        &self,
        place: &Place,
        looks: impl FnOnce(&Levee) -> Looks,
    ) -> (Levee, Pebble) {
        let levee = self.start();
        let pebble = place.start(&looks(&levee));
        levee.reload();
        (levee, pebble)
    }

    /// Starts it at the ports that it had before.
    pub fn restart(&self, before: &Levee) -> Levee {
        let path = self.path("levee.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut parts = text.splitn(3, "127.0.0.1:0");
        let mut next = || parts.next().unwrap();
        let (first, second, rest) = (next(), next(), next());
        let (http, https) = (before.http, before.https);
        let text = format!("{first}127.0.0.1:{http}{second}127.0.0.1:{https}{rest}");
        std::fs::write(path, text).unwrap();
        self.start()
    }
}

impl Levee {
    /// What curl gets from the page by HTTPS; it believes the authority of `place`.
    pub fn curl(&self, place: &Place) -> String {
        let root = place.root_file();
        let root = root.to_str().unwrap();
        self.ask(&["--cacert", root], &self.url())
    }

    /// Its page, by HTTPS.
    pub fn url(&self) -> String {
        format!("https://{}:{}/", self.name, self.https)
    }

    /// What curl gets by HTTP, with the status and the place that it is sent to.
    pub fn curl_plain(&self, path: &str) -> String {
        let told = " %{http_code} %{redirect_url}";
        let url = format!("http://{}:{}{path}", self.name, self.http);
        self.ask(&["--write-out", told], &url)
    }

    fn ask(&self, arguments: &[&str], url: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20"])
            // Every name leads here.
            .args(["--connect-to", "::127.0.0.1:"])
            .args(arguments)
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Waits until the page comes by HTTPS.
    pub fn wait_for_certificate(&self, place: &Place) {
        let began = Instant::now();
        while self.curl(place) != "hello" {
            assert!(
                began.elapsed() < PATIENCE,
                "{}\n{}\n{}",
                self.curl(place),
                self.status(),
                place.log()
            );
        }
    }

    /// Waits until the status says `text`, and gives it.
    pub fn wait_for_status(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let status = self.status();
            if status.contains(text) {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "{status}");
        }
    }

    pub fn status(&self) -> String {
        self.ask(&[], &format!("http://{}/status.json", self.admin))
    }

    pub fn metrics(&self) -> String {
        self.ask(&[], &format!("http://{}/metrics", self.admin))
    }

    pub fn page(&self) -> String {
        self.ask(&[], &format!("http://{}/", self.admin))
    }

    pub fn reload(&self) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_levee"))
            .args(["reload", "--admin", &self.admin])
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// What openssl says of the certificate that is shown.
    pub fn openssl(&self, arguments: &[&str]) -> String {
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &format!("127.0.0.1:{}", self.https)])
            .args(["-servername", "site.test"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// As `systemctl stop` does, until it has ended.
    pub fn stop(&mut self) {
        let process = self.program.process.id().to_string();
        let sent = Command::new("kill").arg(&process).status();
        assert!(sent.unwrap().success());
        assert!(self.program.process.wait().unwrap().success());
    }

    /// As if the power failed.
    pub fn kill(&mut self) {
        self.program.process.kill().unwrap();
        self.program.process.wait().unwrap();
    }
}
