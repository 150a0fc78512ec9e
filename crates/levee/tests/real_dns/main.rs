//! A site that keeps its own zone, rescued by real servers: its name follows the load, outlives it,
//! and no server ever reaches another by it (R10).
#![allow(clippy::unwrap_used)]

#[path = "../../../dns/tests/real_bind/named.rs"]
#[allow(dead_code, reason = "the file is for the tests of levee-dns as well")]
mod named;
#[path = "../support/program.rs"]
mod program;
mod stage;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use named::{dig, dig_with};
use stage::{Community, LARGE, ORIGIN, OWN_PAGE, SITE, SMALL, ZONE, until};

/// Answers of which the first addresses are counted.
const ANSWERS: usize = 200;

/// The addresses of the site's name as `server` tells them, sorted.
fn addresses(server: SocketAddr) -> Vec<String> {
    dig(server, &format!("{SITE} A"))
}

/// How often each address came first.
fn firsts(community: &Community) -> BTreeMap<String, usize> {
    let questions = format!("{SITE} A\n").repeat(ANSWERS);
    let file = community.write("questions", &questions);
    // By TCP: whoever asks so often by UDP is told to.
    let arguments = format!(
        "+tcp +keepopen +noall +question +answer -f {}",
        file.display()
    );
    let text = dig_with(community.name_server, &arguments);
    let mut firsts = BTreeMap::new();
    for answer in text.split(&format!(";{SITE}.")).skip(1) {
        let first = answer.lines().find(|line| line.starts_with(SITE)).unwrap();
        let address = first.split_whitespace().last().unwrap();
        *firsts.entry(address.to_owned()).or_default() += 1;
    }
    firsts
}

#[test]
fn the_name_follows_the_load_and_goes_on_when_its_origin_is_killed() {
    let mut community = Community::start();
    let (primary, secondary) = (community.name_server, community.secondary.address());
    assert_eq!(addresses(primary), [ORIGIN]);

    let crowd = community.crowd();
    let all = [ORIGIN, LARGE, SMALL];
    until("both rescue servers enter the name", || {
        addresses(primary) == all
    });
    until("the secondary is told", || addresses(secondary) == all);
    let firsts = firsts(&community);
    println!("of {ANSWERS} answers these came first: {firsts:?}");
    let came = |address: &str| firsts.get(address).copied().unwrap_or_default() as f64;
    // The large one has almost three times the room of the small one, and the origin has little.
    assert!(came(LARGE) > 1.5 * came(SMALL), "{firsts:?}");
    assert!(
        came(SMALL) > 0.0 && came(ORIGIN) < came(LARGE),
        "{firsts:?}"
    );
    speak_by_addresses_alone(&community);
    is_read_again(&community, &all);

    crowd.leaves();
    until("they leave the name after the rescue", || {
        addresses(primary) == [ORIGIN]
    });
    until("the secondary is told of that too", || {
        addresses(secondary) == [ORIGIN]
    });

    let _crowd = community.crowd();
    until("they come back with the crowd", || {
        addresses(secondary).len() > 1
    });
    until("one of them holds the page", || {
        [LARGE, SMALL].iter().any(|one| community.shows_page(one))
    });
    community.kill_origin();
    until("a rescue server goes on without it", || {
        [LARGE, SMALL].iter().any(|one| community.goes_on(one))
    });
    let left = addresses(secondary);
    assert!(left.len() > 1 && left.contains(&ORIGIN.into()), "{left:?}");
    // Who comes by the name to one of the others is shown what it holds, and no page of its own.
    for helper in [LARGE, SMALL] {
        let answer = community.visit(helper, "/");
        assert!(!answer.contains(OWN_PAGE), "{helper}: {answer}");
    }
    until("the name leads to the page", || {
        left.iter().any(|address| community.shows_page(address))
    });
    assert_eq!(community.strays(), 0, "somebody used a rotated name");
}

/// What it delivers at the address that it tells is right.
#[test]
fn who_has_some_visitors_come_to_another_machine_is_found() {
    let community = Community::start_with_a_second_address("[integrity]\nsampling = \"100 ms\"\n");
    community.other_answers("<!doctype html><p>buy this");
    let _crowd = community.crowd();
    until("it is expelled", || {
        community.expelled().contains("large.example")
    });
    assert!(!community.expelled().contains("small.example"));
}

/// A 503 that says when to come again.
fn is_refusal(answer: &str) -> bool {
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    head.starts_with("http/1.1 503 ") && head.contains("\r\nretry-after: ")
}

/// Nobody can take a dead origin's rescue servers out of its name, so they are asked by it for as
/// long as BIND has the records.
#[test]
fn by_the_name_of_a_killed_origin_there_are_its_pages_while_it_permits_and_then_a_503() {
    let mut community = Community::start_with("[integrity]\npermit = \"20 s\"\n");
    let secondary = community.secondary.address();
    let _crowd = community.crowd();
    let (all, helpers) = ([ORIGIN, LARGE, SMALL], [LARGE, SMALL]);
    until("both rescue servers enter the name", || {
        addresses(secondary) == all
    });
    until("both hold the page", || {
        helpers.iter().all(|one| community.shows_page(one))
    });
    community.kill_origin();
    for helper in helpers {
        until("it goes on without its origin", || {
            community.goes_on(helper)
        });
    }
    let mut held = 0;
    until("the permit ends", || {
        assert_eq!(addresses(secondary), all);
        let mut visit = |helper: &&str| {
            let was_permitted = community.goes_on(helper);
            let answer = community.visit(helper, "/");
            let is_page = answer.starts_with("HTTP/1.1 200") && answer.contains("Hello hello");
            assert!(is_page || is_refusal(&answer), "{answer}");
            let is_permitted = was_permitted && community.goes_on(helper);
            assert!(is_page || !is_permitted, "{answer}");
            held += usize::from(is_page && is_permitted);
            is_refusal(&answer)
        };
        helpers.iter().filter(|helper| visit(helper)).count() == helpers.len()
    });
    println!("held pages while it was permitted: {held}");
    assert!(held > 0);
    assert_eq!(addresses(secondary), all);
    for (helper, path) in helpers
        .iter()
        .flat_map(|helper| ["/", "/other.html", "/own.html"].map(|path| (helper, path)))
    {
        let answer = community.visit(helper, path);
        assert!(is_refusal(&answer), "{helper} {path}: {answer}");
        assert!(!answer.contains(OWN_PAGE), "{answer}");
    }
    // Their own visitors are served all the while.
    assert!(community.visit_large().contains(OWN_PAGE));
}

/// The zone file is read at a reload; what the rescue has put in stays, and so does the old zone
/// where the file cannot be read.
fn is_read_again(community: &Community, all: &[&str]) {
    let (primary, secondary) = (community.name_server, community.secondary.address());
    community.write("site.zone", &format!("{ZONE}blog IN A 192.0.2\n"));
    let (is_done, told) = community.reload();
    assert!(!is_done && told.contains("site.zone: line 6: "), "{told}");
    assert!(told.contains("the old zone stays"), "{told}");
    assert_eq!(addresses(primary), all);
    community.write("site.zone", &format!("{ZONE}blog IN A 192.0.2.7\n"));
    let (is_done, told) = community.reload();
    assert!(
        is_done && told.contains("zone site.test has serial"),
        "{told}"
    );
    for server in [primary, secondary] {
        until("the new record is there", || {
            dig(server, "blog.site.test A") == ["192.0.2.7"]
        });
        assert_eq!(addresses(server), all, "the rescue goes on");
    }
}

/// SOS, RATE, fetches and pushes have all happened, while every name that could lead to a server
/// led elsewhere.
fn speak_by_addresses_alone(community: &Community) {
    until("a copy was pushed", || community.copies_held() > 0);
    let before = community.fetches_served();
    assert!(community.alias_shows("/other.html"));
    until("it was fetched", || community.fetches_served() > before);
    for rate in community.rates() {
        assert!(rate > 0, "a rate was told");
    }
    assert_eq!(community.strays(), 0, "somebody used a rotated name");
}

#[test]
fn a_communitys_name_server_reads_its_zone_and_its_keys_again() {
    let server = stage::NameServer::start();
    let ask = |host: &str| dig(server.address, &format!("{host}.aliases.test A"));
    assert_eq!(ask("new"), [""; 0]);
    assert!(!server.updates("bob"));
    server.write("keys", &stage::keys(&["alice", "bob"]));
    server.write("aliases.zone", &format!("{ZONE}new IN A 192.0.2.8\n"));
    server.hangs_up();
    until("it is read again", || ask("new") == ["192.0.2.8"]);
    assert!(server.updates("bob"));
    server.write("aliases.zone", "nonsense\n");
    server.hangs_up();
    // Whoever is asked next has read it, or will: both times the old zone answers.
    assert_eq!(ask("new"), ["192.0.2.8"]);
    assert_eq!(ask("bob"), ["192.0.2.10"]);
}
