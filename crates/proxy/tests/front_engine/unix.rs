//! Visitors who come by a socket in the file system: a proxy on the same machine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use levee_net::{Inherited, ListenAddress};
use levee_proxy::{Front, FrontSettings};

use crate::support::{PATIENCE, Running, Setup, origin};

const PROXY: &str = "PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\n";
const FORWARDED: &str = "X-Forwarded-For: 203.0.113.7\r\n";

/// What a connection begins with.
enum Begins {
    WithHttp,
    WithProxyHeader,
}

/// An application that answers with what it heard, at a socket in `folder`.
fn start(folder: &Path, trusted: &[&str], begins: Begins) -> Running {
    let at = ListenAddress::Unix(folder.join("levee.sock"));
    let mut setup = Setup {
        upstream: Some(origin(|head| {
            let length = head.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}"
            )
        })),
        trusted: trusted.iter().map(|one| one.parse().unwrap()).collect(),
        ..Setup::default()
    };
    setup.settings.cores = 2;
    setup.settings.listen.push(at.clone());
    match begins {
        Begins::WithHttp => {}
        Begins::WithProxyHeader => setup.settings.proxied.push(at),
    }
    setup.start()
}

fn ask(folder: &Path, before: &str, fields: &str) -> String {
    let mut stream = UnixStream::connect(folder.join("levee.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "{before}GET / HTTP/1.1\r\nHost: site.example\r\n{fields}Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A connection that is refused may end by a reset.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap().to_lowercase()
}

#[test]
fn whoever_comes_by_a_socket_counts_as_somebody_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), &[], Begins::WithHttp);
    for _ in 0..20 {
        let answer = ask(folder.path(), "", FORWARDED);
        assert!(answer.starts_with("http/1.1 200 ok\r\n"), "{answer}");
        assert!(
            answer.contains("x-forwarded-for: 127.0.0.1\r\n"),
            "{answer}"
        );
    }
    // TCP beside it is served as ever.
    assert_eq!(running.get("/").status, 200);
    running.front.drain(PATIENCE);
    while !running.front.is_drained() {
        std::thread::yield_now();
    }
    assert!(!folder.path().join("levee.sock").exists());
}

#[test]
fn a_trusted_proxy_at_a_socket_says_who_the_visitor_is() {
    let folder = tempfile::tempdir().unwrap();
    let _running = start(folder.path(), &["127.0.0.1"], Begins::WithHttp);
    let answer = ask(folder.path(), "", FORWARDED);
    let told = "x-forwarded-for: 203.0.113.7, 127.0.0.1\r\n";
    assert!(answer.contains(told), "{answer}");
}

#[test]
fn a_proxy_introduces_its_visitor_at_a_socket_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let _running = start(folder.path(), &["127.0.0.1"], Begins::WithProxyHeader);
    let answer = ask(folder.path(), PROXY, "");
    assert!(
        answer.contains("x-forwarded-for: 203.0.113.9\r\n"),
        "{answer}"
    );
    assert_eq!(ask(folder.path(), "", ""), "");
}

#[test]
fn a_socket_in_use_stops_the_start_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let _running = start(folder.path(), &[], Begins::WithHttp);
    let mut settings = FrontSettings::listening_on(vec![]);
    let at = folder.path().join("levee.sock");
    settings.listen.push(ListenAddress::Unix(at.clone()));
    let error = Front::bind(settings, &Inherited::default()).unwrap_err();
    let told = error.to_string();
    assert!(told.contains(&at.display().to_string()), "{told}");
    assert!(told.contains("a running process listens there"), "{told}");
}
