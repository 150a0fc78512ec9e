//! How the newest member list comes to everybody.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee::registry_finder::fixed;
use levee::registry_server::{RegistryServerSettings, desk, run, run_with};
use levee::trust::{Channel, ListSources, Trust, keep_list};
use levee_trust::{Role, Roster};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::stage::{PATIENCE, Stage, Typist};

/// A registry that has this list.
pub async fn registry(trust: Arc<Trust>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = levee_registry::PrivateAddresses::Permitted;
    tokio::spawn(run(listener, settings, trust, std::future::pending()));
    address
}

#[tokio::test]
async fn the_operator_of_a_registry_sees_its_list_and_whom_it_refused() {
    let stage = Stage::set();
    stage.adds("registry.example", Role::Registry);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let trust = stage.trust_of("registry.example");
    let parts = (listener, RegistryServerSettings::default(), trust);
    let (desk, inbox) = desk();
    tokio::spawn(run_with(
        parts,
        (desk.clone(), inbox),
        std::future::pending(),
    ));
    let stranger = TcpStream::connect(address).await.unwrap();
    stranger.try_write(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let seen = async {
        loop {
            let trust = desk.status().await.unwrap().trust.unwrap();
            if !trust.refused.is_empty() {
                return trust;
            }
            tokio::task::yield_now().await;
        }
    };
    let trust = timeout(PATIENCE, seen).await.expect("the refusal is told");
    assert_eq!((trust.serial, trust.state.as_str()), (2, "ok"));
    assert_eq!(trust.refused[0].cause, "no_key");
}

/// Looks for lists until `trust` has the one with this serial.
async fn fetched(trust: &Arc<Trust>, registry: SocketAddr, serial: u64) {
    let sources = ListSources {
        registries: fixed(vec![registry]),
        period: Duration::from_millis(5),
        role: Role::Site,
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

/// Somebody makes up a key, and stays.
#[tokio::test]
async fn a_stranger_holds_no_place_for_long() {
    let stage = Stage::set();
    stage.adds("registry.example", Role::Registry);
    stage.adds("www.site.example", Role::Site);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = RegistryServerSettings {
        stranger_max: Duration::from_millis(100),
        ..RegistryServerSettings::default()
    };
    let trust = stage.trust_of("registry.example");
    tokio::spawn(run(listener, settings, trust, std::future::pending()));
    let site = stage.trust_of("www.site.example");
    let mut member = Typist::connects(&site, Channel::Registry, address).await;
    let stranger = stage.trust_of("www.stranger.example");
    let mut stranger = Typist::connects(&stranger, Channel::Registry, address).await;
    assert_eq!(stranger.reads().await, "");
    member.types("1 SEARCH 5").await;
    assert_eq!(member.reads().await, "1 200 OK 0");
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
        role: Role::Site,
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

#[tokio::test]
async fn when_a_registry_is_away_the_next_one_is_asked_for_the_list_at_once() {
    let stage = Stage::set();
    stage.adds("registry.example", Role::Registry);
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead_address = dead.local_addr().unwrap();
    drop(dead);
    let address = registry(stage.trust_of("registry.example")).await;
    let site = stage.trust_without_list("www.example.org");
    let sources = ListSources {
        registries: fixed(vec![dead_address, address]),
        period: Duration::from_secs(3600),
        role: Role::Site,
    };
    let mut newer = site.newer_lists();
    let keeping = tokio::spawn(keep_list(Arc::clone(&site), sources));
    let came = timeout(PATIENCE, newer.changed()).await;
    came.expect("the list arrives").unwrap();
    assert_eq!(site.roster(Roster::serial), Some(2));
    keeping.abort();
}

#[test]
fn a_copy_of_the_list_that_is_no_good_stops_no_site() {
    let (ours, earlier) = (Stage::set(), Stage::set());
    ours.adds("www.example.org", Role::Site);
    let of_another = fs::read_to_string(earlier.path("members.list")).unwrap();
    for damaged in ["", "half a li", &of_another] {
        let state = tempfile::tempdir().unwrap();
        let kept = state.path().join("members.list");
        fs::write(&kept, damaged).unwrap();
        let site = ours.starts("www.example.org", None, state.path());
        assert_eq!(site.roster(Roster::serial), Some(0), "{damaged:?}");
        let good = fs::read_to_string(ours.path("members.list")).unwrap();
        assert_eq!(site.take_list(&good), Ok(Some(2)));
        assert_eq!(fs::read_to_string(&kept).unwrap(), good);
    }
}

#[test]
fn a_disk_on_which_the_list_cannot_be_kept_stops_no_site() {
    let stage = Stage::set();
    stage.adds("www.example.org", Role::Site);
    let state = tempfile::tempdir().unwrap();
    // Whatever is written there fails, as on a full disk.
    fs::create_dir(state.path().join("members.list")).unwrap();
    let given = stage.path("members.list");
    let site = stage.starts("www.example.org", Some(given), state.path());
    assert_eq!(site.roster(Roster::serial), Some(2));
}

#[tokio::test]
async fn a_list_that_was_named_and_is_not_there_is_told() {
    let stage = Stage::set();
    let state = tempfile::tempdir().unwrap();
    let missing = state.path().join("no-such.list");
    let site = stage.starts("www.example.org", Some(missing), state.path());
    let sources = ListSources {
        registries: fixed(vec![]),
        period: Duration::from_millis(5),
        role: Role::Site,
    };
    let keeping = tokio::spawn(keep_list(Arc::clone(&site), sources));
    let told = async {
        while site.list_trouble().is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, told).await.expect("it is told");
    let trouble = site.list_trouble().unwrap_or_default();
    assert!(
        trouble.contains("no-such.list: cannot be read"),
        "{trouble}"
    );
    keeping.abort();
}

#[test]
fn who_is_not_on_the_list_is_told_the_way_onto_it() {
    let stage = Stage::set();
    stage.adds("registry.example", Role::Registry);
    let newcomer = stage
        .trust_of("www.example.org")
        .status(Role::Site)
        .unwrap();
    assert_eq!(newcomer.state, "out");
    let key = stage.key("www.example.org").to_string();
    assert!(newcomer.cause.contains(&key), "{}", newcomer.cause);
    assert!(
        newcomer.cause.contains("levee community add"),
        "{}",
        newcomer.cause
    );
    // A registry is at its place, and is none as a site.
    let registry = stage.trust_of("registry.example");
    assert_eq!(registry.status(Role::Registry).unwrap().state, "ok");
    assert_eq!(registry.status(Role::Site).unwrap().state, "out");
}
