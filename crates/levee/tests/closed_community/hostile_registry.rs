//! A registry that is a member and lies to the other registries of the mesh.

use levee::trust::Channel;
use levee_trust::Role;
use levee_wire::registry::Request;

use super::lists::registry;
use super::registrations::entry;
use super::stage::{Stage, Typist};

const SITE: &str = "www.site.example";

/// An honest registry that somebody plays, a liar, and a site.
fn community() -> Stage {
    let stage = Stage::set();
    stage.adds(SITE, Role::Site);
    for name in ["registry.example", "honest.example", "liar.example"] {
        stage.adds(name, Role::Registry);
    }
    stage
}

#[tokio::test]
async fn who_says_the_number_of_another_registry_does_not_cut_it_off() {
    let stage = community();
    let address = registry(stage.trust_of("registry.example")).await;
    let link = async |name: &str| {
        let trust = stage.trust_of(name);
        let mut typist = Typist::connects(&trust, Channel::Registry, address).await;
        typist.types("1 MESH 00000000000000aa v=1").await;
        assert!(typist.reads().await.starts_with("1 200 OK "), "{name}");
        typist
    };
    let mut honest = link("honest.example").await;
    let _liar = link("liar.example").await;
    let site = stage.trust_of(SITE);
    let mut at_registry = Typist::connects(&site, Channel::Registry, address).await;
    let register = Request::Register(site.signed_entry(entry(SITE)));
    at_registry.types(&format!("1 {register}")).await;
    assert_eq!(at_registry.reads().await, "1 200 OK 30");
    let mut told = honest.reads().await;
    while !told.contains(SITE) {
        assert_ne!(told, "", "the link of the honest one has ended");
        told = honest.reads().await;
    }
}
