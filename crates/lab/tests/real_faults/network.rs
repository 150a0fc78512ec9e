//! A cable that is cut: packets vanish, and nobody is told.

use std::net::IpAddr;

use crate::crowd::{
    Crowd, Elsewhere, assert_nobody_is_led_astray, assert_redirects_stop, assert_the_name_answers,
};
use crate::far_network::{FarNetwork, HERE, THERE};
use crate::own_world::is_inside;
use crate::stage::{ALICE, BOB, Draft, NEWS, Place, RUSH, Town, page};

#[test]
fn redirects_over_a_cut_cable_stop_within_three_intervals() {
    if !is_inside("network::redirects_over_a_cut_cable_stop_within_three_intervals") {
        return;
    }
    let (far, town, news, alice) = set_up();
    let bob = town.start(&here(BOB));
    news.knows(&["alice", "bob"]);
    let crowd = Crowd::send_through(&news, RUSH, elsewhere());
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let cut = crowd.now();
    far.cut();
    let other = news.rescued_by("bob");
    crowd.is_redirected_to(&other);
    far.mend();
    // Alone on the other side, alice has given its origin up as well.
    alice.is_normal_again();
    let status = news.status();
    assert!(status["lifetime"]["redirects_at_risk"].as_u64() > Some(0));
    let visits = crowd.leave();
    assert_redirects_stop(&visits, &alias, cut, 3);
    assert_the_name_answers(&visits);
    news.is_normal_again();
    bob.is_normal_again();
    // It is a candidate again.
    news.wait("alice among the candidates", |status| {
        status["candidates"].to_string().contains("alice")
    });
}

#[test]
fn a_rescue_server_that_loses_power_and_is_back_at_once_makes_no_circle() {
    if !is_inside("network::a_rescue_server_that_loses_power_and_is_back_at_once_makes_no_circle") {
        return;
    }
    let (far, _town, news, mut alice) = set_up();
    news.knows(&["alice"]);
    let crowd = Crowd::send_through(&news, RUSH, elsewhere());
    let old = news.rescued_by("alice");
    crowd.is_redirected_to(&old);
    // Without a FIN or a reset, so the origin goes on redirecting to it.
    far.cut();
    alice.kill();
    far.mend();
    alice.restart();
    let back = alice.get(&old, &page(0)).location.unwrap();
    assert!(back.ends_with("?levee-back="), "{back}");
    let new = news.rescued_anew("alice", &old);
    crowd.is_redirected_to(&new);
    assert_nobody_is_led_astray(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}

/// The origin and the registry here, alice there.
fn set_up() -> (FarNetwork, Town, Place, Place) {
    let far = FarNetwork::new();
    let town = Town::at(IpAddr::from(HERE));
    let there = Draft {
        address: IpAddr::from(THERE),
        ..ALICE
    };
    let alice = town.start_through(&far.runner(), &there);
    let news = town.start(&here(NEWS));
    (far, town, news, alice)
}

fn here(draft: Draft) -> Draft {
    Draft {
        address: IpAddr::from(HERE),
        ..draft
    }
}

fn elsewhere() -> Elsewhere {
    let (near, far) = (IpAddr::from(HERE), IpAddr::from(THERE));
    [("news", near), ("bob", near), ("alice", far)].into()
}
