//! Real processes of a closed community in a temporary folder, ended with the test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use levee::registry_client::{Directory, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::settings::TrustSettings;
use levee::trust::{Channel, CommunityStream, Trust, identity_at};
use levee_trust::{Purpose, UnixMillis};
use levee_wire::rescue::SosProof;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Stage {
    folder: TempDir,
    authority: String,
    registry: Option<(Child, SocketAddr)>,
}

impl Stage {
    pub fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("public")).unwrap();
        std::fs::write(folder.path().join("public/index.html"), "hello").unwrap();
        let mut stage = Self {
            folder,
            authority: String::new(),
            registry: None,
        };
        let told = stage.levee(&["community", "init", "mutual-aid.example"]);
        stage.authority = told.split('"').nth(1).unwrap().to_owned();
        stage
    }

    /// What a command prints, which must succeed.
    pub fn levee(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(self.folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Makes somebody's key and adds it to the list.
    pub fn adds(&self, name: &str, role: &str) {
        let key = self.levee(&["community", "identity", &format!("{name}/identity.key")]);
        self.levee(&["community", "add", name, &key, "--role", role]);
    }

    pub fn starts_registry(&mut self) {
        let mut process = self.starts(&[
            "registry",
            "--listen",
            "127.0.0.1:0",
            "--allow-private",
            "--authority",
            &self.authority,
            "--state",
            "registry",
            "--members",
            "members.list",
        ]);
        let line = first_line(&mut process);
        let address = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
        self.registry = Some((process, address));
    }

    pub fn starts_site(&self, name: &str) -> Site {
        let registry = self.registry.as_ref().unwrap().1;
        let text = format!(
            "[site]\nname = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
             [link]\nrate = \"1 MB/s\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [state]\nfolder = \"{name}\"\n[rescue]\nregistry_period = \"1 s\"\n\
             [community]\nregistry = \"{registry}\"\nrescue_listen = \"127.0.0.1:0\"\n\
             address = \"127.0.0.1\"\nalias_domain = \"aliases.test\"\nallow_private = true\n\
             authority = \"{}\"\n",
            self.authority
        );
        let file = format!("{name}.toml");
        std::fs::write(self.folder.path().join(&file), text).unwrap();
        let mut process = self.starts(&["serve", "-c", &file]);
        let line = first_line(&mut process);
        let admin = line
            .split("admin http://")
            .nth(1)
            .unwrap()
            .trim()
            .to_owned();
        Site { process, admin }
    }

    fn starts(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(self.folder.path())
            .args(arguments)
            .env("LEVEE_LOG", "off")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What somebody with this key knows and can sign.
    pub fn trust(&self, name: &str) -> Arc<Trust> {
        let settings = TrustSettings {
            identity: Some(self.folder.path().join(format!("{name}/identity.key"))),
            authority: Some(self.authority.parse().unwrap()),
            members: Some(self.folder.path().join("members.list")),
        };
        Arc::new(Trust::open(&settings, None).unwrap())
    }

    /// Where `name` takes calls for help, as the registry tells `asker`.
    pub fn rescue_address(&self, name: &str, asker: &str) -> SocketAddr {
        let (registry, trust) = (self.registry.as_ref().unwrap().1, self.trust(asker));
        let own = asker.parse().unwrap();
        runtime().block_on(async {
            let settings = RegistryClientSettings::new(fixed(vec![registry]), own, trust, 1);
            let client = RegistryClient::start(settings);
            let found = client.lookup(name.parse().unwrap()).await.unwrap();
            found.unwrap().rescue
        })
    }

    /// A call for help that was properly signed then.
    pub fn signed_at(&self, origin: &str, asked: &str, stamp: UnixMillis) -> String {
        let path = self.folder.path().join(format!("{origin}/identity.key"));
        let identity = identity_at(&path).unwrap();
        let (key, stamp) = (identity.key(), stamp.0);
        let covered = format!("SOS {origin} 127.0.0.1 80 600 v=1 stamp={stamp} id={key}");
        let text = SosProof::signed_text(&covered, &asked.parse().unwrap());
        let signature = identity.sign(Purpose::RescueRequest, text.as_bytes());
        format!("1 {covered} sig={signature}")
    }

    /// What openssl tells of a connection without a certificate of its own.
    pub fn openssl(&self, address: SocketAddr, arguments: &[&str]) -> String {
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &address.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some((mut process, _)) = self.registry.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A running site.
pub struct Site {
    process: Child,
    admin: String,
}

impl Site {
    /// Waits until the value at `pointer` of its status is `expected`.
    pub fn reaches(&self, pointer: &str, expected: &str) {
        self.wait(pointer, |found| found == expected, expected);
    }

    /// Waits until the value at `pointer` of its status has these words in it.
    pub fn reaches_words(&self, pointer: &str, words: &str) {
        self.wait(pointer, |found| found.contains(words), words);
    }

    /// Waits until so many, or more, were refused for this cause.
    pub fn counts(&self, cause: &str, expected: u64) {
        let name = format!("levee_trust_refusals_total{{cause=\"{cause}\"}} ");
        let end = Instant::now() + PATIENCE;
        loop {
            let metrics = self.metrics();
            let found = metrics.lines().find_map(|line| line.strip_prefix(&name));
            let count: u64 = found.map_or(0, |count| count.parse().unwrap());
            if count >= expected {
                return;
            }
            assert!(Instant::now() < end, "{name}{expected} never came");
        }
    }

    pub fn page(&self) -> String {
        self.get("/")
    }

    pub fn metrics(&self) -> String {
        self.get("/metrics")
    }

    fn wait(&self, pointer: &str, is_it: impl Fn(&str) -> bool, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.get("/status.json");
            let status: serde_json::Value = serde_json::from_str(&text).unwrap();
            let found = match status.pointer(pointer) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            if is_it(&found) {
                return;
            }
            let trust = status.pointer("/trust");
            assert!(
                Instant::now() < end,
                "{pointer}: {found}, not {wanted}: {trust:?}"
            );
        }
    }

    fn get(&self, path: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20"])
            .arg(format!("http://{}{path}", self.admin))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Somebody who types lines into TLS with the key of `trust`.
pub struct Typist {
    runtime: Runtime,
    stream: CommunityStream,
}

impl Typist {
    pub fn connects(trust: &Trust, channel: Channel, address: SocketAddr) -> Self {
        let runtime = runtime();
        let connecting = async {
            let stream = TcpStream::connect(address).await.unwrap();
            trust.connect(stream, channel).await.unwrap().0
        };
        let stream = runtime.block_on(connecting);
        Self { runtime, stream }
    }

    pub fn types(&mut self, line: &str) {
        let Self { runtime, stream } = self;
        runtime.block_on(async {
            stream
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            stream.flush().await.unwrap();
        });
    }

    /// The end, after RATEs that may still come.
    pub fn reads_the_rest(&mut self) -> String {
        loop {
            let line = self.reads();
            if !line.contains(" RATE ") {
                return line;
            }
        }
    }

    /// The next line; empty at the end.
    pub fn reads(&mut self) -> String {
        let Self { runtime, stream } = self;
        let mut line = Vec::new();
        let reading = async {
            while let Ok(byte) = stream.read_u8().await {
                if byte == b'\n' {
                    break;
                }
                line.push(byte);
            }
        };
        runtime.block_on(async { tokio::time::timeout(PATIENCE, reading).await.unwrap() });
        String::from_utf8(line).unwrap()
    }
}

fn runtime() -> Runtime {
    levee::serve::small_runtime().unwrap()
}

/// What a process says when it is ready.
fn first_line(process: &mut Child) -> String {
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    // The rest of its output is not wanted, and must not fill the pipe.
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    line
}
