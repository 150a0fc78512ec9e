//! SIGKILL: a rescue server, the origin, the registry.

use crate::crowd::{
    Crowd, Page, assert_all_are_right, assert_nobody_is_led_astray, assert_redirects_stop,
    assert_the_name_answers, count, in_a_rescue, in_a_rescue_of,
};
use crate::http;
use crate::stage::{
    ALICE, BOB, NEWS, PAGES, RUSH, Town, UNPERMITTING, assert_leads_back, body_of, page, until,
};

#[test]
fn redirects_to_a_killed_rescue_server_stop_within_one_interval() {
    let (_town, news, mut alice, bob) = Town::cast();
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let killed = crowd.now();
    alice.kill();
    // A visitor whose page at the alias is gone comes back by the origin's name.
    assert!(http::try_get(alice.socket(), &alias, &page(0)).is_err());
    let other = news.rescued_by("bob");
    let begun = crowd.now();
    crowd.is_redirected_to(&other);
    let status = news.status();
    let visits = crowd.leave();

    assert_redirects_stop(&visits, &alias, killed, 1);
    assert_the_name_answers(&visits);
    let lost = count(&visits, Page::Lost);
    let at_risk = status["lifetime"]["redirects_at_risk"].as_u64().unwrap();
    assert!(at_risk > 0 && at_risk >= lost as u64, "{at_risk} of {lost}");
    let after = visits.iter().filter(|visit| visit.hops[0].asked > begun);
    let after: Vec<_> = after.cloned().collect();
    assert_all_are_right(&after);
    news.is_normal_again();
    bob.is_normal_again();
}

#[test]
fn a_killed_rescue_server_that_returns_leads_its_old_alias_back_to_the_origin() {
    let (_town, news, mut alice, crowd, old) = in_a_rescue();
    alice.kill();
    alice.restart();
    // Its key is gone, and the origin might still redirect here: the way back has no proof, so
    // that whoever takes it is answered there.
    let back = format!("http://{}{}?levee-back=", news.address, page(3));
    let answer = alice.get(&old, &page(3));
    assert_eq!(
        (answer.status, answer.location.as_deref()),
        (302, Some(&*back))
    );
    // In the same crowd it helps again, by a name that nobody had before.
    let new = news.rescued_anew("alice", &old);
    crowd.is_redirected_to(&new);
    // Between the two rescues nobody helped, so some had to be refused.
    assert_nobody_is_led_astray(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
    assert_eq!(alice.get(&old, &page(3)).location.as_deref(), Some(&*back));
}

#[test]
fn a_rescue_server_is_free_again_when_its_origin_is_killed() {
    let (_town, mut news, alice, crowd, alias) = in_a_rescue_of(&UNPERMITTING);
    // Every page was fetched by then, so visitors at the alias have something to read.
    until("all pages in alice's cache", || {
        let visits = crowd.seen();
        let reads = |path: &str| {
            let right = visits.iter().filter(|visit| visit.page == Page::Right);
            let body = body_of("news", path).into_bytes();
            let mut last = right
                .filter(|visit| visit.hops.len() == 2)
                .map(|visit| &visit.hops[1]);
            last.any(|hop| hop.answer.as_ref().is_ok_and(|answer| answer.body == body))
        };
        (0..PAGES).all(|number| reads(&page(number))).then_some(())
    });
    news.kill();
    drop(crowd);
    // For a while the alias serves on what it has; then it leads back.
    let answer = alice.get(&alias, &page(1));
    assert_eq!(answer.body, body_of("news", &page(1)).into_bytes());
    alice.is_normal_again();
    let back = until("the alias to lead back", || {
        let answer = alice.get(&alias, &page(1));
        (answer.status == 302).then_some(answer)
    });
    assert_leads_back(&back, &news, &page(1));
    let decisions = alice.status()["decisions"].to_string();
    let why = "news.localhost ended: the link was closed";
    assert!(decisions.contains(why), "{decisions}");
    // And it is asked again when the origin is back and overrun anew.
    news.restart();
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    news.rescued_anew("alice", &alias);
    assert_the_name_answers(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}

#[test]
fn sites_go_on_with_their_last_candidates_while_the_registry_is_dead() {
    let mut town = Town::new();
    let alice = town.start(&ALICE);
    let news = town.start(&NEWS);
    news.knows(&["alice"]);
    town.kill_registry();
    news.wait("news of the dead registry", |status| {
        status["registry"]["connected"] == false && status["registry"]["last_error"] != ""
    });
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    assert_all_are_right(&crowd.leave());
    news.is_normal_again();
    // The registry has forgotten everybody, and everybody comes again.
    town.start_registry();
    for place in [&news, &alice] {
        place.wait("the registry", |status| {
            status["registry"]["connected"] == true
        });
    }
    let bob = town.start(&BOB);
    bob.wait("both others", |status| {
        status["candidates"].as_array().unwrap().len() == 2
    });
    news.knows(&["alice", "bob"]);
}
