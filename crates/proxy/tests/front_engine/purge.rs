//! The method PURGE on a site's own address: who may, what is meant, and what is answered.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use levee_proxy::{PurgeInlet, Reply};
use levee_vocab::Purge;

use crate::support::{Setup, get, origin};

type Wanted = Arc<Mutex<Vec<Purge>>>;

/// An inlet that notes what is wanted, and answers after a turn of the runtime.
fn inlet() -> (PurgeInlet, Wanted) {
    let wanted = Wanted::default();
    let notes = Arc::clone(&wanted);
    let inlet: PurgeInlet = Arc::new(move |purge| {
        notes.lock().unwrap().push(purge);
        Box::pin(async {
            Reply {
                status: StatusCode::ACCEPTED,
                json: "{\"objects\":3}\n".to_owned(),
            }
        })
    });
    (inlet, wanted)
}

fn loopback() -> Vec<levee_vocab::AddressBlock> {
    vec!["127.0.0.0/8".parse().unwrap()]
}

fn purge(fields: &str) -> String {
    format!("PURGE /news?page=2 HTTP/1.1\r\nHost: site.example\r\n{fields}\r\n")
}

#[test]
fn a_purge_is_carried_out_and_its_report_is_the_answer() {
    let (inlet, wanted) = inlet();
    let running = Setup {
        purge: Some(inlet),
        purge_from: loopback(),
        ..Setup::default()
    }
    .start();
    running.write("index.html", "home");
    let mut client = running.connect();
    for (fields, meant) in [
        ("", "/news?page=2 Hard"),
        ("Soft-Purge: 1\r\n", "/news?page=2 Soft"),
        (
            "Surrogate-Key: a b\r\nSurrogate-Key: c\r\n",
            "keys a b c Hard",
        ),
        ("Surrogate-Key: a\r\nSoft-Purge: 1\r\n", "keys a Soft"),
    ] {
        client.send(purge(fields));
        let answer = client.receive();
        assert_eq!((answer.status, answer.text()), (202, "{\"objects\":3}\n"));
        let purge = wanted.lock().unwrap().pop().unwrap();
        assert_eq!(format!("{} {:?}", purge.scope, purge.kind), meant);
    }
    // The connection goes on.
    client.send(get("/"));
    assert_eq!(client.receive().text(), "home");
}

#[test]
fn who_may_not_purge_is_refused_and_the_application_does_not_see_it() {
    let (inlet, wanted) = inlet();
    let application = origin(|_| panic!("the application is not asked"));
    let running = Setup {
        purge: Some(inlet),
        purge_from: vec!["192.0.2.0/24".parse().unwrap()],
        upstream: Some(application),
        ..Setup::default()
    }
    .start();
    assert_eq!(running.ask(&purge("")).status, 403);
    assert!(wanted.lock().unwrap().is_empty());
    let nobody = Setup {
        purge_from: loopback(),
        ..Setup::default()
    };
    assert_eq!(nobody.start().ask(&purge("")).status, 405);
}

#[test]
fn a_purge_through_a_proxy_or_a_browser_is_refused_and_nonsense_is_told_so() {
    let (inlet, wanted) = inlet();
    let running = Setup {
        purge: Some(inlet),
        purge_from: loopback(),
        ..Setup::default()
    }
    .start();
    for fields in [
        "X-Forwarded-For: 127.0.0.1\r\n",
        "Forwarded: for=127.0.0.1\r\n",
        "Via: 1.1 tunnel\r\n",
        "Origin: http://site.example\r\n",
    ] {
        assert_eq!(running.ask(&purge(fields)).status, 403, "{fields}");
    }
    let long = format!("Surrogate-Key: {}\r\n", "a".repeat(200));
    assert_eq!(running.ask(&purge(&long)).status, 400);
    let many = format!("Surrogate-Key: {}\r\n", "a ".repeat(17));
    assert_eq!(running.ask(&purge(&many)).status, 400);
    assert!(wanted.lock().unwrap().is_empty());
}
