//! A rescue server with a registry, origins that the test plays itself, and what they were asked.
//!
//! All names are this machine; an origin is a small server of a test's own, and its rescue is asked
//! for as a person with netcat would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::program::Program;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server of a test answers to a target: header lines, and the body.
pub type Answers = fn(&str) -> (&'static str, String);

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub target: String,
    pub cookie: String,
}

/// A web server that the test plays.
pub struct Player {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The rescue server and its registry.
pub struct Helper {
    folder: tempfile::TempDir,
    registry: Program,
    program: Program,
    settings: String,
}

/// A rescue that was asked for; it lasts as long as this.
pub struct Rescue {
    _link: BufReader<TcpStream>,
    /// The alias with its port.
    pub alias: String,
}

/// The status line, and all lines of the head; and the body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Player {
    pub fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, seen) = (stream.unwrap(), Arc::clone(&seen));
                std::thread::spawn(move || play(stream, answers, &seen));
            }
        });
        Self { port, asked }
    }

    /// What it was asked for so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The first request whose target begins so, once there is one.
    pub fn asked_for(&self, beginning: &str) -> Asked {
        let started = Instant::now();
        loop {
            let asked = self.asked();
            let found = asked.iter().find(|one| one.target.starts_with(beginning));
            if let Some(found) = found {
                return found.clone();
            }
            let waited = started.elapsed();
            assert!(
                waited < PATIENCE,
                "nobody asked for {beginning}: {asked:#?}"
            );
            std::thread::yield_now();
        }
    }
}

fn play(stream: TcpStream, answers: Answers, asked: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let head = read_head(&mut reader)?;
        let target = head.split(' ').nth(1)?.to_owned();
        let (lines, body) = answers(&target);
        let cookie = field(&head, "cookie").to_owned();
        asked.lock().unwrap().push(Asked { target, cookie });
        let status = match lines.starts_with("HTTP/") {
            true => "",
            false => "HTTP/1.1 200 OK\r\n",
        };
        let length = body.len();
        let answer = format!("{status}{lines}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// The value of the first field called `name`; nothing where there is none.
fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.trim())
}

impl Helper {
    /// Starts it in front of `site`, with further lines of settings.
    pub fn start(site: &Player, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let levee = env!("CARGO_BIN_EXE_levee");
        let arguments = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let registry = Program::start(Command::new(levee).args(arguments));
        let text = format!(
            "[site]\nname = \"www.helper.test\"\nlisten = \"127.0.0.1:0\"\n\
             upstream = \"http://127.0.0.1:{}\"\n[link]\nrate = \"20 MB/s\"\n\
             [community]\nregistry = \"127.0.0.1:{}\"\nrescue_listen = \"127.0.0.1:0\"\n\
             address = \"127.0.0.1\"\nalias_domain = \"aliases.test\"\nallow_private = true\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n[state]\nfolder = \"state\"\n{settings}\n",
            site.port,
            registry.port("127.0.0.1:"),
        );
        let program = Self::run(folder.path().join("levee.toml"), &text);
        Self {
            folder,
            registry,
            program,
            settings: text,
        }
    }

    fn run(path: PathBuf, settings: &str) -> Program {
        std::fs::write(&path, settings).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        Program::start(command.arg("serve").arg("-c").arg(path))
    }

    /// Where a file of its own is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        drop(self.program.process.kill());
        let _ = self.program.process.wait();
        self.program = Self::run(self.folder.path().join("levee.toml"), &self.settings);
    }

    /// Changes its settings while it runs.
    pub fn reload(&mut self, from: &str, to: &str) {
        assert!(self.settings.contains(from), "{from}");
        self.settings = self.settings.replace(from, to);
        std::fs::write(self.folder.path().join("levee.toml"), &self.settings).unwrap();
        let answer = self.ask_admin("POST /-/reload");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// The port of its web server.
    pub fn port(&self) -> u16 {
        self.program.port("site http://www.helper.test:")
    }

    /// What its admin address answers to this beginning of a request line.
    fn ask_admin(&self, line: &str) -> Answer {
        let port = self.program.port("admin http://127.0.0.1:");
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        ask(
            stream,
            &format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"),
        )
    }

    /// Asks it for help in the name of `host`, as whose web server `player` stands. What it says
    /// instead, where it refuses.
    pub fn rescue(&self, host: &str, player: &Player) -> Result<Rescue, String> {
        let mut link = BufReader::new(TcpStream::connect(self.rescue_address()).unwrap());
        let key = "5".repeat(32);
        let sos = format!("1 SOS {host} 127.0.0.1 {} 600 key={key}\r\n", player.port);
        link.get_mut().write_all(sos.as_bytes()).unwrap();
        let mut answer = String::new();
        link.read_line(&mut answer).unwrap();
        let mut words = answer.split_whitespace();
        match (words.nth(1), words.nth(1)) {
            (Some("200"), Some(alias)) => Ok(Rescue {
                alias: format!("{alias}:{}", self.port()),
                _link: link,
            }),
            _ => Err(answer.trim().to_owned()),
        }
    }

    /// Where it is asked for help, as its registry says.
    fn rescue_address(&self) -> String {
        let stream = TcpStream::connect(("127.0.0.1", self.registry.port("127.0.0.1:"))).unwrap();
        let mut reader = BufReader::new(stream);
        let started = Instant::now();
        for number in 1.. {
            assert!(started.elapsed() < PATIENCE, "it never registered");
            let search = format!("{number} QUERY www.helper.test\r\n");
            reader.get_mut().write_all(search.as_bytes()).unwrap();
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(2) == Some(&"ENTRY") {
                return format!("{}:{}", words[5], words[6]);
            }
            // The registry cuts off who asks without a pause.
            std::thread::sleep(Duration::from_millis(100));
        }
        unreachable!("numbers have no end")
    }

    /// What it says of itself, once `is_so`.
    pub fn status(&self, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let started = Instant::now();
        loop {
            let answer = self.ask_admin("GET /status.json");
            let status = serde_json::from_str(&answer.body).unwrap();
            if is_so(&status) {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "never so: {status:#}");
            std::thread::yield_now();
        }
    }

    /// Gets `target` of `host`, with further header lines.
    pub fn get(&self, host: &str, target: &str, lines: &str) -> Answer {
        let stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        ask(
            stream,
            &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{lines}"),
        )
    }

    /// Whether the registry still runs.
    pub fn is_whole(&mut self) -> bool {
        let ended = |program: &mut Program| program.process.try_wait().unwrap();
        ended(&mut self.registry).is_none() && ended(&mut self.program).is_none()
    }
}

impl Answer {
    /// The value of the first field called `name`; nothing where there is none.
    pub fn field(&self, name: &str) -> &str {
        field(&self.head, name)
    }
}

fn ask(mut stream: TcpStream, head: &str) -> Answer {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("{head}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
