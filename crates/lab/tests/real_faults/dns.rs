//! Rescue servers in the origin's name: BIND keeps the zone, and everything in turn dies.
//!
//! All servers have one port, as visitors who come by a name expect, so each has an address of its
//! own.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use serde_json::Value;

use crate::crowd::Crowd;
use crate::http;
use crate::named::{KEY, Named, SECRET, Stage};
use crate::stage::{ALICE, Draft, NEWS, Place, RUSH, Town, body_of, page, until};

const ALICE_AT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The zone in which all sites of the stage lie, with an address that nobody of us put in.
const ZONE: &str = "$TTL 5\n\
    @ IN SOA ns admin 1 60 30 3600 5\n\
    @ IN NS ns\n\
    ns IN A 127.0.0.1\n\
    news IN A 127.0.0.1\n";

fn name_server() -> Named {
    Named::start_as(&Stage {
        name: "localhost",
        zone: Some(ZONE),
        at: None,
        statement: "type primary; update-policy { grant community. name news.localhost A; };",
    })
}

/// A port that is free at both addresses.
fn port() -> u16 {
    loop {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = one.local_addr().unwrap().port();
        if TcpListener::bind((ALICE_AT, port)).is_ok() {
            return port;
        }
    }
}

/// The origin, whose name `named` keeps, and alice, who would be found there.
fn cast(named: &Named, key: &str) -> (Town, Place, Place) {
    let town = Town::new();
    let port = port();
    fs::write(town.folder.path().join("dns.key"), key).unwrap();
    let alice = town.start(&Draft {
        address: ALICE_AT.into(),
        port,
        ..ALICE
    });
    let dns = format!(
        "[dns]\nserver = \"{}\"\nkey = \"../dns.key\"\nttl = \"60 s\"\n",
        named.address()
    );
    let news = town.start(&Draft {
        port,
        rescue: dns.leak(),
        ..NEWS
    });
    news.knows(&["alice"]);
    (town, news, alice)
}

/// More visitors than the origin can serve, who find alice where she is.
fn rush(news: &Place) -> Crowd {
    Crowd::send_through(news, RUSH, [("alice", ALICE_AT.into())].into())
}

/// Who is in the origin's name, as the name server tells it.
fn name_leads_to(named: &Named, addresses: &[IpAddr]) {
    until(&format!("{addresses:?} in the name"), || {
        let expected: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        (named.dig("news.localhost A") == expected).then_some(())
    });
}

fn dns<'a>(status: &'a Value, field: &str) -> &'a str {
    status["dns"][field].as_str().unwrap_or_default()
}

const ALONE: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];
const BOTH: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(ALICE_AT)];

#[test]
fn a_rescue_server_enters_the_origins_name_and_serves_who_comes_by_it() {
    let named = name_server();
    let (_town, news, alice) = cast(&named, KEY);
    let crowd = rush(&news);
    news.rescued_by("alice");
    name_leads_to(&named, BOTH);
    let status = news.wait("a settled name", |status| {
        dns(status, "state") == "settled" && status["dns"]["entered"][0] == "127.0.0.2"
    });
    assert_eq!(dns(&status, "name"), "news.localhost");
    // A visitor to whom DNS gave alice's address asks by the origin's name.
    let by_name = alice.get(&news.address.to_string(), &page(3));
    assert_eq!(by_name.body, body_of("news", &page(3)).as_bytes());
    // What servers say to each other goes by addresses: what alice lacks she fetches from the
    // origin although its name leads to herself as well.
    fs::write(news.home.join("public/new.html"), "new").unwrap();
    let fetched = alice.get(&news.address.to_string(), "/new.html");
    assert_eq!(fetched.body, b"new");
    crowd.leave();
    name_leads_to(&named, ALONE);
    news.is_normal_again();
    // Resolvers remember: who still comes gets the site, and not alice's own.
    let late = alice.get(&news.address.to_string(), &page(3));
    assert_eq!(late.body, body_of("news", &page(3)).as_bytes());
}

#[test]
fn what_a_killed_origin_left_in_its_name_is_taken_out_at_its_next_start() {
    let named = name_server();
    let (_town, mut news, _alice) = cast(&named, KEY);
    let crowd = rush(&news);
    name_leads_to(&named, BOTH);
    news.kill();
    assert_eq!(named.dig("news.localhost A").len(), 2);
    crowd.leave();
    news.restart();
    name_leads_to(&named, ALONE);
}

#[test]
fn a_server_that_is_stopped_leaves_with_its_rescue_servers_out_of_its_name() {
    let named = name_server();
    let (_town, mut news, _alice) = cast(&named, KEY);
    let crowd = rush(&news);
    name_leads_to(&named, BOTH);
    news.ask_to_stop();
    news.wait_for_end();
    assert_eq!(named.dig("news.localhost A"), ["127.0.0.1"]);
    crowd.leave();
}

#[test]
fn a_dead_rescue_server_leaves_the_name_and_a_dead_name_server_is_waited_for() {
    let mut named = name_server();
    let (_town, news, mut alice) = cast(&named, KEY);
    let crowd = rush(&news);
    name_leads_to(&named, BOTH);
    named.kill();
    alice.kill();
    let status = news.wait("a failing name", |status| dns(status, "state") == "failing");
    let cause = dns(&status, "cause");
    assert!(cause.contains("cannot be reached"), "{cause}");
    named.restart();
    name_leads_to(&named, ALONE);
    news.wait("a settled name", |status| {
        dns(status, "state") == "settled" && dns(status, "cause").is_empty()
    });
    crowd.leave();
}

#[test]
fn a_wrong_key_is_named_and_the_rescue_goes_on_by_redirects() {
    let named = name_server();
    let wrong = format!("nobody.:hmac-sha256:{SECRET}");
    let (_town, news, alice) = cast(&named, &wrong);
    let status = news.wait("a failing name", |status| dns(status, "state") == "failing");
    let cause = dns(&status, "cause");
    assert!(cause.contains("TSIG key `nobody`"), "{cause}");
    let crowd = rush(&news);
    let alias = news.rescued_by("alice");
    let answer: http::Answer = alice.get(&alias, &page(1));
    assert_eq!(answer.body, body_of("news", &page(1)).as_bytes());
    assert_eq!(named.dig("news.localhost A"), ["127.0.0.1"]);
    crowd.leave();
}

/// A name server for aliases, whose key may change all of them or nothing.
fn alias_server(granted: &str) -> Named {
    Named::start_as(&Stage {
        name: "localhost",
        zone: Some(ZONE),
        at: None,
        statement: &format!("type primary; update-policy {{ grant community. {granted}; }};"),
    })
}

/// The origin, and alice, who registers her aliases at `named`.
fn registering_cast(named: &Named) -> (Town, Place, Place) {
    let town = Town::new();
    fs::write(town.folder.path().join("dns.key"), KEY).unwrap();
    let dns = format!(
        "[dns]\nalias_server = \"{}\"\nalias_key = \"../dns.key\"\n",
        named.address()
    );
    let alice = town.start(&Draft {
        rescue: dns.leak(),
        ..ALICE
    });
    let news = town.start(&NEWS);
    news.knows(&["alice"]);
    (town, news, alice)
}

#[test]
fn an_alias_is_in_dns_before_its_origin_knows_it_and_again_after_a_restart() {
    let mut named = alias_server("zonesub A AAAA");
    let (_town, news, mut alice) = registering_cast(&named);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    let name = alias.split(':').next().unwrap().to_owned();
    let found = |named: &Named| named.dig(&format!("{name} A"));
    assert_eq!(found(&named), ["127.0.0.1"]);
    crowd.leave();
    alice.kill();
    named.kill();
    alice.restart();
    alice.wait("a failing registration", |status| {
        let cause = status["alias_names"]["cause"].as_str();
        cause.is_some_and(|cause| cause.contains("cannot be reached"))
    });
    named.restart();
    alice.wait("its alias in DNS", |status| {
        status["alias_names"]["registered"] == 1 && status["alias_names"]["cause"] == ""
    });
    assert_eq!(found(&named), ["127.0.0.1"]);
}

#[test]
fn an_origin_whose_alias_cannot_be_registered_is_declined_with_a_cause() {
    let named = alias_server("name ns.localhost A");
    let (_town, news, alice) = registering_cast(&named);
    let crowd = Crowd::send(&news, RUSH);
    let status = alice.wait("a declined call", |status| {
        status["alias_names"]["declined"].as_u64() > Some(0)
    });
    let cause = status["alias_names"]["cause"].as_str().unwrap();
    assert!(cause.contains("REFUSED"), "{cause}");
    assert!(
        news.status()["rescue_servers"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    crowd.leave();
}
