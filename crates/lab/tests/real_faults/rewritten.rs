//! A page whose links were made relative for its rescue server, and what becomes of it when its
//! lifetime is over.

use std::fs;

use crate::crowd::{Crowd, Page as Ending, count};
use crate::http;
use crate::stage::{ALICE, Draft, NEWS, Place, RUSH, Town, body_of, page, until};

/// Times that the rewritten page was stored at `member`.
fn stored(member: &Place) -> usize {
    let log = fs::read_to_string(member.home.join("access.log")).unwrap_or_default();
    log.matches(&format!("\"PUT {} HTTP/1.1\" 201 ", page(0)))
        .count()
}

/// Waits until a visitor of `alias` is given exactly this page.
fn gives(member: &Place, alias: &str, text: &str) {
    until("the rewritten page", || {
        let answer = http::try_get(member.socket(), alias, &page(0)).ok()?;
        (answer.status == 200 && answer.body == text.as_bytes()).then_some(())
    });
}

#[test]
fn a_rewritten_page_whose_lifetime_is_over_comes_again_rewritten() {
    let town = Town::new();
    let alice = town.start(&Draft {
        rescue: "[log]\naccess = \"access.log\"",
        ..ALICE
    });
    let news = town.start(&Draft {
        rescue: "object_ttl = \"1 s\"\n[hot_spots]\nrewriting = true",
        ..NEWS
    });
    let text = |prefix: &str| {
        let image = format!("<img src=\"{prefix}/image.png\">");
        body_of(news.name, &page(0)) + &image
    };
    let absolute = text(&format!("http://{}", news.address));
    fs::write(news.home.join("public").join(&page(0)[1..]), absolute).unwrap();
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");

    gives(&alice, &alias, &text(""));
    for times in 2..=3 {
        until("the page, pushed again", || {
            (stored(&alice) >= times).then_some(())
        });
        gives(&alice, &alias, &text(""));
    }
    assert_eq!(count(&crowd.leave(), Ending::Loop), 0);
}
