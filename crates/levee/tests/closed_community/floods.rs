//! A member that sends the registry more updates than any honest one.

use std::net::SocketAddr;
use std::sync::Arc;

use levee::registry_server::{RegistryServerSettings, StatusDesk, desk, run_with};
use levee::trust::{Channel, Trust};
use levee_registry::{BudgetLimits, PrivateAddresses};
use levee_trust::Role;
use levee_wire::registry::{Farewell, Request};
use tokio::net::TcpListener;

use super::registrations::entry;
use super::stage::{Stage, Typist, denied};

const FLOODER: &str = "www.flooder.example";
const NEIGHBOUR: &str = "www.neighbour.example";
const REGISTRY: &str = "registry.example";
const BURST: u32 = 50;

/// A registry at which each member has so many updates, and then one a second.
async fn registry(trust: Arc<Trust>) -> (SocketAddr, StatusDesk) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = PrivateAddresses::Permitted;
    settings.updates_of_member = BudgetLimits {
        burst: BURST,
        per_second: 1,
        holders_max: 100,
    };
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
