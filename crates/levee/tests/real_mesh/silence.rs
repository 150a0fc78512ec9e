//! A resolver that hears questions and answers none.

use std::io::Write as _;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use crate::own_world::{is_inside, run};
use crate::program::Program;
use crate::registries::until;

/// Whoever asks would wait for minutes.
const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";

#[test]
fn who_is_told_to_stop_does_not_wait_for_a_resolver() {
    if !is_inside("silence::who_is_told_to_stop_does_not_wait_for_a_resolver") {
        return;
    }
    let mut resolver = tempfile::NamedTempFile::new().unwrap();
    resolver.write_all(RESOLVER.as_bytes()).unwrap();
    let path = resolver.path().to_str().unwrap();
    run(&["mount", "--bind", path, "/etc/resolv.conf"]);
    let silent = UdpSocket::bind("127.0.0.1:53").unwrap();
    silent
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("levee.toml"),
        "[site]\nname = \"a.example\"\nlisten = [\"127.0.0.1:0\"]\n\
         upstream = [\"http://app.example:80\"]\n[admin]\nlisten = \"127.0.0.1:0\"\n",
    )
    .unwrap();
    for (order, name) in [
        (
            "registry --listen 127.0.0.1:0 --allow-private --peer peer.example:7070",
            "peer",
        ),
        ("serve -c levee.toml", "app"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        command.current_dir(folder.path()).args(order.split(' '));
        let mut program = Program::start(&mut command);
        let mut question = [0; 512];
        while !String::from_utf8_lossy(&question).contains(name) {
            silent.recv(&mut question).expect("a question");
        }
        run(&["kill", "-TERM", &program.process.id().to_string()]);
        until(order, || program.process.try_wait().unwrap().is_some());
    }
}
