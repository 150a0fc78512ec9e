//! Visitors whom a rescue server sends back to the origin, and links that they share.

use crate::crowd::{Crowd, Page, assert_nobody_is_led_astray, in_a_rescue};
use crate::stage::{ALICE, Draft, NEWS, PAGES, RUSH, Town, body_of, page, until};

/// A word as a rescue server of last week signed it.
const OLD_WORD: &str = "levee-back=BQECCQkJCQkJCQkJ";

#[test]
fn a_link_with_a_word_that_proves_nothing_is_redirected_once_with_a_mark() {
    let (_town, news, alice, crowd, alias) = in_a_rescue();
    let authority = news.address.to_string();
    for word in [OLD_WORD, "levee-back="] {
        // In a crowd some are answered directly and some have to wait.
        let shared = format!("{}?{word}", page(2));
        let on = until("a redirect of a shared link", || {
            news.get(&authority, &shared).location
        });
        let before = format!("http://{alias}");
        let marked = on.strip_prefix(&before).unwrap();
        assert_ne!(marked, shared);
        let answer = alice.get(&alias, marked);
        assert_eq!(answer.body, body_of("news", &page(2)).into_bytes());
        for _ in 0..10 {
            let answer = news.get(&authority, marked);
            assert!([200, 503].contains(&answer.status), "{answer:?}");
        }
    }
    news.wait("all of them in the figures", |status| {
        let comebacks = &status["lifetime"]["comebacks"];
        let some = |word: &str| comebacks[word].as_u64() > Some(0);
        comebacks["returned"] == 20 && some("doubtful") && some("unsigned")
    });
    assert_nobody_is_led_astray(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}

#[test]
fn a_rescue_server_that_loses_copies_sends_back_and_gets_them_anew() {
    let town = Town::new();
    // Room for a few of the eight pages.
    let alice = town.start(&Draft {
        rescue: "[cache]\nmemory = \"20 kB\"",
        ..ALICE
    });
    // By what is hot alone: whoever holds a copy gets its visitors, and fetches nothing.
    let news = town.start(&Draft {
        link: "200 kB/s",
        rescue: "[hot_spots]\nlaw = \"resources\"",
        ..NEWS
    });
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    news.rescued_by("alice");
    alice.wait("visitors who are sent back", |status| {
        status["lifetime"]["sent_back"]["missing"].as_u64() > Some(5)
    });
    // It is told by those who come back, and has the copies made again.
    news.wait("copies in place of those that were lost", |status| {
        let held = status["lifetime"]["copies"]["sent"]["held"].as_u64();
        let told = status["lifetime"]["comebacks"]["believed"].as_u64();
        held > Some(u64::from(PAGES) + 2) && told > Some(5)
    });
    let visits = crowd.leave();
    assert_nobody_is_led_astray(&visits);
    let came_back = visits.iter().filter(|visit| visit.hops.len() == 3);
    let came_back: Vec<_> = came_back.collect();
    assert!(
        came_back.len() > 5,
        "{} of {}",
        came_back.len(),
        visits.len()
    );
    for visit in came_back {
        assert_eq!(visit.page, Page::Right, "{visit:?}");
    }
    assert!(visits.iter().all(|visit| visit.hops.len() <= 3));
}
