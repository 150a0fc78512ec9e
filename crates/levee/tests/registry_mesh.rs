//! Several registries over real sockets: what one is told the others know, and sites go on with
//! another when one dies (R11).
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee::registry_client::{Directory, DirectoryError, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::registry_server::{RegistryServerSettings, StatusDesk, desk, run_with};
use levee::settings::TrustSettings;
use levee::trust::Trust;
use levee_registry::{BudgetLimits, PrivateAddresses};
use levee_vocab::{AliasHttps, ByteRate, HostName, WebAddress};
use levee_wire::registry::Entry;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

struct Registry {
    address: SocketAddr,
    desk: StatusDesk,
    task: JoinHandle<()>,
}

fn open() -> Arc<Trust> {
    Arc::new(Trust::open(&TrustSettings::default(), None).unwrap())
}

async fn listeners(count: usize) -> Vec<TcpListener> {
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    listeners
}

/// So many registries, each with the same list of peers.
async fn mesh(count: usize) -> Vec<Registry> {
    let listeners = listeners(count).await;
    let peers = listeners
        .iter()
        .map(|one| one.local_addr().unwrap().to_string());
    let peers: Vec<String> = peers.collect();
    let start = |listener: TcpListener| {
        let mut settings = RegistryServerSettings::default();
        settings.limits.private_addresses = PrivateAddresses::Permitted;
        settings.peers.clone_from(&peers);
        let address = listener.local_addr().unwrap();
        let (desk, inbox) = desk();
        let parts = (listener, settings, open());
        let running = run_with(parts, (desk.clone(), inbox), std::future::pending());
        let task = tokio::spawn(running);
        Registry {
            address,
            desk,
            task,
        }
    };
    let registries: Vec<Registry> = listeners.into_iter().map(start).collect();
    for registry in &registries {
        let is_linked = |state: &str| state == "linked" || state == "self";
        until(async || {
            let status = registry.desk.status().await.unwrap();
            status.peers.iter().all(|peer| is_linked(&peer.state))
        })
        .await;
    }
    registries
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes to hold");
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

fn entry(site: &str, kilobytes: u64) -> Entry {
    let (host, port) = (name(site), 8080);
    Entry::new(
        WebAddress { host, port },
        "127.0.0.1:7401".parse().unwrap(),
        ByteRate::from_kilobytes(kilobytes),
        Duration::from_secs(30),
    )
}

fn client(registries: Vec<SocketAddr>, site: &str) -> RegistryClient {
    let known = fixed(registries);
    RegistryClient::start(RegistryClientSettings::new(known, name(site), open(), 1))
}

#[tokio::test]
async fn what_one_registry_is_told_the_others_know() {
    let registries = mesh(3).await;
    let at_first = client(vec![registries[0].address], "www.a.com");
    let at_last = client(vec![registries[2].address], "www.b.com");
    at_first.register(entry("www.a.com", 100)).await.unwrap();
    until(async || at_last.lookup(name("www.a.com")).await.unwrap().is_some()).await;
    at_first.register(entry("www.a.com", 200)).await.unwrap();
    until(async || {
        let found = at_last.search(5).await.unwrap();
        found.len() == 1 && found[0].free == ByteRate::from_kilobytes(200)
    })
    .await;
    at_first.deregister(name("www.a.com")).await.unwrap();
    until(async || at_last.lookup(name("www.a.com")).await.unwrap().is_none()).await;
    for registry in &registries {
        assert_eq!(registry.desk.status().await.unwrap().repaired, 0);
    }
}

#[tokio::test]
async fn what_a_site_says_of_https_comes_to_who_asks_another_registry() {
    let registries = mesh(2).await;
    let site = client(vec![registries[0].address], "www.a.com");
    let other = client(vec![registries[1].address], "www.b.com");
    for https in [AliasHttps::Yes, AliasHttps::No] {
        let entry = Entry {
            https,
            ..entry("www.a.com", 100)
        };
        site.register(entry).await.unwrap();
        until(async || {
            let found = other.search(5).await.unwrap();
            found.len() == 1 && found[0].https == https
        })
        .await;
    }
}

#[tokio::test]
async fn registries_that_agree_are_not_accused_of_leaving_anybody_out() {
    let registries = mesh(3).await;
    let addresses: Vec<SocketAddr> = registries.iter().map(|one| one.address).collect();
    let trust = open();
    let (known, own) = (fixed(addresses.clone()), name("www.a.com"));
    let settings = RegistryClientSettings::new(known, own, Arc::clone(&trust), 1);
    let site = RegistryClient::start(settings);
    site.register(entry("www.a.com", 100)).await.unwrap();
    let count = addresses.len();
    for (number, address) in addresses.into_iter().enumerate() {
        let other = format!("www.b{number}.com");
        let at = client(vec![address], &other);
        at.register(entry(&other, 50)).await.unwrap();
        // Whoever has heard of it so far is enough.
        let found = site.search(5).await.unwrap();
        assert_eq!(found.len(), number + 1, "of {count}: {found:?}");
    }
    assert!(trust.denied().all().is_empty());
}

#[tokio::test]
async fn whom_only_one_of_the_registries_knows_is_found_all_the_same() {
    // They are not linked, as if one kept everything to itself.
    let (one, another) = (mesh(1).await.remove(0), mesh(1).await.remove(0));
    let known = client(vec![another.address], "www.a.com");
    known.register(entry("www.a.com", 100)).await.unwrap();
    let site = client(vec![one.address, another.address], "www.b.com");
    let found = site.lookup(name("www.a.com")).await.unwrap();
    assert_eq!(found.unwrap().site.host, name("www.a.com"));
    assert_eq!(site.status().address, one.address.to_string());
    assert_eq!(site.search(5).await.unwrap().len(), 1);
    assert!(site.lookup(name("www.c.com")).await.unwrap().is_none());
}

/// A registry that has an excuse for everybody, as one that is full has, or one that lies.
async fn refuser() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (reader, mut writer) = stream.into_split();
                let mut lines = BufReader::new(reader).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let number = line.split(' ').next().unwrap_or_default();
                    let refusal = format!("{number} 503 Full\n");
                    writer.write_all(refusal.as_bytes()).await.unwrap();
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn a_registry_that_refuses_everything_costs_nobody_anything() {
    let (refuser, registry) = (refuser().await, mesh(1).await.remove(0));
    let alone = client(vec![refuser], "www.a.com");
    for error in [
        alone.register(entry("www.a.com", 100)).await.unwrap_err(),
        alone.search(5).await.unwrap_err(),
        alone.lookup(name("www.b.com")).await.unwrap_err(),
    ] {
        assert!(
            matches!(error, DirectoryError::Refused { .. }),
            "{error}: not a refusal"
        );
    }
    let other = client(vec![registry.address], "www.b.com");
    other.register(entry("www.b.com", 100)).await.unwrap();
    let site = client(vec![refuser, registry.address], "www.a.com");
    site.register(entry("www.a.com", 100)).await.unwrap();
    assert!(other.lookup(name("www.a.com")).await.unwrap().is_some());
    assert_eq!(site.search(5).await.unwrap().len(), 1);
    assert!(site.lookup(name("www.b.com")).await.unwrap().is_some());
    assert_eq!(site.status().address, refuser.to_string());
    assert!(
        site.status().last_error.contains("503"),
        "{:?}",
        site.status()
    );
    // Who leaves is forgotten at once, wherever it was known.
    assert!(site.deregister(name("www.a.com")).await.is_err());
    assert!(other.lookup(name("www.a.com")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_site_goes_on_with_another_registry_within_one_exchange() {
    let mut registries = mesh(3).await;
    let addresses: Vec<SocketAddr> = registries.iter().map(|one| one.address).collect();
    let site = client(addresses.clone(), "www.a.com");
    let other = client(vec![addresses[1]], "www.b.com");
    other.register(entry("www.b.com", 70)).await.unwrap();
    site.register(entry("www.a.com", 100)).await.unwrap();
    assert_eq!(site.status().address, addresses[0].to_string());
    let killed = registries.remove(0);
    killed.task.abort();
    assert!(killed.task.await.unwrap_err().is_cancelled());
    assert_eq!(site.search(5).await.unwrap().len(), 1);
    let status = site.status();
    assert!(status.connected);
    assert_eq!(status.address, addresses[1].to_string());
    let states: Vec<&str> = status
        .all
        .iter()
        .map(|place| place.state.as_str())
        .collect();
    assert_eq!(states, ["away", "asked", "ready"]);
    assert!(!status.all[0].cause.is_empty());
}

/// The state and the cause of the first registry that `site` knows.
fn first_place(site: &RegistryClient) -> (String, String) {
    let place = site.status().all.remove(0);
    (place.state, place.cause)
}

#[tokio::test]
async fn a_registry_that_is_not_needed_shows_its_newest_error_and_is_seen_to_come_back() {
    let gone = listeners(1).await.remove(0);
    let (address, mut registries) = (gone.local_addr().unwrap(), mesh(1).await);
    drop(gone);
    let known = fixed(vec![address, registries.remove(0).address]);
    let mut settings = RegistryClientSettings::new(known, name("www.a.com"), open(), 1);
    settings.retry_delay_min = Duration::from_millis(5);
    settings.retry_delay_max = Duration::from_millis(40);
    let site = RegistryClient::start(settings);
    site.register(entry("www.a.com", 100)).await.unwrap();
    let (state, cause) = first_place(&site);
    assert_eq!(state, "away");
    assert!(cause.starts_with("cannot connect to registry"), "{cause}");
    // Now somebody is there who closes each connection; nothing is asked of the site meanwhile.
    let closing = TcpListener::bind(address).await.unwrap();
    let door = tokio::spawn(async move { while closing.accept().await.is_ok() {} });
    until(async || first_place(&site).1.contains("closed the connection")).await;
    let tried_at = site.status().all[0].tried_at;
    until(async || site.status().all[0].tried_at > tried_at).await;
    door.abort();
    assert!(door.await.unwrap_err().is_cancelled());
    let listener = TcpListener::bind(address).await.unwrap();
    let parts = (listener, RegistryServerSettings::default(), open());
    tokio::spawn(run_with(parts, desk(), std::future::pending()));
    until(async || first_place(&site) == ("ready".to_owned(), String::new())).await;
    assert!(site.status().connected);
    assert_eq!(site.status().last_error, "");
}

/// The keeper of the connection has never asked it.
#[tokio::test]
async fn a_registry_that_a_search_finds_away_is_shown_so_and_seen_to_come_back() {
    let gone = listeners(1).await.remove(0);
    let (address, used) = (gone.local_addr().unwrap(), mesh(1).await.remove(0));
    drop(gone);
    let known = fixed(vec![used.address, address]);
    let mut settings = RegistryClientSettings::new(known, name("www.a.com"), open(), 1);
    settings.retry_delay_min = Duration::from_millis(5);
    settings.retry_delay_max = Duration::from_millis(40);
    let site = RegistryClient::start(settings);
    let state = || site.status().all.remove(1).state;
    site.register(entry("www.a.com", 100)).await.unwrap();
    assert_eq!(state(), "ready");
    assert!(site.search(5).await.unwrap().is_empty());
    until(async || state() == "away").await;
    let cause = site.status().all.remove(1).cause;
    assert!(cause.starts_with("cannot connect to registry"), "{cause}");
    let listener = TcpListener::bind(address).await.unwrap();
    let parts = (listener, RegistryServerSettings::default(), open());
    tokio::spawn(run_with(parts, desk(), std::future::pending()));
    until(async || state() == "ready").await;
    assert_eq!(site.status().address, used.address.to_string());
}

#[tokio::test]
async fn a_registry_that_floods_another_waits_and_sites_do_not() {
    const FLOOD: u64 = 2000;
    let listener = listeners(1).await.remove(0);
    let address = listener.local_addr().unwrap();
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = PrivateAddresses::Permitted;
    settings.peers = vec![address.to_string()];
    settings.requests_burst = 1000;
    settings.messages_of_peer = BudgetLimits {
        burst: 10,
        per_second: 1,
        holders_max: 100,
    };
    let (desk, inbox) = desk();
    let parts = (listener, settings, open());
    tokio::spawn(run_with(
        parts,
        (desk.clone(), inbox),
        std::future::pending(),
    ));
    let mut flooder = BufReader::new(TcpStream::connect(address).await.unwrap());
    let mut flood = "1 MESH 00c0ffee00c0ffee v=1\n".to_owned();
    for number in 0..FLOOD {
        let words = "80 127.0.0.9 7401 500 600 stamp=9 left=600000 owner=127.0.0.9";
        flood.push_str(&format!("1 ENTRY www.site{number}.com {words}\n"));
    }
    // It waits when nobody reads.
    tokio::spawn(async move {
        let _ = flooder.get_mut().write_all(flood.as_bytes()).await;
        // The link stays open.
        let _ = flooder.lines().next_line().await;
        std::future::pending::<()>().await;
    });
    let heard = async || desk.status().await.unwrap().news;
    until(async || heard().await >= 10).await;
    let site = client(vec![address], "www.a.com");
    for kilobytes in 1..=300 {
        let offer = entry("www.a.com", kilobytes);
        site.register(offer).await.unwrap();
    }
    let news = heard().await;
    assert!((10..FLOOD).contains(&news), "{news}");
}

#[tokio::test]
async fn nobody_but_a_peer_may_link_itself() {
    let registry = mesh(1).await.remove(0);
    let lonely = listeners(1).await.remove(0);
    let address = lonely.local_addr().unwrap();
    let (own, inbox) = desk();
    let parts = (lonely, RegistryServerSettings::default(), open());
    tokio::spawn(run_with(parts, (own, inbox), std::future::pending()));
    let check = async |address: SocketAddr, expected: &str| {
        let mut stranger = BufReader::new(TcpStream::connect(address).await.unwrap());
        let hello = b"1 MESH 00c0ffee00c0ffee v=1\n";
        stranger.get_mut().write_all(hello).await.unwrap();
        let mut line = String::new();
        stranger.read_line(&mut line).await.unwrap();
        assert!(line.starts_with(expected), "{line}");
    };
    check(address, "1 403 127.0.0.1 is no --peer of this registry").await;
    // This one has a peer at that address: itself.
    check(registry.address, "1 200 OK ").await;
}
