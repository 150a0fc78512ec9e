//! A member that sends the registry more updates than any honest one, and a registry that sends
//! another one more messages.

use std::net::SocketAddr;
use std::sync::Arc;

use levee::registry_server::{RegistryServerSettings, StatusDesk, desk, run_with};
use levee::trust::{Channel, Trust};
use levee_registry::{BudgetLimits, PrivateAddresses};
use levee_trust::Role;
use levee_wire::registry::{Farewell, Request};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::registrations::entry;
use super::stage::{PATIENCE, Stage, Typist, denied};

const FLOODER: &str = "www.flooder.example";
const NEIGHBOUR: &str = "www.neighbour.example";
const REGISTRY: &str = "registry.example";
const BURST: u32 = 50;

/// A registry at which each member has so many updates, each other registry so many messages, and
/// then one a second.
async fn registry(trust: Arc<Trust>) -> (SocketAddr, StatusDesk) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = PrivateAddresses::Permitted;
    let limits = BudgetLimits {
        burst: BURST,
        per_second: 1,
        holders_max: 100,
    };
    settings.updates_of_member = limits;
    settings.messages_of_peer = limits;
    let (desk, inbox) = desk();
    let running = run_with(
        (listener, settings, trust),
        (desk.clone(), inbox),
        std::future::pending(),
    );
    tokio::spawn(running);
    (address, desk)
}

fn registration(trust: &Trust, site: &str) -> String {
    Request::Register(trust.signed_entry(entry(site))).to_string()
}

/// Updates with bad signatures, over one connection after the other, until one is refused for
/// their number. Gives how many were refused for their signature before that.
async fn floods(trust: &Trust, address: SocketAddr) -> u64 {
    let forged = registration(trust, FLOODER).replace(" 500 ", " 900 ");
    let mut verified = 0;
    // Each connection has a budget of requests as well, which this is not about.
    for _ in 0..10 {
        let mut typist = Typist::connects(trust, Channel::Registry, address).await;
        for number in 1..=20 {
            typist.types(&format!("{number} {forged}")).await;
            let told = typist.reads().await;
            if told.contains("signature does not fit") {
                verified += 1;
                continue;
            }
            let refusal = "425 Too many updates: what you registered stays, say the newest in some \
                           seconds";
            assert_eq!(told, format!("{number} {refusal}"));
            // Who has no updates left may still ask.
            typist.types(&format!("99 QUERY {FLOODER}")).await;
            assert!(typist.reads().await.starts_with("99 210 ENTRY "));
            assert_eq!(typist.reads().await, "99 200 OK 1");
            return verified;
        }
    }
    panic!("{verified} updates were verified");
}

#[tokio::test]
async fn who_floods_a_registry_is_refused_unverified_and_loses_neither_its_place_nor_others_theirs()
{
    let stage = Stage::set();
    for site in [FLOODER, NEIGHBOUR] {
        stage.adds(site, Role::Site);
    }
    stage.adds(REGISTRY, Role::Registry);
    let trust = stage.trust_of(REGISTRY);
    let (address, desk) = registry(Arc::clone(&trust)).await;
    let flooder = stage.trust_of(FLOODER);
    let mut typist = Typist::connects(&flooder, Channel::Registry, address).await;
    typist
        .types(&format!("1 {}", registration(&flooder, FLOODER)))
        .await;
    assert_eq!(typist.reads().await, "1 200 OK 30");
    let verified = floods(&flooder, address).await;
    assert!(verified >= u64::from(BURST) - 1, "{verified}");
    assert_eq!(denied(&trust, "bad_signature"), verified);
    let status = desk.status().await.unwrap();
    assert_eq!(status.refused["425"], 1);
    assert_eq!(status.refused["403"], verified);
    // From the same address, with another key.
    let neighbour = stage.trust_of(NEIGHBOUR);
    let mut typist = Typist::connects(&neighbour, Channel::Registry, address).await;
    typist
        .types(&format!("1 {}", registration(&neighbour, NEIGHBOUR)))
        .await;
    assert_eq!(typist.reads().await, "1 200 OK 30");
    let farewell = neighbour.signed_farewell(Farewell::new(NEIGHBOUR.parse().unwrap()));
    typist
        .types(&format!("2 {}", Request::Deregister(farewell)))
        .await;
    assert_eq!(typist.reads().await, "2 200 OK 1");
}

/// A link to the registry of `trust`, as another one has it.
async fn link(trust: &Trust, address: SocketAddr) -> Typist {
    let mut typist = Typist::connects(trust, Channel::Registry, address).await;
    typist.types("1 MESH 00000000000000aa v=1").await;
    assert!(typist.reads().await.starts_with("1 200 OK "));
    typist
}

#[tokio::test]
async fn what_a_registry_says_beyond_its_budget_is_not_verified_and_the_others_are_heard() {
    const FLOOD: u64 = 1000;
    let stage = Stage::set();
    stage.adds(NEIGHBOUR, Role::Site);
    for name in [REGISTRY, "honest.example", "liar.example"] {
        stage.adds(name, Role::Registry);
    }
    let trust = stage.trust_of(REGISTRY);
    let (address, desk) = registry(Arc::clone(&trust)).await;
    let neighbour = stage.trust_of(NEIGHBOUR);
    let entry = neighbour.signed_entry(entry(NEIGHBOUR)).to_string();
    let told = format!("2 ENTRY {entry} asked=30 left=30000 owner=127.0.0.1");
    let mut liar = link(&stage.trust_of("liar.example"), address).await;
    let forged = vec![told.replace(" 500 ", " 900 "); FLOOD as usize].join("\n");
    // It waits when nobody reads, and the link stays open.
    tokio::spawn(async move {
        liar.types(&forged).await;
        liar.reads().await;
        std::future::pending::<()>().await;
    });
    let verified = || denied(&trust, "bad_signature");
    let flooded = async {
        while verified() < u64::from(BURST) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, flooded).await.expect("a flood");
    let mut honest = link(&stage.trust_of("honest.example"), address).await;
    honest.types(&told).await;
    let heard = async {
        while desk.status().await.unwrap().news < 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, heard).await.expect("the honest one");
    let mut typist = Typist::connects(&neighbour, Channel::Registry, address).await;
    for number in 1..=90 {
        typist.types(&format!("{number} QUERY {NEIGHBOUR}")).await;
        assert!(typist.reads().await.contains(" 210 ENTRY "));
        typist.reads().await;
    }
    assert!(verified() < FLOOD, "{}", verified());
}
