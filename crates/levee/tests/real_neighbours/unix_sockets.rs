//! Listening at a socket in the file system, as an operator and a proxy in front meet it.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::stage::{Levee, Stage, curl, handing_over, text_of};

fn ask(stage: &Stage, fields: &[&str]) -> String {
    let socket = stage.path("levee.sock").display().to_string();
    let arguments = ["--unix-socket", &socket, "http://site.example/"];
    curl(&[&arguments[..], fields].concat())
}

fn settings(stage: &Stage, more: &str) -> String {
    format!(
        "listen = [\"{}\"]\nupstream = \"{}\"\n{more}\n",
        stage.unix("levee.sock"),
        stage.unix("nginx.sock")
    )
}

#[test]
fn a_socket_lives_as_long_as_its_server_and_outlives_no_death() {
    let stage = Stage::new();
    let _nginx = stage.nginx_that_tells();
    let settings = settings(&stage, "unix_mode = \"600\"");
    let first = stage.levee(&settings);
    assert_eq!(ask(&stage, &[]), "127.0.0.1 by http");
    let path = stage.path("levee.sock");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A second one must not take it away.
    let second = stage.levee_command(&settings).output().unwrap();
    assert!(!second.status.success());
    let told = text_of(second);
    assert!(told.contains("a running process listens there"), "{told}");
    assert_eq!(ask(&stage, &[]), "127.0.0.1 by http");
    first.signal("-KILL");
    drop(first);
    assert!(path.exists());
    let mut third = stage.levee(&settings);
    assert_eq!(ask(&stage, &[]), "127.0.0.1 by http");
    third.signal("-TERM");
    assert!(third.wait().success());
    assert!(!path.exists());
}

#[test]
fn nginx_in_front_says_who_the_visitor_is() {
    let stage = Stage::new();
    let _nginx = stage.nginx_that_tells();
    let trusting = settings(&stage, "trusted_proxies = [\"127.0.0.1\"]");
    let _levee = stage.levee(&trusting);
    let in_front = Stage::new();
    let server = format!(
        "location / {{ proxy_pass http://{}:; proxy_set_header X-Forwarded-For 203.0.113.7;\n\
         proxy_set_header Host site.example; }}",
        stage.unix("levee.sock")
    );
    let _front = in_front.nginx("", &server);
    let socket = in_front.path("nginx.sock").display().to_string();
    let told = curl(&["--unix-socket", &socket, "http://site.example/"]);
    assert_eq!(told, "203.0.113.7, 127.0.0.1 by http");
}

#[test]
fn a_socket_that_a_service_manager_holds_is_served_and_left_to_it() {
    let stage = Stage::new();
    let path = stage.path("levee.sock");
    let held = UnixListener::bind(&path).unwrap();
    std::fs::create_dir(stage.path("public")).unwrap();
    stage.write("public/index.html", "hello");
    let mut command = handing_over(OwnedFd::from(held.try_clone().unwrap()));
    command
        .arg(env!("CARGO_BIN_EXE_levee"))
        .args(["serve", "--admin", "127.0.0.1:0", "--listen"])
        .arg(stage.unix("levee.sock"))
        .arg(stage.path("public"))
        .env("LEVEE_LOG", "error");
    let mut levee = Levee::start(&mut command);
    assert_eq!(ask(&stage, &[]), "hello");
    levee.signal("-TERM");
    assert!(levee.wait().success());
    assert!(path.exists());
}
