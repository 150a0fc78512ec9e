//! Real processes of a closed community in a temporary folder, ended with the test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use levee::registry_client::{Directory, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::settings::TrustSettings;
use levee::trust::{Channel, CommunityStream, Trust, identity_at};
use levee_trust::{Purpose, UnixMillis};
use levee_vocab::{ByteRate, WebAddress};
use levee_wire::registry::Entry;
use levee_wire::rescue::SosProof;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// Long enough for a busy machine; reached only when something is broken.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Pages of each site, the same on all of them.
pub const PAGES: u32 = 8;
/// A link that the crowd of a test overruns.
pub const THIN: &str = "54 kB/s";
/// One that it does not.
pub const WIDE: &str = "1 MB/s";

/// The folder and the authority of a community.
pub struct Stage {
    folder: TempDir,
    authority: String,
}

/// What a site is started with.
pub struct Draft<'a> {
    pub name: &'a str,
    pub link: &'a str,
    pub registries: &'a [SocketAddr],
    /// Further tables of its settings.
    pub more: &'a str,
}

impl Stage {
    pub fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().join("public");
        std::fs::create_dir(&public).unwrap();
        for number in 0..PAGES {
            let path = page(number);
            std::fs::write(public.join(&path[1..]), body_of(&path)).unwrap();
        }
        let mut stage = Self {
            folder,
            authority: String::new(),
        };
        let told = stage.levee(&["community", "init", "mutual-aid.example"]);
        stage.authority = told.split('"').nth(1).unwrap().to_owned();
        stage
    }

    /// A stage where these are members, `site` or `registry` each.
    pub fn of(members: &[(&str, &str)]) -> Self {
        let stage = Self::set();
        for (name, role) in members {
            stage.adds(name, role);
        }
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

    /// A registry with the key of `name`, linked to these others.
    pub fn starts_registry(&self, name: &str, peers: &[SocketAddr]) -> Registry {
        let peers: Vec<String> = peers.iter().map(|peer| format!("--peer={peer}")).collect();
        let mut arguments = vec![
            "registry",
            "--listen=127.0.0.1:0",
            "--admin=127.0.0.1:0",
            "--allow-private",
            "--members=members.list",
            "--authority",
            &self.authority,
            "--state",
            name,
        ];
        arguments.extend(peers.iter().map(String::as_str));
        let (process, said) = self.starts(&arguments, "ready on ");
        let told = |mark: &str| {
            let after = said.split(mark).nth(1).unwrap();
            after.split_whitespace().next().unwrap().parse().unwrap()
        };
        Registry {
            at: told("ready on "),
            face: Face(told("admin on ")),
            _process: process,
        }
    }

    pub fn starts_site(&self, draft: &Draft<'_>) -> Site {
        let file = self.writes(draft);
        let (process, said) = self.starts(&["serve", "-c", &file], "admin http://");
        let admin = said.split("admin http://").nth(1).unwrap();
        let web = said.split("site http://").nth(1).unwrap();
        let port = web.split([':', ',']).nth(1).unwrap();
        Site {
            web: WebAddress {
                host: draft.name.parse().unwrap(),
                port: port.parse().unwrap(),
            },
            face: Face(admin.trim().parse().unwrap()),
            _process: process,
        }
    }

    /// Starts a site; gives what it logs, until a line has `end` in it.
    pub fn log_of_site(&self, draft: &Draft<'_>, end: &str) -> Vec<String> {
        let file = self.writes(draft);
        let mut process = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(self.folder.path())
            .args(["serve", "-c", &file])
            .env("LEVEE_LOG", "info")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let _running = Running(process);
        let mut seen = vec![];
        for line in log.lines().map(Result::unwrap) {
            let is_last = line.contains(end);
            seen.push(line);
            if is_last {
                return seen;
            }
        }
        panic!("it ended: {seen:#?}")
    }

    /// Writes its settings; gives the name of the file.
    pub fn writes(&self, draft: &Draft<'_>) -> String {
        let Draft {
            name,
            link,
            registries,
            more,
        } = draft;
        let registries: Vec<_> = registries.iter().map(|at| format!("\"{at}\"")).collect();
        let (registries, authority) = (registries.join(", "), &self.authority);
        let text = format!(
            "[site]\nname = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
             [link]\nrate = \"{link}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [state]\nfolder = \"{name}\"\n\
             [rescue]\nregistry_period = \"1 s\"\ninterval = \"500 ms\"\nlow_intervals = 2\n\
             [community]\nregistries = [{registries}]\nrescue_listen = \"127.0.0.1:0\"\n\
             address = \"127.0.0.1\"\nalias_domain = \"aliases.test\"\nallow_private = true\n\
             authority = \"{authority}\"\n{more}\n"
        );
        let file = format!("{name}.toml");
        std::fs::write(self.folder.path().join(&file), text).unwrap();
        file
    }

    /// Starts it, and reads what it says until `ready` is among it.
    fn starts(&self, arguments: &[&str], ready: &str) -> (Running, String) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(self.folder.path())
            .args(arguments)
            .env("LEVEE_LOG", "off")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains(ready) {
            let count = output.read_line(&mut said).unwrap();
            assert!(count > 0, "it ended: {said}");
        }
        // The rest of its output is not wanted, and must not fill the pipe.
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
        (Running(process), said)
    }

    pub fn identity(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}/identity.key"))
    }

    /// What somebody with this key knows and can sign.
    pub fn trust(&self, name: &str) -> Arc<Trust> {
        let settings = TrustSettings {
            identity: Some(self.identity(name)),
            authority: Some(self.authority.parse().unwrap()),
            members: Some(self.folder.path().join("members.list")),
        };
        Arc::new(Trust::open(&settings, None).unwrap())
    }

    /// The member list as it is now.
    pub fn list(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("members.list")).unwrap()
    }

    /// Registers `name`, with its own key, as the one who answers calls for help at `rescue`.
    pub fn registers(&self, name: &str, rescue: SocketAddr, registry: &Registry) {
        let client = self.client(name, registry);
        let offer = offer_of(name, rescue);
        runtime().block_on(async { client().register(offer).await.unwrap() });
    }

    /// Where `name` takes calls for help, as the registry tells `asker`.
    pub fn rescue_address(&self, name: &str, asker: &str, registry: &Registry) -> SocketAddr {
        let client = self.client(asker, registry);
        let found = runtime().block_on(async { client().lookup(name.parse().unwrap()).await });
        found.unwrap().unwrap().rescue
    }

    /// Has somebody with the key of `trust` who knows these registries search until he has found
    /// those who are wanted.
    pub fn finds_until(
        &self,
        trust: &Arc<Trust>,
        registries: &[SocketAddr],
        are_wanted: impl Fn(&[String]) -> bool,
    ) {
        let own = "www.origin.example".parse().unwrap();
        let known = fixed(registries.to_vec());
        let settings = RegistryClientSettings::new(known, own, Arc::clone(trust), 1);
        let searching = async {
            let client = RegistryClient::start(settings);
            loop {
                let found = client.search(9).await.unwrap_or_default().into_iter();
                let found: Vec<_> = found.map(|one| one.site.host.to_string()).collect();
                if are_wanted(&found) {
                    return;
                }
            }
        };
        let searching = async { tokio::time::timeout(PATIENCE, searching).await };
        runtime().block_on(searching).unwrap();
    }

    /// A client of the registry, to be made inside of a runtime.
    pub fn client(&self, name: &str, registry: &Registry) -> impl Fn() -> RegistryClient + use<> {
        let (own, trust, at) = (name.parse().unwrap(), self.trust(name), registry.at);
        let settings = RegistryClientSettings::new(fixed(vec![at]), own, trust, 1);
        move || RegistryClient::start(settings.clone())
    }

    /// A call for help that was properly signed then.
    pub fn signed_at(&self, origin: &str, asked: &str, stamp: UnixMillis) -> String {
        let identity = identity_at(&self.identity(origin)).unwrap();
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

/// A process, ended by force when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running registry.
pub struct Registry {
    pub at: SocketAddr,
    pub face: Face,
    _process: Running,
}

/// A running site.
pub struct Site {
    pub web: WebAddress,
    pub face: Face,
    _process: Running,
}

/// What a running process shows its operator.
pub struct Face(pub SocketAddr);

impl Face {
    /// Waits until the value at `pointer` of its status is `expected`.
    pub fn reaches(&self, pointer: &str, expected: &str) {
        self.wait(pointer, |found| found == expected, expected);
    }

    /// Waits until the value at `pointer` of its status has these words in it.
    pub fn reaches_words(&self, pointer: &str, words: &str) {
        self.wait(pointer, |found| found.contains(words), words);
    }

    /// Waits until the value at `pointer` of its status has these words no more.
    pub fn loses_words(&self, pointer: &str, words: &str) {
        let wanted = format!("anything without {words}");
        self.wait(pointer, |found| !found.contains(words), &wanted);
    }

    /// Waits until so many, or more, were refused for this cause.
    pub fn counts(&self, cause: &str, expected: u64) {
        let is_it = |found: &str| count_of(found, cause) >= expected;
        let wanted = format!("{expected} of {cause}");
        self.wait("/trust/refused", is_it, &wanted);
    }

    /// The same, as it is told to who collects figures, and on the page for a person.
    pub fn tells(&self, cause: &str, expected: u64, words: &str) {
        self.counts(cause, expected);
        let name = format!("levee_trust_refusals_total{{cause=\"{cause}\"}} ");
        // The page is drawn anew in each interval.
        let end = Instant::now() + PATIENCE;
        loop {
            let metrics = self.get("/metrics");
            let found = metrics.lines().find_map(|line| line.strip_prefix(&name));
            let count: u64 = found.map_or(0, |count| count.parse().unwrap());
            if count >= expected && self.get("/").contains(words) {
                return;
            }
            assert!(Instant::now() < end, "{count} of {cause}, {words} never");
        }
    }

    /// The value at `pointer` of its status; text as it is, anything else as JSON.
    pub fn now(&self, pointer: &str) -> String {
        let text = self.get("/status.json");
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        match status.pointer(pointer) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// Waits until the value at `pointer` of its status is as it should be.
    pub fn wait(&self, pointer: &str, is_it: impl Fn(&str) -> bool, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = self.now(pointer);
            if is_it(&found) {
                return;
            }
            if Instant::now() > end {
                let trust = self.now("/trust");
                panic!("{pointer}: {found}, not {wanted}: {trust}");
            }
            // A busy machine has better to do than to answer this.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn get(&self, path: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20"])
            .arg(format!("http://{}{path}", self.0))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// How often something was refused for `cause`, by the list in a status.
fn count_of(refused: &str, cause: &str) -> u64 {
    let list: Vec<serde_json::Value> = serde_json::from_str(refused).unwrap_or_default();
    let mut causes = list.iter();
    let found = causes.find(|one| one["cause"] == cause);
    found.map_or(0, |one| one["count"].as_u64().unwrap())
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

    /// Types a line, and reads the next one.
    pub fn asks(&mut self, line: &str) -> String {
        self.types(line);
        self.reads()
    }

    /// Reads lines until one begins so; RATEs may come before it.
    pub fn reads_until(&mut self, beginning: &str) {
        loop {
            let line = self.reads();
            if line.starts_with(beginning) {
                return;
            }
            assert!(line.contains(" RATE "), "{line}, not {beginning}");
        }
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

/// What a member of a test's own offers: more than anybody else.
pub fn offer_of(name: &str, rescue: SocketAddr) -> Entry {
    let (host, port) = (name.parse().unwrap(), 8080);
    let free = ByteRate::from_kilobytes(9000);
    Entry::new(WebAddress { host, port }, rescue, free, LIFETIME)
}

/// Longer than any test.
const LIFETIME: Duration = Duration::from_secs(600);

pub fn runtime() -> Runtime {
    levee::serve::small_runtime().unwrap()
}

/// The path of a page.
pub fn page(number: u32) -> String {
    format!("/page-{number}.html")
}

/// What stands on a page: about 3 kB.
pub fn body_of(path: &str) -> String {
    format!("<p>{path}, where nobody else has it.</p>\n").repeat(75)
}
