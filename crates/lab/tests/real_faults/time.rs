//! Clocks that jump.
//!
//! A suspended machine is a process that is frozen for seconds: its monotonic clock goes on without
//! it. The date is set by a library of Debian (`libfaketime`), which stands between the process and
//! its wall clock and leaves the monotonic one alone.

use std::fs;
use std::path::Path;

use crate::crowd::{
    Crowd, assert_all_are_right, assert_nobody_is_led_astray, in_a_rescue, redirects_to,
};
use crate::stage::{ALICE, INTERVAL, NEWS, Place, RUSH, Town, until};

/// The loader finds the folder of this machine's architecture.
const LIBRARY: &str = "/usr/$LIB/faketime/libfaketime.so.1";

#[test]
fn a_date_that_is_set_in_mid_crowd_changes_nothing() {
    let town = Town::new();
    let clock = town.folder.path().join("clock");
    set(&clock, "+0");
    let runner = [
        "/usr/bin/env".to_owned(),
        format!("LD_PRELOAD={LIBRARY}"),
        format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        "FAKETIME_DISABLE_SHM=1".to_owned(),
    ];
    let alice = town.start_through(&runner, &ALICE);
    let news = town.start_through(&runner, &NEWS);
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    for (offset, days) in [("+86400", 1.0), ("-172800", -2.0), ("+0", 0.0)] {
        set(&clock, offset);
        for place in [&news, &alice] {
            place.wait("the new date (is libfaketime installed?)", |status| {
                (status["now"].as_f64().unwrap() - today() - days * 86_400.0).abs() < 60.0
            });
        }
        crowd.is_redirected_to(&alias);
    }
    let (visits, status) = (crowd.leave(), news.status());
    assert_all_are_right(&visits);
    // One rescue, from the first jump to the last.
    let ended = status["decisions"]
        .to_string()
        .matches("alice.localhost ended")
        .count();
    assert!(ended <= 1, "{status}");
    let (last, end) = (redirects_to(&visits, &alias).max(), visits.last().unwrap());
    assert!(last.unwrap() + INTERVAL * 2 > end.hops[0].ended, "{last:?}");
    news.is_normal_again();
    alice.is_normal_again();
}

#[test]
fn an_origin_that_was_suspended_goes_on_where_it_was() {
    let (_town, news, alice, crowd, _alias) = in_a_rescue();
    suspend(&news, &crowd, 3);
    // Whichever side noticed first: the rescue goes on, or begins anew.
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let status = news.status();
    // Rates are over the true length of an interval, so the gap is no spike.
    let out = status["rates"]["out"].as_u64().unwrap();
    assert!(out <= 54_000, "{out}");
    assert!(status["link"]["peak"].as_u64() <= status["link"]["capacity"].as_u64());
    assert_nobody_is_led_astray(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}

#[test]
fn a_rescue_server_that_was_suspended_for_less_than_two_intervals_is_kept() {
    let (_town, news, alice, crowd, alias) = in_a_rescue();
    suspend(&alice, &crowd, 1);
    crowd.is_redirected_to(&alias);
    assert_all_are_right(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}

/// Freezes `place` until the crowd is so many intervals older.
fn suspend(place: &Place, crowd: &Crowd, intervals: u32) {
    let until_then = crowd.now() + INTERVAL * intervals;
    place.freeze();
    until("the end of the suspension", || {
        (crowd.now() >= until_then).then_some(())
    });
    place.thaw();
}

/// Replaced as a whole: half a line would be another date.
fn set(clock: &Path, offset: &str) {
    let fresh = clock.with_extension("new");
    fs::write(&fresh, format!("{offset}\n")).unwrap();
    fs::rename(&fresh, clock).unwrap();
}

fn today() -> f64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}
