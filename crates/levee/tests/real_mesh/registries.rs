//! Registries as processes of the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use levee_observe::MeshStatus;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a registry is to run, and with whom.
#[derive(Clone)]
pub struct Plan {
    /// Words before the program.
    pub runner: Vec<String>,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    /// All registries, itself among them.
    pub peers: Vec<String>,
}

/// A running registry. Dropped, it is killed.
pub struct Registry {
    child: Child,
    plan: Plan,
}

impl Registry {
    pub fn start(plan: &Plan) -> Self {
        let own = [env!("CARGO_BIN_EXE_levee").to_owned()];
        let words: Vec<&String> = plan.runner.iter().chain(&own).collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["registry", "--allow-private"]);
        command.arg("--listen").arg(plan.listen.to_string());
        command.arg("--admin").arg(plan.admin.to_string());
        for peer in &plan.peers {
            command.arg("--peer").arg(peer);
        }
        command.env("LEVEE_LOG", "error").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = |line: String| line.starts_with("levee registry: ready");
        assert!(lines.any(|line| is_ready(line.unwrap())));
        let plan = plan.clone();
        Self { child, plan }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn restart(&mut self) {
        *self = Self::start(&self.plan);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How it stands with the registry whose admin address this is.
pub fn status(admin: SocketAddr) -> MeshStatus {
    serde_json::from_str(&get(admin, "/status.json")).unwrap()
}

/// A page of somebody's admin address.
pub fn get(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

/// A conversation with a registry.
pub struct Talk(BufReader<TcpStream>);

impl Talk {
    /// None where nobody answers.
    pub fn with(registry: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect_timeout(&registry, ANSWER_MAX).ok()?;
        stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
        Some(Self(BufReader::new(stream)))
    }

    /// The lines of the answer to `request`, without its number; none where nobody answers.
    pub fn ask(&mut self, request: &str) -> Option<Vec<String>> {
        let line = format!("1 {request}\n");
        self.0.get_mut().write_all(line.as_bytes()).ok()?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            // Nothing at all is the end of the connection.
            (self.0.read_line(&mut line).ok()? > 0).then_some(())?;
            let line = line.trim_end().trim_start_matches("1 ").to_owned();
            let is_last = !line.starts_with("210 ");
            lines.push(line);
            if is_last {
                return Some(lines);
            }
        }
    }
}

/// Waits, and tells how long.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        park_timeout(Duration::from_millis(20));
    }
    println!("{what}: {:.2} s", begun.elapsed().as_secs_f64());
}

/// A site gives a registry so long.
const ANSWER_MAX: Duration = Duration::from_millis(500);
