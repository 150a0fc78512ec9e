//! The registry over real sockets: as typed into netcat, and through the client of a site (R11).
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use levee::registry_client::{Directory, DirectoryError, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::registry_server::{RegistryServerSettings, run};
use levee::rescue_link::AddressBook;
use levee::settings::TrustSettings;
use levee::trust::Trust;
use levee_registry::{BudgetLimits, PrivateAddresses};
use levee_vocab::{ByteRate, HostName, WebAddress};
use levee_wire::registry::Entry;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// Everybody trusts everybody.
fn open() -> Arc<Trust> {
    Arc::new(Trust::open(&TrustSettings::default(), None).unwrap())
}

fn settings() -> RegistryServerSettings {
    let mut settings = RegistryServerSettings::default();
    settings.limits.private_addresses = PrivateAddresses::Permitted;
    settings
}

struct Registry {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Registry {
    async fn start(settings: RegistryServerSettings) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), settings).await
    }

    async fn start_at(address: SocketAddr, settings: RegistryServerSettings) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(run(listener, settings, open(), std::future::pending()));
        Self { address, task }
    }

    async fn netcat(&self) -> Netcat {
        Netcat(BufReader::new(
            TcpStream::connect(self.address).await.unwrap(),
        ))
    }

    /// As if the process was killed: nothing is said, everything is forgotten.
    async fn dies(self) -> SocketAddr {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.address
    }
}

struct Netcat(BufReader<TcpStream>);

impl Netcat {
    async fn types(&mut self, text: &str) {
        let _ = self.0.get_mut().write_all(text.as_bytes()).await;
    }

    async fn reads(&mut self, expected: &str) {
        assert_eq!(self.reads_line().await, expected);
    }

    async fn reads_line(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.0.read_line(&mut line)).await;
        read.expect("a line").unwrap();
        line.trim_end().to_owned()
    }

    async fn reads_the_end(&mut self) {
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        // An end or a reset.
        let _ = end.expect("an end");
    }
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

fn client(registry: SocketAddr) -> RegistryClient {
    let mut settings =
        RegistryClientSettings::new(fixed(vec![registry]), name("www.a.com"), open(), 1);
    settings.retry_delay_min = Duration::from_millis(5);
    settings.retry_delay_max = Duration::from_millis(20);
    RegistryClient::start(settings)
}

#[tokio::test]
async fn a_person_with_netcat_can_speak_to_the_registry() {
    let registry = Registry::start(settings()).await;
    let mut netcat = registry.netcat().await;
    netcat
        .types("1 REGISTER www.a.com 8080 127.0.0.1 7401 500 30\n")
        .await;
    netcat.reads("1 200 OK 30").await;
    netcat
        .types("2 register www.b.com 80 127.0.0.1 7402 900 30 colour=blue\r\n")
        .await;
    netcat.reads("2 200 OK 30").await;
    netcat.types("3 SEARCH 5 except=www.b.com\n").await;
    let mut line = String::new();
    netcat.0.read_line(&mut line).await.unwrap();
    assert!(
        line.starts_with("3 210 ENTRY www.a.com 8080 127.0.0.1 7401 500 "),
        "{line}"
    );
    netcat.reads("3 200 OK 1").await;
    netcat
        .types("4 DEREGISTER www.a.com\n5 QUERY www.a.com\n")
        .await;
    netcat.reads("4 200 OK 1").await;
    netcat.reads("5 200 OK 0").await;
}

#[tokio::test]
async fn a_typing_error_is_explained_and_garbage_ends_the_connection() {
    let registry = Registry::start(settings()).await;
    let mut netcat = registry.netcat().await;
    netcat.types("1 REGISTER www.a.com\n").await;
    netcat.reads("1 400 parameter web port is missing").await;
    netcat.types("2 WHO IS THERE\n").await;
    netcat.reads("2 501 Unknown").await;
    netcat.types("GET / HTTP/1.1\r\n").await;
    netcat.reads_the_end().await;
    let mut endless = registry.netcat().await;
    endless.types(&"x".repeat(100_000)).await;
    endless.reads_the_end().await;
}

#[tokio::test]
async fn who_asks_too_fast_is_closed_and_others_are_not() {
    let mut settings = settings();
    settings.requests_burst = 3;
    settings.requests_per_second = 1;
    let registry = Registry::start(settings).await;
    let mut fast = registry.netcat().await;
    fast.types("1 SEARCH 1\n2 SEARCH 1\n3 SEARCH 1\n4 SEARCH 1\n")
        .await;
    for number in 1..=3 {
        fast.reads(&format!("{number} 200 OK 0")).await;
    }
    fast.reads("4 429 Too many requests").await;
    fast.reads_the_end().await;
    let mut good = registry.netcat().await;
    good.types("1 SEARCH 1\n").await;
    good.reads("1 200 OK 0").await;
}

#[tokio::test]
async fn updates_of_one_address_have_a_budget_over_all_its_connections() {
    let mut settings = settings();
    settings.updates_of_network = BudgetLimits {
        burst: 50,
        per_second: 1,
        holders_max: 100,
    };
    let registry = Registry::start(settings).await;
    let refusal = "425 Too many updates: what you registered stays, say the newest in some seconds";
    let mut taken = 0;
    'flood: for _ in 0..10 {
        let mut netcat = registry.netcat().await;
        for number in 1..=20 {
            let register = "REGISTER www.a.com 8080 127.0.0.1 7401 500 30";
            netcat.types(&format!("{number} {register}\n")).await;
            let told = netcat.reads_line().await;
            if told == format!("{number} {refusal}") {
                break 'flood;
            }
            assert_eq!(told, format!("{number} 200 OK 30"));
            taken += 1;
        }
    }
    assert!((50..200).contains(&taken), "{taken}");
    let mut netcat = registry.netcat().await;
    netcat.types("1 SEARCH 1\n").await;
    assert!(
        netcat
            .reads_line()
            .await
            .starts_with("1 210 ENTRY www.a.com ")
    );
}

/// What registries say that the site has said too much to.
async fn is_put_off(netcat: &mut Netcat, told: &str) -> String {
    let line = netcat.reads_line().await;
    let number = line.split(' ').next().unwrap();
    netcat.types(&format!("{number} {told}\n")).await;
    line
}

#[tokio::test]
async fn a_site_that_says_too_much_waits_and_then_says_the_newest() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let known = fixed(vec![address]);
    let mut settings = RegistryClientSettings::new(known, name("www.a.com"), open(), 1);
    // No test takes so long; the pause is at least half of it, and no more than a third of a life.
    settings.retry_delay_min = Duration::from_secs(3600);
    settings.retry_delay_max = settings.retry_delay_min;
    let offer = |kilobytes| Entry {
        lifetime: Duration::from_secs(3 * 3600),
        ..entry("www.a.com", kilobytes)
    };
    let client = RegistryClient::start(settings);
    let asking = tokio::spawn(async move {
        let refused = client.register(offer(1)).await.unwrap_err();
        assert!(
            matches!(refused, DirectoryError::Refused { code: 425, .. }),
            "{refused}"
        );
        for kilobytes in 2..100 {
            let held_back = client.register(offer(kilobytes)).await;
            let error = held_back.unwrap_err();
            assert!(matches!(error, DirectoryError::HeldBack { .. }), "{error}");
        }
        // Who may not offer may still look for others.
        assert!(client.search(1).await.unwrap().is_empty());
        client.status()
    });
    let mut netcat = Netcat(BufReader::new(listener.accept().await.unwrap().0));
    let first = is_put_off(&mut netcat, "425 Too many updates").await;
    assert!(first.starts_with("1 REGISTER www.a.com "), "{first}");
    let second = is_put_off(&mut netcat, "200 OK 0").await;
    assert!(second.starts_with("2 SEARCH 1 "), "{second}");
    let status = asking.await.unwrap();
    assert!(status.connected);
    assert!(status.refusal.contains("425 Too many"), "{status:?}");
}

#[tokio::test]
async fn a_site_that_was_put_off_says_the_newest_by_itself_before_its_registration_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let known = fixed(vec![listener.local_addr().unwrap()]);
    let mut settings = RegistryClientSettings::new(known, name("www.a.com"), open(), 1);
    // Other pauses are longer than any test.
    settings.retry_delay_min = Duration::from_secs(3600);
    settings.retry_delay_max = settings.retry_delay_min;
    let client = RegistryClient::start(settings);
    let offering = client.clone();
    let asking = tokio::spawn(async move {
        for kilobytes in [100, 200] {
            let offer = Entry {
                lifetime: Duration::from_secs(1),
                ..entry("www.a.com", kilobytes)
            };
            assert!(offering.register(offer).await.is_err());
        }
    });
    let mut netcat = Netcat(BufReader::new(listener.accept().await.unwrap().0));
    while !asking.is_finished() {
        is_put_off(&mut netcat, "425 Too many updates").await;
    }
    loop {
        let line = is_put_off(&mut netcat, "200 OK 30").await;
        assert!(line.contains(" REGISTER www.a.com "), "{line}");
        if line.contains(" 7401 200 1 ") {
            break;
        }
    }
    let registered = async {
        while !client.status().refusal.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, registered).await.expect("it is taken");
}

#[tokio::test]
async fn who_does_not_finish_a_line_is_closed() {
    let mut settings = settings();
    settings.idle_max = Duration::from_millis(100);
    let registry = Registry::start(settings).await;
    for half in ["", "1 SEAR"] {
        let mut slow = registry.netcat().await;
        slow.types(half).await;
        slow.reads_the_end().await;
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once() {
    let mut settings = settings();
    settings.connections_per_address_max = 1;
    let registry = Registry::start(settings).await;
    let mut first = registry.netcat().await;
    first.types("1 SEARCH 1\n").await;
    first.reads("1 200 OK 0").await;
    let mut second = registry.netcat().await;
    second.reads_the_end().await;
    first.types("2 SEARCH 1\n").await;
    first.reads("2 200 OK 0").await;
}

#[tokio::test]
async fn a_public_registry_takes_no_private_addresses() {
    let registry = Registry::start(RegistryServerSettings::default()).await;
    let client = client(registry.address);
    let refused = client.register(entry("www.a.com", 1)).await.unwrap_err();
    let DirectoryError::Refused { code: 403, .. } = &refused else {
        panic!("{refused}");
    };
    // The registry is there; what it said stands on the status page.
    assert!(client.status().connected);
    assert_eq!(client.status().last_error, refused.to_string());
    assert_eq!(client.status().refusal, refused.to_string());
    // Who is not taken may still look for others, and the reason stays to be seen.
    assert_eq!(client.search(3).await.unwrap(), []);
    assert_eq!(client.status().last_error, refused.to_string());
}

#[tokio::test]
async fn sites_find_each_other() {
    let registry = Registry::start(settings()).await;
    let (a, b) = (client(registry.address), client(registry.address));
    assert_eq!(
        a.register(entry("www.a.com", 100)).await.unwrap(),
        Duration::from_secs(30)
    );
    b.register(entry("www.b.com", 200)).await.unwrap();
    b.register(entry("www.c.com", 300)).await.unwrap();
    let found: Vec<_> = a.search(9).await.unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|candidate| candidate.site.host.as_str())
        .collect();
    assert_eq!(names, ["www.c.com", "www.b.com"]);
    assert_eq!(found[0].free, ByteRate::from_kilobytes(300));
    let known = b.lookup(name("www.a.com")).await.unwrap().unwrap();
    assert_eq!(known.site, entry("www.a.com", 100).site);
    // Rescue links ask the same client whether a caller is where it says.
    let address = b.address_of(&name("www.a.com")).await;
    assert_eq!(address, Some(known.rescue.ip()));
    assert_eq!(b.address_of(&name("www.x.com")).await, None);
    a.deregister(name("www.a.com")).await.unwrap();
    assert_eq!(b.lookup(name("www.a.com")).await.unwrap(), None);
    assert!(a.status().connected);
}

#[tokio::test]
async fn a_registry_that_comes_back_learns_of_the_site_again_by_itself() {
    let registry = Registry::start(settings()).await;
    let client = client(registry.address);
    client.register(entry("www.a.com", 100)).await.unwrap();
    let mut watch = client.clone();
    let address = registry.dies().await;
    while watch.status().connected {
        assert!(watch.status_changed().await);
    }
    assert!(!client.status().last_error.is_empty());
    let registry = Registry::start_at(address, settings()).await;
    while !watch.status().connected {
        assert!(watch.status_changed().await);
    }
    let mut netcat = registry.netcat().await;
    netcat.types("1 DEREGISTER www.a.com\n").await;
    netcat.reads("1 200 OK 1").await;
}

#[tokio::test]
async fn a_registry_that_is_away_is_told_in_a_sentence() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let mut settings =
        RegistryClientSettings::new(fixed(vec![address]), name("www.a.com"), open(), 1);
    settings.retry_delay_min = PATIENCE;
    let client = RegistryClient::start(settings);
    let first = client.search(3).await.unwrap_err().to_string();
    assert!(
        first.starts_with(&format!("cannot connect to registry {address}: ")),
        "{first}"
    );
    assert_eq!(client.status().last_error, first);
    let second = client.search(3).await.unwrap_err().to_string();
    assert!(second.starts_with(&format!("registry {address} is away, next attempt in ")));
}

/// A registry that accepts, reads a line, and answers this.
async fn check_answer(answer: &str, expected: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings =
        RegistryClientSettings::new(fixed(vec![address]), name("www.a.com"), open(), 1);
    settings.exchange_wait = PATIENCE;
    if expected.ends_with("0.3 s") {
        settings.exchange_wait = Duration::from_millis(300);
    }
    let client = RegistryClient::start(settings);
    let asking = tokio::spawn(async move { client.search(1).await });
    let mut netcat = Netcat(BufReader::new(listener.accept().await.unwrap().0));
    netcat
        .reads("1 SEARCH 1 except=www.a.com per_domain=2")
        .await;
    netcat.types(answer).await;
    let error = asking.await.unwrap().unwrap_err().to_string();
    let expected = expected.replace("REGISTRY", &format!("registry {address}"));
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_registry_that_hangs_or_talks_nonsense_is_told_in_a_sentence() {
    let entry = "1 210 ENTRY www.b.com 80 127.0.0.1 7401 5 5\n";
    let nonsense = "REGISTRY gave an answer that makes no sense: ";
    check_answer("", "REGISTRY did not answer within 0.3 s").await;
    check_answer("1 200 OK", "REGISTRY did not answer within 0.3 s").await;
    check_answer(entry, "REGISTRY did not answer within 0.3 s").await;
    check_answer("1 503 Full\n", "REGISTRY refused: 503 Full").await;
    check_answer("2 200 OK 0\n", &format!("{nonsense}wrong sequence number")).await;
    check_answer(
        &entry.repeat(2),
        &format!("{nonsense}more entries than were asked for"),
    )
    .await;
    check_answer(
        "HTTP/1.1 400 Bad Request\r\n",
        &format!("{nonsense}line does not begin with a sequence number from 1 to 4294967295"),
    )
    .await;
    check_answer(
        &"x".repeat(5000),
        &format!("{nonsense}line is longer than 1024 bytes"),
    )
    .await;
}

#[tokio::test]
async fn a_registry_that_closes_after_each_answer_is_not_asked_all_the_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut settings =
        RegistryClientSettings::new(fixed(vec![address]), name("a.example"), open(), 7);
    settings.retry_delay_min = Duration::from_millis(200);
    settings.retry_delay_max = PATIENCE;
    let client = RegistryClient::start(settings);
    let registering = tokio::spawn(async move {
        client.register(entry("a.example", 100)).await.unwrap();
        client
    });
    let begun = Instant::now();
    for _ in 0..3 {
        let mut netcat = Netcat(BufReader::new(listener.accept().await.unwrap().0));
        let mut line = String::new();
        netcat.0.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("1 REGISTER"), "{line}");
        netcat.types("1 200 OK 30\r\n").await;
    }
    // Two pauses, of at least half of 200 ms and half of 400 ms.
    assert!(begun.elapsed() >= Duration::from_millis(280));
    drop(registering.await.unwrap());
}
