//! Three rescue servers of one origin share its objects: each has its home with one of them, which
//! fetches it for all, whoever dies.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::crowd::{Crowd, assert_nobody_is_led_astray};
use crate::http;
use crate::stage::{ALICE, BOB, Draft, NEWS, Place, Town, UNSEEN, until};

/// Visitors a second for whom two of the three are not enough.
const CROWD: u32 = 60;
/// Objects in each part of the test.
const OBJECTS: usize = 40;

const CAROL: Draft = Draft {
    name: "carol",
    ..ALICE
};

/// A member, and the alias by which it serves.
type Member = (Place, String);

fn cast() -> (Town, Place, Crowd, Vec<Member>) {
    let town = Town::new();
    let small = |draft: Draft, link| Draft {
        link,
        rescue: UNSEEN,
        ..draft
    };
    let members = [
        town.start(&small(ALICE, "220 kB/s")),
        town.start(&small(BOB, "210 kB/s")),
        town.start(&small(CAROL, "200 kB/s")),
    ];
    let logged = "[integrity]\nsampling = \"0 s\"\n[log]\naccess = \"access.log\"";
    let news = town.start(&Draft {
        rescue: logged,
        ..NEWS
    });
    news.knows(&["alice", "bob", "carol"]);
    let crowd = Crowd::send(&news, CROWD);
    let members = members.map(|member| {
        let alias = news.rescued_by(member.name);
        (member, alias)
    });
    (town, news, crowd, members.into())
}

fn name(part: &str, number: usize) -> String {
    format!("/{part}-{number}.html")
}

fn text(path: &str) -> String {
    format!("<p>{path}, which the crowd does not know.</p>\n").repeat(10)
}

/// Puts objects into the origin's folder that nobody has asked for yet.
fn publish(news: &Place, part: &str) {
    for number in 0..OBJECTS {
        let path = name(part, number);
        fs::write(news.home.join("public").join(&path[1..]), text(&path)).unwrap();
    }
}

/// Asks a member for an object until it has room for us; it must be the right one.
fn ask((place, alias): &Member, path: &str) {
    let answer = until(path, || {
        let answer = http::try_get(place.socket(), alias, path).ok()?;
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(answer.status, 200, "{path} at {alias}");
    assert_eq!(String::from_utf8(answer.body).unwrap(), text(path));
}

/// How often the origin was asked for each object of a part by its rescue servers.
fn fetches(news: &Place, part: &str) -> BTreeMap<String, usize> {
    let log = fs::read_to_string(news.home.join("access.log")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split(' ');
        let is_fetch = words.nth(1) == Some("fetch");
        let path = words.nth(4).unwrap_or_default();
        if is_fetch && path.starts_with(&format!("/{part}-")) {
            *counts.entry(path.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Waits until the log is as long as it must be.
fn all_fetched(news: &Place, part: &str, objects: usize) -> BTreeMap<String, usize> {
    until("the log", || {
        let counts = fetches(news, part);
        (counts.len() == objects).then_some(counts)
    })
}

/// How often an object's home was passed over by any of these.
fn all_exceptions(members: &[Member]) -> u64 {
    let of_member = |(place, _): &Member| {
        let status = place.status();
        let all = status["lifetime"]["home_exceptions"].as_object().unwrap();
        all.values().filter_map(Value::as_u64).sum::<u64>()
    };
    members.iter().map(of_member).sum()
}

/// Waits until each of `members` asks the others.
fn know_each_other(news: &Place, members: &[Member]) {
    publish(news, "first");
    for member in members {
        let mut number = 0;
        until("an object that came from its home", || {
            ask(member, &name("first", number % OBJECTS));
            number += 1;
            let status = member.0.status();
            (status["lifetime"]["home_answers"].as_u64() > Some(0)).then_some(())
        });
    }
}

#[test]
fn each_object_leaves_its_origin_once_however_many_help_and_whoever_dies() {
    let (_town, news, crowd, mut members) = cast();
    know_each_other(&news, &members);

    let before = all_exceptions(&members);
    publish(&news, "second");
    for number in 0..OBJECTS {
        for member in &members {
            ask(member, &name("second", number));
        }
    }
    let counts = all_fetched(&news, "second", OBJECTS);
    assert_eq!(all_exceptions(&members), before, "nothing went wrong");
    assert!(counts.values().all(|&count| count == 1), "{counts:?}");

    publish(&news, "third");
    let mut before = 0;
    for number in 0..OBJECTS {
        if number == OBJECTS / 2 {
            members.remove(1).0.kill();
            before = all_exceptions(&members);
        }
        for member in &members {
            ask(member, &name("third", number));
        }
    }
    let counts = all_fetched(&news, "third", OBJECTS);
    let total: usize = counts.values().sum();
    let excepted = all_exceptions(&members) - before;
    assert!(excepted < 20, "{excepted} exceptions");
    assert!(total as u64 <= OBJECTS as u64 + excepted, "{counts:?}");
    assert_nobody_is_led_astray(&crowd.leave());
}
