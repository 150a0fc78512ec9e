//! How the newest member list comes to everybody.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee::registry_finder::fixed;
use levee::registry_server::{RegistryServerSettings, run};
use levee::trust::{ListSources, Trust, keep_list};
use levee_trust::{Role, Roster};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::stage::{PATIENCE, Stage};

/// A registry that has this list.
pub async fn registry(trust: Arc<Trust>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = levee_registry::PrivateAddresses::Permitted;
    tokio::spawn(run(listener, settings, trust, std::future::pending()));
    address
}

/// Looks for lists until `trust` has the one with this serial.
async fn fetched(trust: &Arc<Trust>, registry: SocketAddr, serial: u64) {
    let sources = ListSources {
        registries: fixed(vec![registry]),
        period: Duration::from_millis(5),
    };
    let keeping = keep_list(Arc::clone(trust), sources);
    let there = async {
        while trust.roster(Roster::serial) != Some(serial) {
            tokio::task::yield_now().await;
        }
    };
    let both = async {
        tokio::select! {
            () = keeping => {}
            () = there => {}
        }
    };
    timeout(PATIENCE, both).await.expect("the list arrives");
}

#[tokio::test]
async fn a_registry_hands_the_newest_list_to_whoever_asks() {
    let stage = Stage::set();
    stage.adds("registry.example", Role::Registry);
    let address = registry(stage.trust_of("registry.example")).await;
    // Not a member, and without a list that says who is.
    let newcomer = stage.trust_without_list("www.example.org");
    fetched(&newcomer, address, 2).await;
    assert_eq!(newcomer.list_trouble(), None);
}

#[tokio::test]
async fn a_list_of_another_authority_is_not_taken() {
    let (ours, theirs) = (Stage::set(), Stage::set());
    theirs.adds("registry.example", Role::Registry);
    let address = registry(theirs.trust_of("registry.example")).await;
    let site = ours.trust_of("www.example.org");
    let sources = ListSources {
        registries: fixed(vec![address]),
        period: Duration::from_secs(3600),
    };
    let keeping = tokio::spawn(keep_list(Arc::clone(&site), sources));
    let told = async {
        loop {
            match site.list_trouble() {
                Some(told) => return told,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let told = timeout(PATIENCE, told).await.expect("it is told");
    assert!(told.contains("is not signed by the authority"), "{told}");
    assert_eq!(site.roster(Roster::serial), Some(1));
    keeping.abort();
}
