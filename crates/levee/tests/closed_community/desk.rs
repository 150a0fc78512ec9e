//! What the authority does at its desk.

use levee::command::{Community, Validity};
use levee_trust::Role;

use super::stage::{Stage, desk};

fn verified(stage: &Stage) -> Result<String, String> {
    desk(&Community::Verify {
        file: stage.path("members.list"),
        authority: stage.authority(),
    })
}

#[test]
fn members_come_and_go_and_each_list_is_the_next() {
    let stage = Stage::set();
    stage.adds("www.example.org", Role::Site);
    stage.adds("registry.example", Role::Registry);
    let shown = verified(&stage).unwrap();
    assert!(shown.contains("list 3, holds until"), "{shown}");
    let line = format!(
        "www.example.org   site      {}",
        stage.key("www.example.org")
    );
    assert!(shown.contains(&line), "{shown}");
    let name = "www.example.org".parse().unwrap();
    let reason = "it altered pages".to_owned();
    let expel = Community::Expel {
        name,
        reason,
        desk: stage.desk(),
    };
    let told = desk(&expel).unwrap();
    assert!(told.contains("www.example.org is expelled"), "{told}");
    let shown = verified(&stage).unwrap();
    assert!(
        shown.contains("expelled: www.example.org: it altered pages"),
        "{shown}"
    );
    let told = desk(&expel).unwrap_err();
    assert!(told.contains("is no member"), "{told}");
}

#[test]
fn a_key_belongs_to_one_member() {
    let stage = Stage::set();
    stage.adds("www.example.org", Role::Site);
    let again = Community::Add {
        name: "www.example.net".parse().unwrap(),
        key: stage.key("www.example.org"),
        role: Role::Site,
        desk: stage.desk(),
    };
    let told = desk(&again).unwrap_err();
    assert!(
        told.contains("this is the key of www.example.org"),
        "{told}"
    );
}

#[test]
fn a_community_is_founded_once() {
    let stage = Stage::set();
    let again = Community::Init {
        name: "other.example".parse().unwrap(),
        desk: stage.desk(),
        validity: Validity { days: 1 },
    };
    assert!(
        desk(&again)
            .unwrap_err()
            .contains("holds a community already")
    );
}

#[test]
fn an_altered_list_and_a_foreign_one_are_not_verified() {
    let stage = Stage::set();
    stage.adds("www.example.org", Role::Site);
    let path = stage.path("members.list");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("www.example.org", "www.example.com")).unwrap();
    let told = verified(&stage).unwrap_err();
    assert!(told.contains("was altered since"), "{told}");
    let other = Community::Verify {
        file: path,
        authority: stage.key("somebody"),
    };
    assert!(
        desk(&other)
            .unwrap_err()
            .contains("not signed by the authority")
    );
}

#[test]
fn a_renewed_list_holds_longer() {
    let stage = Stage::set();
    let renew = Community::Renew {
        desk: stage.desk(),
        validity: Validity { days: 365 },
    };
    let told = desk(&renew).unwrap();
    assert!(told.starts_with("list 2 holds until"), "{told}");
    assert!(verified(&stage).unwrap().contains("days left"));
}
