//! Many sites, many crowds, many faults: the invariants hold, and all is normal afterwards.

use levee_lab::storm::{StormSettings, run_storm, run_storms};

/// As many runs as fit into some ten seconds of a debug build; `levee-lab storm` plays more.
const STORMS: StormSettings = StormSettings {
    seed: 1,
    runs: 40,
    sites: 60,
};

#[test]
fn no_storm_breaks_an_invariant_and_all_sites_are_normal_afterwards() {
    let figures = run_storms(STORMS).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{figures}");
    // They were storms: much was redirected, much failed, and still most visitors were served.
    assert!(figures.rescues >= 3 * STORMS.runs, "{figures}");
    assert!(figures.redirects > 10_000, "{figures}");
    assert!(figures.answered < figures.requests, "{figures}");
    assert!(figures.answered > figures.requests / 2, "{figures}");
}

#[test]
fn the_same_seed_gives_the_same_storm() {
    let first = run_storm(77, 20).unwrap_or_else(|failure| panic!("{failure}"));
    let second = run_storm(77, 20).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(first, second);
}
