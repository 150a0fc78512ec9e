//! What a service manager sees of the real server: sd_notify(3) messages and socket activation;
//! and what a shell sees whose pipe ends early.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A levee, ended with the test.
struct Levee {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Levee {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The line that says where it listens.
    fn ready(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(line.contains("ready"), "{line}");
        line
    }

    fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Levee {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A service manager's end of the notification socket.
struct Manager(UnixDatagram);

impl Manager {
    /// Waits until one of the messages has this line.
    fn hears(&self, line: &str) {
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 4096];
        loop {
            let length = self.0.recv(&mut buffer).expect(line);
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|one| one.starts_with(line)) {
                return;
            }
        }
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "hello").unwrap();
    folder
}

#[test]
fn a_service_manager_hears_of_a_whole_life() {
    let folder = folder();
    let socket = folder.path().join("notify");
    let manager = Manager(UnixDatagram::bind(&socket).unwrap());
    let mut levee = Levee::start(
        Command::new(env!("CARGO_BIN_EXE_levee"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg(folder.path())
            .env("NOTIFY_SOCKET", &socket)
            .env("WATCHDOG_USEC", "2000000"),
    );
    manager.hears("READY=1");
    levee.ready();
    manager.hears("WATCHDOG=1");
    manager.hears("STATUS=");
    levee.signal("-HUP");
    manager.hears("RELOADING=1");
    manager.hears("READY=1");
    levee.signal("-TERM");
    manager.hears("STOPPING=1");
    assert!(levee.process.wait().unwrap().success());
}

/// Starts a levee that finds `listener` as its descriptor 3, as a service manager does it.
fn activated(listener: TcpListener, listen: SocketAddr, folder: &std::path::Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\" 3<&0 </dev/null",
            "sh",
        ])
        .arg(env!("CARGO_BIN_EXE_levee"))
        .args(["serve", "--listen", &listen.to_string()])
        .args(["--admin", "127.0.0.1:0"])
        .arg(folder)
        .stdin(Stdio::from(OwnedFd::from(listener)));
    command
}

#[test]
fn a_visitor_who_came_before_the_server_is_served_from_a_socket_that_was_handed_over() {
    let folder = folder();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts yet: the connection waits in the socket.
    let mut visitor = TcpStream::connect(address).unwrap();
    visitor.set_read_timeout(Some(PATIENCE)).unwrap();
    visitor
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut levee = Levee::start(&mut activated(listener, address, folder.path()));
    levee.ready();
    let mut answer = String::new();
    visitor.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[test]
fn a_socket_that_no_setting_names_is_refused_by_its_address() {
    let folder = folder();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let elsewhere = (Ipv4Addr::LOCALHOST, 0).into();
    let mut command = activated(listener, elsewhere, folder.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        told.contains(&address.to_string()) && told.contains("site.listen"),
        "{told}"
    );
}

#[test]
fn a_reader_who_has_seen_enough_is_no_fault() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    command.args(["explain", "--reference"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.is_empty(), "{told}");
}
