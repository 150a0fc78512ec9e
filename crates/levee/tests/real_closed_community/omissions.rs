//! A registry that lies by saying too little: of others to us, and of us to others. One honest
//! registry is enough.

use super::accusations::{accuse, says, sight};
use super::members::{ORIGIN, RESCUE};
use super::players::Liar;
use super::stage::{Draft, Registry, Stage, WIDE, offer_of};

const THIRD: &str = "www.third.example";

/// Members, an honest registry, and one that lies. They are not linked.
fn community(members: &[&str]) -> (Stage, Registry, Liar) {
    let stage = Stage::of(&[("registry", "registry"), ("liar", "registry")]);
    for name in members {
        stage.adds(name, "site");
    }
    let honest = stage.starts_registry("registry", &[]);
    let liar = Liar::starts(stage.trust("liar"), stage.list());
    (stage, honest, liar)
}

#[test]
fn where_a_registry_leaves_out_everybody_the_others_are_believed() {
    let (stage, honest, liar) = community(&[ORIGIN, RESCUE]);
    stage.registers(RESCUE, "127.0.0.1:7401".parse().unwrap(), &honest);
    let asker = stage.trust(ORIGIN);
    let named = format!("search at registry {}: it finds nobody", liar.at);
    stage.finds_until(&asker, &[liar.at, honest.at], |found| {
        let denied = asker.denied().all();
        // On a busy machine the first may be late, and then the second is asked first.
        found == [RESCUE] && denied.iter().any(|(_, one)| one.last.contains(&named))
    });
}

#[test]
fn a_registry_that_leaves_out_some_and_passes_nobody_on_costs_its_members_nothing() {
    let (stage, honest, liar) = community(&[ORIGIN, RESCUE, THIRD]);
    let third = offer_of(THIRD, "127.0.0.1:7401".parse().unwrap());
    stage.registers(THIRD, third.rescue, &honest);
    liar.finds(&[stage.trust(THIRD).signed_entry(third).to_string()]);
    let starts = |name| {
        stage.starts_site(&Draft {
            name,
            link: WIDE,
            registries: &[liar.at, honest.at],
            more: "",
        })
    };
    let (helper, origin) = (starts(RESCUE), starts(ORIGIN));
    // The liar tells nobody that they are there; they do so themselves.
    honest.face.reaches("/entries", "3");
    for site in [&helper, &origin] {
        site.face.tells("not_passed_on", 1, "does not know of it");
    }
    origin.face.reaches_words("/candidates", RESCUE);
    origin.face.reaches_words("/candidates", THIRD);
    let named = format!("search at registry {}: it leaves out {RESCUE}", liar.at);
    origin.face.tells("left_out", 1, &named);
}

#[test]
fn a_registry_that_hides_accusations_and_names_the_accused_is_not_believed() {
    let (stage, honest, liar) = community(&[ORIGIN, RESCUE, THIRD, "www.other.example"]);
    let third = offer_of(THIRD, "127.0.0.1:7401".parse().unwrap());
    liar.finds(&[stage.trust(THIRD).signed_entry(third).to_string()]);
    let origin = stage.starts_site(&Draft {
        name: ORIGIN,
        link: WIDE,
        registries: &[liar.at, honest.at],
        more: "",
    });
    origin.face.reaches_words("/candidates", THIRD);
    for by in [RESCUE, "www.other.example"] {
        let accusation = accuse(&stage, (by, THIRD), sight());
        assert_eq!(says(&stage, by, &honest, accusation), "1 200 OK 1");
    }
    let believed = "\"left_out\":true";
    origin.face.reaches_words("/trust/accusations", believed);
    origin.face.loses_words("/candidates", THIRD);
}
