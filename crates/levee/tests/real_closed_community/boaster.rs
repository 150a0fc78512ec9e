//! A member that promises a hundred times what its link carries: found by looking as a visitor
//! does, and let go.

use super::members::{ORIGIN, RESCUE};
use super::players::{Conduct, Crowd, Player, VisitEnd};
use super::stage::{Draft, Stage, THIN};

const BOASTER: &str = "www.boaster.example";

#[test]
fn who_promises_more_than_its_link_carries_is_parted_from_and_the_others_go_on() {
    let stage = Stage::of(&[("registry", "registry")]);
    for name in [ORIGIN, RESCUE, BOASTER] {
        stage.adds(name, "site");
    }
    let registry = stage.starts_registry("registry", &[]);
    let honest = Player::starts(stage.trust(RESCUE), Conduct::Honest);
    stage.registers(RESCUE, honest.rescue, &registry);
    let origin = stage.starts_site(&Draft {
        name: ORIGIN,
        link: THIN,
        registries: &[registry.at],
        more: "[integrity]\nsampling = \"50 ms\"\n[hot_spots]\nlaw = \"load\"\n",
    });
    origin.face.reaches_words("/candidates", RESCUE);
    let crowd = Crowd::comes_to(&origin);
    // The honest one is small, and shows that pages need not be late.
    origin.face.reaches_words("/rescue_servers", RESCUE);
    let boaster = Player::starts(stage.trust(BOASTER), Conduct::Boasts);
    stage.registers(BOASTER, boaster.rescue, &registry);
    origin.face.reaches_words("/rescue_servers", BOASTER);
    origin.face.reaches_words(
        "/decisions",
        "visitors wait too long for what comes from there",
    );
    origin.face.loses_words("/rescue_servers", BOASTER);
    assert!(origin.face.now("/rescue_servers").contains(RESCUE));
    // That is no crime: nobody is expelled for it, nor accused.
    assert_eq!(origin.face.now("/integrity/expelled"), "[]");
    assert_eq!(registry.face.now("/trust/accusations"), "[]");
    crowd.meets(1, VisitEnd::Right);
    drop(crowd);
}
