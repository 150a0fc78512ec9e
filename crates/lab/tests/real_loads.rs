//! Loads of held connections, against a bare loop: they stand when they say so, and end when they
//! are told to.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A child that is ended when the test is over.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the lab and gives its first line.
fn lab(arguments: &[&str]) -> (Ended, BufReader<std::process::ChildStdout>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_levee-lab"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    (Ended(child), stdout, line.trim().to_owned())
}

fn check(kind: &str, ready: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("10k"), vec![b'x'; 10_240]).unwrap();
    let (_server, _, line) = lab(&["bare", "--folder", folder.path().to_str().unwrap()]);
    let address = line.strip_prefix("bare loop: ready on ").unwrap();
    let call = ["load", kind, "--address", address, "--connections", "40"];
    let (mut load, mut stdout, line) = lab(&call);
    assert!(line.starts_with(ready), "{line}");
    // The end of its input ends it, with what it saw as its last line.
    drop(load.0.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("connections=40 errors=0"), "{rest}");
    assert!(load.0.wait().unwrap().success());
}

#[test]
fn idle_connections_stand_until_they_are_ended() {
    check("idle", "ready connections=40 errors=0");
}

#[test]
fn slow_readers_sip_until_they_are_ended() {
    check("slow", "ready connections=40 errors=0 bytes=");
}
