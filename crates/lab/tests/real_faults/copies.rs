//! A page becomes hot: it and its images are at all rescue servers before a visitor asks there, and
//! have left the origin about once.

use std::fs;

use serde_json::Value;

use crate::crowd::{Crowd, Page as Ending, count};
use crate::http;
use crate::stage::{ALICE, BOB, Draft, NEWS, Place, Town, page, until};

/// Visitors a second for whom two of the three are not enough.
const CROWD: u32 = 60;
/// Images of the first page.
const IMAGES: u32 = 4;
/// Bytes of each: more than what is too small to be copied, and no burden.
const IMAGE_BYTES: usize = 4000;

const CAROL: Draft = Draft {
    name: "carol",
    ..ALICE
};

fn image(number: u32) -> String {
    format!("/image-{number}.png")
}

/// What stands in the file of an image. Only its bytes count.
fn pixels(number: u32) -> Vec<u8> {
    vec![b'0' + u8::try_from(number).unwrap(); IMAGE_BYTES]
}

/// Puts the images beside the pages, and their names into the first page. The crowd loads pages
/// only, so whoever has an image was given it.
fn embed(news: &Place) {
    let public = news.home.join("public");
    let mut text = crate::stage::body_of(news.name, &page(0));
    for number in 0..IMAGES {
        let name = image(number);
        fs::write(public.join(&name[1..]), pixels(number)).unwrap();
        text.push_str(&format!("<img src=\"{name}\">"));
    }
    fs::write(public.join(&page(0)[1..]), text).unwrap();
}

fn number(status: &Value, path: &[&str]) -> u64 {
    let mut value = status;
    for step in path {
        value = &value[step];
    }
    value.as_u64().unwrap_or_default()
}

/// Lines of the origin's log that say that an image left for a rescue server.
fn images_left(news: &Place) -> usize {
    let log = fs::read_to_string(news.home.join("access.log")).unwrap_or_default();
    let is_image = |line: &&str| line.contains("fetch - [") && line.contains("/image-");
    log.lines().filter(is_image).count()
}

/// Waits until a member has so many copies.
fn takes_copies(member: &Place, copies: u64) {
    member.wait("copies", |status| {
        let taken = ["stored", "held"];
        let taken = taken.map(|end| number(status, &["lifetime", "copies", "taken", end]));
        taken.iter().sum::<u64>() >= copies
    });
}

/// Waits until a member holds each image, by a push or because it was told to get it.
fn takes_images(member: &Place) {
    until("the images", || {
        let log = fs::read_to_string(member.home.join("access.log")).ok()?;
        let came = |number: &u32| {
            let line = |status| format!("\"PUT {} HTTP/1.1\" {status} ", image(*number));
            log.contains(&line(201)) || log.contains(&line(200))
        };
        (0..IMAGES).all(|number| came(&number)).then_some(())
    });
}

/// Asks a member for each image until it has room for us; it must be the right one.
fn serves_images(member: &Place, alias: &str) {
    for number in 0..IMAGES {
        let body = until("an image", || {
            let answer = http::try_get(member.socket(), alias, &image(number)).ok()?;
            (answer.status == 200).then_some(answer.body)
        });
        assert_eq!(body, pixels(number));
    }
}

#[test]
fn a_hot_page_and_its_images_are_at_the_rescue_servers_before_anybody_asks_there() {
    let town = Town::new();
    let logged = |draft: Draft, link| Draft {
        link,
        rescue: "[log]\naccess = \"access.log\"",
        ..draft
    };
    let members = [
        town.start(&logged(ALICE, "220 kB/s")),
        town.start(&logged(BOB, "210 kB/s")),
        town.start(&logged(CAROL, "200 kB/s")),
    ];
    let news = town.start(&logged(NEWS, "54 kB/s"));
    embed(&news);
    news.knows(&["alice", "bob", "carol"]);
    let crowd = Crowd::send(&news, CROWD);
    let aliases = members
        .each_ref()
        .map(|member| news.rescued_by(member.name));

    for member in &members {
        takes_images(member);
    }
    for (member, alias) in members.iter().zip(&aliases) {
        serves_images(member, alias);
    }
    // A line of the log may come late, so how many there were before is not asked.
    let left = images_left(&news);
    assert!(
        left <= 2 * IMAGES as usize,
        "about one copy of each: {left}"
    );
    let sent = news.status();
    assert!(number(&sent, &["lifetime", "copies", "sent", "held"]) >= 12);
    for member in &members {
        let log = fs::read_to_string(member.home.join("access.log")).unwrap();
        assert!(log.contains("copy - ["), "{}: {log}", member.name);
    }
    assert_eq!(count(&crowd.leave(), Ending::Loop), 0);
}

#[test]
fn a_rescue_server_that_is_killed_while_it_takes_copies_costs_the_next_none() {
    let town = Town::new();
    let logged = |draft: Draft| Draft {
        rescue: "[log]\naccess = \"access.log\"",
        ..draft
    };
    let mut alice = town.start(&logged(ALICE));
    let bob = town.start(&logged(BOB));
    let news = town.start(&logged(NEWS));
    embed(&news);
    news.knows(&["alice", "bob"]);
    let crowd = Crowd::send(&news, CROWD);
    news.rescued_by("alice");
    takes_copies(&alice, 1);
    alice.kill();

    let alias = news.rescued_by("bob");
    takes_images(&bob);
    serves_images(&bob, &alias);
    let fetched = number(&bob.status(), &["lifetime", "copies", "taken", "stored"]);
    assert!(fetched >= u64::from(IMAGES), "{fetched} copies");
    assert_eq!(count(&crowd.leave(), Ending::Loop), 0);
}
