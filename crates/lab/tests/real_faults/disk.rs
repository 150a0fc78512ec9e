//! A disk that is full.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::crowd::Crowd;
use crate::own_world::{is_inside, run};
use crate::stage::{ALICE, NEWS, RUSH, Town, body_of, page, until};

#[test]
fn an_alias_that_cannot_be_remembered_is_not_given_out() {
    if !is_inside("disk::an_alias_that_cannot_be_remembered_is_not_given_out") {
        return;
    }
    let town = Town::new();
    let state = town.folder.path().join("alice/state");
    fs::create_dir_all(&state).unwrap();
    let place = state.to_str().unwrap();
    run(&["mount", "-t", "tmpfs", "-o", "size=64k", "full", place]);
    let alice = town.start(&ALICE);
    let filler = state.join("filler");
    fill(&filler);
    let news = town.start(&NEWS);
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    // She is asked and refuses, or has offered nothing before: whichever comes first.
    until("alice's complaint", || {
        let log = alice.log();
        log.contains("No space left on device").then_some(())
    });
    alice.wait("her trouble on the page", |status| {
        let trouble = status["help"]["state_trouble"].to_string();
        trouble.contains("No space left on device")
    });
    assert_eq!(news.status()["rescue_servers"].as_array().unwrap().len(), 0);
    // It still serves its own visitors.
    let own = alice.get(&alice.address.to_string(), &page(0));
    assert_eq!(own.body, body_of("alice", &page(0)).as_bytes());
    assert!(!fs::read_to_string(state.join("aliases")).is_ok_and(|list| list.contains("vh")));
    // There is room again: it helps, and what it promises is on the disk.
    fs::remove_file(&filler).unwrap();
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let name = alias.split(':').next().unwrap();
    let list = fs::read_to_string(state.join("aliases")).unwrap();
    assert!(list.contains(name), "{name} is not in {list}");
    drop(crowd);
    news.is_normal_again();
    alice.is_normal_again();
}

/// Writes until there is no room left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    let block = [0; 4096];
    while file.write_all(&block).is_ok() {}
}
