//! What members say of each other holds, whichever registry is silent about it later.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use levee::command::Community;
use levee::registry_client::{Directory, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::trust::Trust;
use levee_trust::Role;
use levee_vocab::HostName;
use levee_wire::Digest;
use levee_wire::registry::{Accusation, Sight};

use super::lists::registry;
use super::stage::{PATIENCE, Stage, desk};

const ORIGIN: &str = "www.origin.example";
const LIAR: &str = "www.liar.example";
const ACCUSERS: [&str; 2] = ["www.one.example", "www.two.example"];

fn community() -> Stage {
    let stage = Stage::set();
    for name in [ORIGIN, LIAR].into_iter().chain(ACCUSERS) {
        stage.adds(name, Role::Site);
    }
    stage.adds("registry.example", Role::Registry);
    stage
}

fn liar() -> HostName {
    LIAR.parse().unwrap()
}

/// `by` accuses the liar with its own key, `later` milliseconds after now; or takes it back.
fn word(stage: &Stage, by: &str, later: u64, sight: Option<Sight>) -> Accusation {
    let trust = stage.trust_of(by);
    trust.accusation(
        (by.parse().unwrap(), liar()),
        trust.stamp().0 + later,
        sight,
    )
}

fn accused(stage: &Stage) -> Vec<Accusation> {
    let sight = || Some(Sight::of("/page", Digest([7; 32])));
    ACCUSERS
        .iter()
        .map(|by| word(stage, by, 0, sight()))
        .collect()
}

fn client(registries: &[SocketAddr], trust: &Arc<Trust>) -> RegistryClient {
    let registries = fixed(registries.to_vec());
    let name = ORIGIN.parse().unwrap();
    RegistryClient::start(RegistryClientSettings::new(
        registries,
        name,
        Arc::clone(trust),
        1,
    ))
}

#[tokio::test]
async fn a_witness_that_is_silent_lifts_nothing() {
    let stage = community();
    let start = || registry(stage.trust_of("registry.example"));
    let (witness, silent, another) = (start().await, start().await, start().await);
    for (by, said) in ACCUSERS.iter().zip(accused(&stage)) {
        let accuser = client(&[witness], &stage.trust_of(by));
        assert!(accuser.accuse(said).await.unwrap());
    }
    let trust = stage.trust_of(ORIGIN);
    let origin = client(&[silent, witness], &trust);
    let began = Instant::now();
    while !trust.is_left_out(&liar()) {
        assert!(began.elapsed() < PATIENCE, "nobody said so");
        origin.search(5).await.unwrap();
    }
    let origin = client(&[silent, another], &trust);
    origin.search(5).await.unwrap();
    trust.note_accusations(origin.accusations().await.unwrap());
    assert!(trust.is_left_out(&liar()));
}

#[test]
fn a_word_ends_when_it_is_taken_back_or_its_accuser_is_no_member() {
    let stage = community();
    for ends in ["taken back", "accuser expelled"] {
        let trust = stage.trust_of(ORIGIN);
        trust.note_accusations(accused(&stage));
        trust.note_accusations(Vec::new());
        assert!(trust.is_left_out(&liar()), "{ends}");
        if ends == "taken back" {
            trust.note_accusations(vec![word(&stage, ACCUSERS[0], 1, None)]);
        } else {
            let expel = Community::Expel {
                name: ACCUSERS[0].parse().unwrap(),
                reason: "it lied".to_owned(),
                desk: stage.desk(),
            };
            desk(&expel).unwrap();
            trust.read_given().unwrap();
            trust.note_accusations(Vec::new());
        }
        assert!(!trust.is_left_out(&liar()), "{ends}");
    }
}
