//! A page changes while rescue servers have it: each confirms that it has let it go, or is named.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::crowd::Crowd;
use crate::http;
use crate::stage::{ALICE, BOB, Draft, NEWS, Place, Town, page, until};

/// Visitors a second for whom one of the two is not enough.
const CROWD: u32 = 60;

/// The page that changes.
const PAGE: u32 = 5;

fn cast() -> (Town, Place, Place, Place) {
    let town = Town::new();
    let small = |draft: Draft, link| Draft { link, ..draft };
    let alice = town.start(&small(ALICE, "160 kB/s"));
    let bob = town.start(&small(BOB, "150 kB/s"));
    let news = town.start(&NEWS);
    news.knows(&["alice", "bob"]);
    (town, news, alice, bob)
}

/// Puts another text on the page.
fn change(news: &Place, text: &str) {
    let file = news.home.join("public").join(&page(PAGE)[1..]);
    fs::write(file, text.repeat(20)).unwrap();
}

/// What is on the page under an alias; retried while the rescue server is too busy for us.
fn shown(at: &Place, alias: &str) -> String {
    until("the page", || {
        let answer = http::try_get(at.socket(), alias, &page(PAGE)).ok()?;
        let text = String::from_utf8(answer.body).unwrap();
        (answer.status == 200).then_some(text)
    })
}

/// Sends PURGE for the page to the site itself.
fn purge(news: &Place) -> (u16, Value) {
    let mut stream = TcpStream::connect(news.socket()).unwrap();
    let host = &news.address;
    let path = page(PAGE);
    let request = format!("PURGE {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    let answer = http::read(&received).unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

/// What the answer says of a rescue server.
fn server<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut servers = report["rescue_servers"].as_array().unwrap().iter();
    let is_it = |server: &&Value| server["site"].as_str().unwrap().starts_with(name);
    servers
        .find(is_it)
        .unwrap_or_else(|| panic!("{name} in {report}"))
}

#[test]
fn a_purge_names_the_rescue_servers_that_have_confirmed_and_those_that_have_not() {
    let (_town, news, alice, bob) = cast();
    let crowd = Crowd::send(&news, CROWD);
    let (at_alice, at_bob) = (news.rescued_by("alice"), news.rescued_by("bob"));
    shown(&alice, &at_alice);
    shown(&bob, &at_bob);

    change(&news, "<p>second</p>\n");
    let (status, report) = purge(&news);
    assert_eq!((status, &report["confirmed"]), (200, &2.into()), "{report}");
    assert_eq!(server(&report, "alice")["objects"], 1);
    assert!(shown(&alice, &at_alice).starts_with("<p>second</p>"));
    assert!(shown(&bob, &at_bob).starts_with("<p>second</p>"));

    change(&news, "<p>third</p>\n");
    bob.freeze();
    let (status, report) = purge(&news);
    assert_eq!(status, 202, "{report}");
    assert_eq!(server(&report, "alice")["confirmed"], true);
    assert_eq!(server(&report, "bob")["confirmed"], false);
    assert!(server(&report, "bob")["why"].is_string(), "{report}");
    assert!(shown(&alice, &at_alice).starts_with("<p>third</p>"));

    // It comes back with the old page in its cache, and is asked to help again.
    bob.thaw();
    let again = news.rescued_anew("bob", &at_bob);
    assert!(shown(&bob, &again).starts_with("<p>third</p>"));
    crowd.leave();
}

#[test]
fn a_purge_after_the_death_of_a_rescue_server_waits_for_nobody() {
    let (_town, news, alice, mut bob) = cast();
    let crowd = Crowd::send(&news, CROWD);
    let at_alice = news.rescued_by("alice");
    news.rescued_by("bob");
    shown(&alice, &at_alice);
    change(&news, "<p>second</p>\n");
    bob.kill();
    news.wait("one rescue server", |status| {
        status["rescue_servers"].as_array().unwrap().len() == 1
    });
    let (status, report) = purge(&news);
    assert_eq!(
        (status, &report["unconfirmed"]),
        (200, &0.into()),
        "{report}"
    );
    assert!(shown(&alice, &at_alice).starts_with("<p>second</p>"));
    crowd.leave();
}
