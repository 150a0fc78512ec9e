//! Who helps whom: two who call at once, and two who are helped by one.

use std::collections::BTreeSet;

use crate::crowd::{Crowd, assert_all_are_right, assert_nobody_is_led_astray};
use crate::stage::{ALICE, Draft, NEWS, PAGES, Place, RUSH, Town, UNSEEN, body_of, page, until};

/// A second site that is overrun, with the same paths.
const BLOG: Draft = Draft {
    name: "blog",
    ..NEWS
};

#[test]
fn two_sites_that_call_each_other_at_once_are_helped_by_the_third() {
    let town = Town::new();
    let (news, blog) = (town.start(&NEWS), town.start(&BLOG));
    news.knows(&["blog"]);
    blog.knows(&["news"]);
    let crowds = [Crowd::send(&news, RUSH), Crowd::send(&blog, RUSH)];
    // Each has nobody but the other, who is in the same need: both say no, and look for others.
    for place in [&news, &blog] {
        place.wait("the end of the list", |status| {
            never_both(status);
            let decisions = status["decisions"].to_string();
            decisions.contains("nobody is left to ask for help")
        });
    }
    let alice = town.start(&ALICE);
    for place in [&news, &blog] {
        let alias = until("rescue by alice", || {
            for status in [news.status(), blog.status()] {
                never_both(&status);
            }
            let status = place.status();
            let peer = &status["rescue_servers"][0];
            (peer["site"] == alice.address.to_string().as_str())
                .then(|| peer["alias"].as_str().unwrap().to_owned())
        });
        let crowd = if place.name == "news" {
            &crowds[0]
        } else {
            &crowds[1]
        };
        crowd.is_redirected_to(&alias);
    }
    for crowd in crowds {
        assert_nobody_is_led_astray(&crowd.leave());
    }
    for place in [&news, &blog, &alice] {
        place.is_normal_again();
    }
}

/// No server rescues and is rescued.
fn never_both(status: &serde_json::Value) {
    let origins = status["origins"].as_array().unwrap();
    let rescues = origins.iter().any(|origin| origin["phase"] == "live");
    let is_rescued = !status["rescue_servers"].as_array().unwrap().is_empty();
    assert!(!(rescues && is_rescued), "{status}");
}

#[test]
fn two_origins_at_one_rescue_server_never_mix() {
    let town = Town::new();
    let alice = town.start(&Draft {
        rescue: UNSEEN,
        ..ALICE
    });
    // Neither may ask the other.
    let alone = "[integrity]\nsampling = \"0 s\"\n[help]\norigins_max = 0";
    let draft = |draft| Draft {
        rescue: alone,
        ..draft
    };
    let (news, blog) = (town.start(&draft(NEWS)), town.start(&draft(BLOG)));
    news.knows(&["alice"]);
    blog.knows(&["alice"]);
    let crowds = [Crowd::send(&news, RUSH), Crowd::send(&blog, RUSH)];
    let aliases = [news.rescued_by("alice"), blog.rescued_by("alice")];
    for (crowd, alias) in crowds.iter().zip(&aliases) {
        crowd.is_redirected_to(alias);
    }
    // By the aliases, and by the origins' own names, over and over again.
    for (place, alias) in [&news, &blog].into_iter().zip(&aliases) {
        for path in (0..PAGES).map(page) {
            let own_name = place.address.to_string();
            for name in [alias, &own_name] {
                let body = alice.get(name, &path).body;
                assert_eq!(body, body_of(place.name, &path).as_bytes(), "{name}{path}");
            }
        }
    }
    // By its own name it serves its own pages.
    let own = alice.get(&alice.address.to_string(), &page(0)).body;
    assert_eq!(own, body_of("alice", &page(0)).as_bytes());
    let mut served = BTreeSet::new();
    for (crowd, alias) in crowds.into_iter().zip(&aliases) {
        // The crowd compares every page with what its own site has.
        let visits = crowd.leave();
        assert_all_are_right(&visits);
        let hops = visits.iter().flat_map(|visit| &visit.hops);
        let by_alias = hops.filter(|hop| hop.authority == *alias);
        served.extend(by_alias.map(|hop| hop.authority.clone()));
    }
    assert_eq!(served.len(), 2);
    fetched_each_page_once(&alice);
    for place in [&news, &blog, &alice] {
        place.is_normal_again();
    }
}

/// One fetch for each page of each origin, however many wanted it.
fn fetched_each_page_once(alice: &Place) {
    let fetches = alice.status()["lifetime"]["fetches"].as_u64().unwrap();
    assert_eq!(fetches, 2 * u64::from(PAGES));
}
