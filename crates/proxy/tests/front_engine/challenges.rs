//! Certificate authorities that check a name: answered at once, by whoever is asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use levee_control::{CrawlerNames, Homes, OriginPhase};
use levee_proxy::{Behaviour, Challenges, CrawlerRules};
use levee_vocab::{ByteRate, Peer, Peers};

use crate::support::{Setup, origin, redirecting, rescuing, web};

const TARGET: &str = "/.well-known/acme-challenge/token";

fn showing(mut setup: Setup) -> Setup {
    let challenges = Arc::<Challenges>::default();
    challenges.show_file("token", "token.thumb");
    setup.settings.challenges = challenges;
    setup
}

#[test]
fn what_was_ordered_is_shown_under_every_name_and_in_every_crowd() {
    let setup = showing(Setup {
        // Nothing for crawlers, and the authority calls itself much like one.
        crawlers: Some(CrawlerRules {
            names: CrawlerNames::new(&[], &[]),
            by_behaviour: Behaviour::Watched,
            allowed: Vec::new(),
            fetches_max: 1,
        }),
        plan: redirecting("site-vh1.alias.example"),
        ..Setup::default()
    });
    let running = setup.start();
    let agent = "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://ca.example)";
    for host in ["site.example", "another.example", "SITE.example:8080"] {
        let asked = format!("GET {TARGET} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n");
        let response = running.ask(&asked);
        assert_eq!((response.status, response.text()), (200, "token.thumb"));
        assert_eq!(response.header("cache-control"), "no-store");
    }
    // What nobody here has ordered goes its usual way.
    running.write(".well-known/acme-challenge/other", "of another client");
    let other = running.get("/.well-known/acme-challenge/other");
    assert_eq!(other.text(), "of another client");
    assert_eq!(running.get("/.well-known/acme-challenge/none").status, 404);
}

#[test]
fn an_authority_at_a_rescue_server_is_answered_by_the_origin_and_nobody_else() {
    let (heads, head) = mpsc::channel();
    let address = origin(move |head| {
        heads.send(head.to_owned()).unwrap();
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\
         Connection: close\r\n\r\nproof"
            .into()
    });
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let home = origin(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into()
    });
    let mut plan = rescuing(address, OriginPhase::Live);
    let route = Arc::make_mut(&mut plan.hosts.origins[0]);
    let peer = Peer {
        alias: web("home.example", home.port()),
        address: home.ip(),
        tls: None,
        rate: ByteRate::from_kilobytes(1_000_000),
    };
    let peers = Peers {
        key: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        members: vec![peer],
    };
    // We are nobody's home, so the other is that of every object.
    let homes = Homes::new(&peers, &web("site-vh1.alias.example", 8080));
    route.homes = Some(Arc::new(homes.unwrap()));
    let running = Setup {
        plan,
        ..Setup::default()
    }
    .start();
    for _ in 0..2 {
        let response = running.ask(&format!(
            "GET {TARGET} HTTP/1.1\r\nHost: origin.example\r\n\r\n"
        ));
        assert_eq!((response.status, response.text()), (200, "proof"));
        assert!(head.recv().unwrap().starts_with(&format!("GET {TARGET} ")));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}
