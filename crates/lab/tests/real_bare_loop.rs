//! The bare loop answers as a server would; else it would be no yardstick.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running bare loop over a folder with one file of 3 MB. Dropped, it is ended.
struct Bare {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

const FILE_BYTES: usize = 3_000_000;

impl Bare {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), vec![b'x'; FILE_BYTES]).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_levee-lab"))
            .args(["bare", "--folder"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("bare loop: ready on ").unwrap();
        Self {
            address: address.to_owned(),
            child,
            _folder: folder,
        }
    }

    /// Everything that comes until the server closes.
    fn answers_to(&self, requests: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(requests.as_bytes()).unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        answers
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn pipelined_requests_behind_a_large_answer_are_all_answered() {
    let bare = Bare::start();
    let answers = bare.answers_to(
        "GET /file HTTP/1.1\r\nHost: x\r\n\r\nGET /r/page HTTP/1.1\r\nHost: x\r\n\r\n\
         GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2);
    assert_eq!(answers.matches("HTTP/1.1 302 Found\r\n").count(), 1);
    assert_eq!(answers.matches("\r\nDate: ").count(), 3);
    assert!(answers.matches('x').count() >= 2 * FILE_BYTES);
}

#[test]
fn a_request_in_pieces_is_answered_once() {
    let bare = Bare::start();
    let mut stream = TcpStream::connect(&bare.address).unwrap();
    for piece in ["GET /nobody HT", "TP/1.1\r\nConnection: clo", "se\r\n\r\n"] {
        stream.write_all(piece.as_bytes()).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
}
