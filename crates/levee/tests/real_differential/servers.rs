//! The three servers, each in front of an application of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::application::{Application, Seen};

/// Longest wait for a server to start, or for its last word.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a server that says nothing is waited for.
const QUIET: Duration = Duration::from_millis(300);

/// See the head of this file.
pub struct Servers {
    pub levee: Server,
    pub nginx: Server,
    pub haproxy: Server,
    _folder: tempfile::TempDir,
}

/// A running server and what is behind it.
pub struct Server {
    process: Child,
    at: At,
    application: Application,
}

/// Where it listens: peers at a path, because they cannot pick a free port.
enum At {
    Port(SocketAddr),
    Path(PathBuf),
}

/// What became of a stream of requests.
#[derive(Debug)]
pub struct Outcome {
    /// Of each response, interim ones left out.
    pub statuses: Vec<u16>,
    /// What reached the application.
    pub seen: Vec<Seen>,
}

impl Servers {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        Self {
            levee: levee(path),
            nginx: nginx(path),
            haproxy: haproxy(path),
            _folder: folder,
        }
    }
}

fn levee(folder: &Path) -> Server {
    let application = Application::start();
    let settings = format!(
        "[site]\nname = \"site.example\"\nlisten = [\"127.0.0.1:0\"]\nupstream = \"http://{}\"\n\
         cores = 1\n\n[admin]\nlisten = \"127.0.0.1:0\"\n",
        application.address
    );
    let file = folder.join("levee.toml");
    fs::write(&file, settings).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_levee"))
        .args(["serve".as_ref(), "-c".as_ref(), file.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let output = process.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    let port = ready.split("site.example:").nth(1);
    let port = port.and_then(|rest| rest.split(',').next()?.parse().ok());
    let port: u16 = port.unwrap_or_else(|| panic!("no port in {ready:?}"));
    let address = (Ipv4Addr::LOCALHOST, port).into();
    Server {
        process,
        at: At::Port(address),
        application,
    }
}

fn nginx(folder: &Path) -> Server {
    let application = Application::start();
    let (socket, file) = (folder.join("nginx.sock"), folder.join("nginx.conf"));
    let (at, root) = (socket.display(), folder.display());
    let settings = format!(
        "daemon off; master_process off; pid {root}/nginx.pid; error_log {root}/nginx.log crit;\n\
         events {{}}\n\
         http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;\n\
         fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;\n\
         server {{ listen unix:{at};\n\
         location / {{ proxy_pass http://{}; proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\"; proxy_set_header Host $http_host;\n\
         proxy_ignore_client_abort on; }} }} }}\n",
        application.address
    );
    fs::write(&file, settings).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    peer(command, socket, application)
}

fn haproxy(folder: &Path) -> Server {
    let application = Application::start();
    let (socket, file) = (folder.join("haproxy.sock"), folder.join("haproxy.conf"));
    let settings = format!(
        "global\n  stats timeout 1s\ndefaults\n  mode http\n  timeout client 10s\n\
         timeout server 10s\n  timeout connect 5s\n  retries 0\n\
         frontend visitors\n  bind unix@{}\n  default_backend application\n\
         backend application\n  server one {}\n",
        socket.display(),
        application.address
    );
    fs::write(&file, settings).unwrap();
    let mut command = Command::new("haproxy");
    command.args(["-q", "-db", "-f"]).arg(&file);
    peer(command, socket, application)
}

fn peer(mut command: Command, socket: PathBuf, application: Application) -> Server {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().expect("the peer is installed");
    let started = Instant::now();
    while UnixStream::connect(&socket).is_err() {
        assert!(
            started.elapsed() < PATIENCE,
            "{} never came",
            socket.display()
        );
        std::thread::yield_now();
    }
    Server {
        process,
        at: At::Path(socket),
        application,
    }
}

impl Server {
    /// As [`Server::try_with`]; where this server saw less than `ours`, once more with the time
    /// to see as much: some stop at the end of what is sent, whatever they have read before.
    pub fn try_like(&self, request: &[u8], ours: &Outcome) -> Outcome {
        let outcome = self.try_with(request);
        match outcome.seen.len() < ours.seen.len() {
            true => self.try_until(request, ours.statuses.len()),
            false => outcome,
        }
    }

    /// Sends `request`, and only when that many answers have come, or nothing for a while, tells
    /// that there is nothing more.
    fn try_until(&self, request: &[u8], answers: usize) -> Outcome {
        let At::Path(path) = &self.at else {
            return self.try_with(request);
        };
        self.application.take();
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(QUIET)).unwrap();
        let _ = stream.write_all(request);
        let (mut came, mut piece) = (Vec::new(), [0; 4096]);
        while statuses(&came).len() < answers {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => came.extend_from_slice(&piece[..bytes]),
            }
        }
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        came.extend(read_to_end(&mut stream));
        Outcome {
            statuses: statuses(&came),
            seen: self.application.take(),
        }
    }

    /// Sends `request` and nothing more, and reads what comes until the server ends.
    pub fn try_with(&self, request: &[u8]) -> Outcome {
        self.application.take();
        let answers = match &self.at {
            At::Port(address) => {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                // A server that has refused the beginning may not want the rest.
                let _ = stream.write_all(request);
                let _ = stream.shutdown(Shutdown::Write);
                read_to_end(&mut stream)
            }
            At::Path(path) => {
                let mut stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let _ = stream.write_all(request);
                let _ = stream.shutdown(Shutdown::Write);
                read_to_end(&mut stream)
            }
        };
        Outcome {
            statuses: statuses(&answers),
            seen: self.application.take(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All that comes; a reset is an end as well.
fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    answers
}

/// Statuses of the final responses in a stream of them. Our application's bodies hold no status
/// line, nor do the peers' pages of errors.
fn statuses(answers: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(answers);
    let lines = text.match_indices("HTTP/1.");
    let status = |at: usize| text.get(at + 9..at + 12)?.parse().ok();
    lines
        .filter_map(|(at, _)| status(at))
        .filter(|status| *status >= 200)
        .collect()
}
