//! Who may register, and which entries are believed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee::registry_client::{Directory, DirectoryError, RegistryClient, RegistryClientSettings};
use levee::registry_finder::fixed;
use levee::trust::{Channel, Trust};
use levee_trust::Role;
use levee_vocab::{AliasHttps, ByteRate, WebAddress};
use levee_wire::registry::{Entry, Request, parse_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::lists::registry;
use super::stage::{Stage, Typist, denied};

const ORIGIN: &str = "www.origin.example";
const RESCUE: &str = "www.rescue.example";
const REGISTRY: &str = "registry.example";

/// Two sites and a registry.
fn community() -> Stage {
    let stage = Stage::set();
    stage.adds(ORIGIN, Role::Site);
    stage.adds(RESCUE, Role::Site);
    stage.adds(REGISTRY, Role::Registry);
    stage
}

fn client(registry: SocketAddr, name: &str, trust: Arc<Trust>) -> RegistryClient {
    let name = name.parse().unwrap();
    RegistryClient::start(RegistryClientSettings::new(
        fixed(vec![registry]),
        name,
        trust,
        1,
    ))
}

/// What `site` offers.
pub fn entry(site: &str) -> Entry {
    let (host, port) = (site.parse().unwrap(), 8080);
    Entry::new(
        WebAddress { host, port },
        "127.0.0.1:7401".parse().unwrap(),
        ByteRate::from_kilobytes(500),
        Duration::from_secs(30),
    )
}

#[tokio::test]
async fn members_find_each_other() {
    let stage = community();
    let address = registry(stage.trust_of(REGISTRY)).await;
    let rescue = client(address, RESCUE, stage.trust_of(RESCUE));
    assert_eq!(
        rescue.register(entry(RESCUE)).await.unwrap(),
        Duration::from_secs(30)
    );
    let origin = client(address, ORIGIN, stage.trust_of(ORIGIN));
    let found = origin.search(5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].site.host.as_str(), RESCUE);
    rescue.deregister(RESCUE.parse().unwrap()).await.unwrap();
    assert!(origin.search(5).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stranger_and_a_member_with_anothers_name_cannot_register() {
    let stage = community();
    let trust = stage.trust_of(REGISTRY);
    let address = registry(Arc::clone(&trust)).await;
    let stranger = client(
        address,
        "www.other.example",
        stage.trust_of("www.other.example"),
    );
    let refused = stranger.register(entry(RESCUE)).await.unwrap_err();
    assert!(
        refused.to_string().contains("is the key of no member"),
        "{refused}"
    );
    assert!(stranger.search(5).await.is_err());
    assert_eq!(denied(&trust, "not_a_member"), 2);
    let rescue = client(address, RESCUE, stage.trust_of(RESCUE));
    let refused = rescue.register(entry(ORIGIN)).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("its key is that of www.rescue.example"),
        "{refused}"
    );
    assert_eq!(denied(&trust, "wrong_name"), 1);
}

#[tokio::test]
async fn who_speaks_no_tls_is_let_go_and_counted() {
    let stage = community();
    let trust = stage.trust_of(REGISTRY);
    let address = registry(Arc::clone(&trust)).await;
    let mut plain = tokio::net::TcpStream::connect(address).await.unwrap();
    plain.write_all(b"1 SEARCH 5\n").await.unwrap();
    let mut rest = Vec::new();
    // An alert, then the end or a reset.
    let _ = plain.read_to_end(&mut rest).await;
    assert!(!rest.windows(4).any(|bytes| bytes == b" OK "));
    assert_eq!(denied(&trust, "no_key"), 1);
}

/// A member whose own line is full does so as well.
#[tokio::test]
async fn who_breaks_off_is_not_said_to_have_no_key() {
    let stage = community();
    let trust = stage.trust_of(REGISTRY);
    let address = registry(Arc::clone(&trust)).await;
    // Nothing at all, and the beginning of a record of TLS.
    for (count, sent) in [(1, &b""[..]), (2, &[22, 3, 1, 2, 0, 1])] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        drop(stream);
        let seen = async {
            while denied(&trust, "broken_off") < count {
                tokio::task::yield_now().await;
            }
        };
        let seen = tokio::time::timeout(Duration::from_secs(30), seen).await;
        seen.expect("it is counted for what it is");
    }
    assert_eq!(denied(&trust, "no_key"), 0);
}

/// A recorded registration, sent again by another member and altered.
#[tokio::test]
async fn recorded_and_altered_registrations_are_worth_nothing() {
    let stage = community();
    let trust = stage.trust_of(REGISTRY);
    let address = registry(Arc::clone(&trust)).await;
    let rescue = stage.trust_of(RESCUE);
    let line = format!(
        "1 {}",
        Request::Register(rescue.signed_entry(entry(RESCUE)))
    );
    let origin = stage.trust_of(ORIGIN);
    let mut thief = Typist::connects(&origin, Channel::Registry, address).await;
    thief.types(&line).await;
    assert!(thief.reads().await.starts_with("1 403 "));
    assert_eq!(denied(&trust, "wrong_name"), 1);
    let mut typist = Typist::connects(&rescue, Channel::Registry, address).await;
    typist.types(&line.replace(" 500 ", " 900 ")).await;
    let told = typist.reads().await;
    assert!(told.contains("signature does not fit"), "{told}");
    assert_eq!(denied(&trust, "bad_signature"), 1);
    let unsigned = "2 REGISTER www.rescue.example 8080 127.0.0.1 7401 500 30";
    typist.types(unsigned).await;
    assert!(typist.reads().await.contains("it is not signed"));
    // The honest one is unharmed.
    typist.types(&line).await;
    assert_eq!(typist.reads().await, "1 200 OK 30");
}

#[tokio::test]
async fn an_old_registration_is_worth_nothing() {
    let stage = community();
    let trust = stage.trust_of(REGISTRY);
    let rescue = stage.trust_of(RESCUE);
    let mut old = rescue.signed_entry(entry(RESCUE));
    assert_eq!(trust.check_entry(&old, "a registry"), Ok(()));
    // As it was signed a quarter of an hour ago.
    old.stamp -= 900_000;
    let proof = old.proof.as_mut().unwrap();
    let text = format!(
        "REGISTER www.rescue.example 8080 127.0.0.1 7401 500 30 stamp={} key={}",
        old.stamp, proof.key
    );
    let signature = rescue
        .identity()
        .sign(levee_trust::Purpose::Registration, text.as_bytes());
    proof.signature = signature.to_string().parse().unwrap();
    let why = trust.check_entry(&old, "a registry").unwrap_err();
    assert_eq!(why.cause(), "too_old");
}

/// A registry of the community that says what it likes.
async fn lying_registry(trust: Arc<Trust>, entries: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut stream, _) = trust.accept(stream, Channel::Registry).await.unwrap();
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        let (number, request) = parse_request(buffer[..count].trim_ascii_end()).unwrap();
        let Request::Search(search) = request else {
            panic!("a search");
        };
        let count = entries.len();
        let mut answer: String = entries
            .iter()
            .map(|entry| format!("{number} 210 ENTRY {entry}\n"))
            .collect();
        answer.push_str(&format!("{number} 200 OK {count}\n"));
        let mut bytes = answer.into_bytes();
        levee_wire::registry::sign_answer(&mut bytes, |lines| {
            trust.answer_signature(search.nonce.unwrap(), lines)
        });
        stream.write_all(&bytes).await.unwrap();
        stream.flush().await.unwrap();
        // Until the site has gone.
        let _ = stream.read(&mut buffer).await;
    });
    address
}

#[tokio::test]
async fn an_entry_that_a_registry_altered_is_left_out_and_the_others_stay() {
    let stage = community();
    stage.adds("www.third.example", Role::Site);
    let rescue = stage.trust_of(RESCUE).signed_entry(entry(RESCUE));
    let third = stage.trust_of("www.third.example");
    let third = third.signed_entry(entry("www.third.example"));
    let bogus = rescue.to_string().replace("127.0.0.1", "127.0.0.9");
    let entries = vec![bogus, third.to_string()];
    let address = lying_registry(stage.trust_of(REGISTRY), entries).await;
    let trust = stage.trust_of(ORIGIN);
    let origin = client(address, ORIGIN, Arc::clone(&trust));
    let found = origin.search(5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].site.host.as_str(), "www.third.example");
    assert_eq!(denied(&trust, "bad_signature"), 1);
}

/// It cannot be altered, nor put in by somebody else. Left out it may be, as older registries do.
#[tokio::test]
async fn what_a_site_says_of_https_is_its_own_word() {
    let stage = community();
    let (trust, rescue) = (stage.trust_of(ORIGIN), stage.trust_of(RESCUE));
    let said = |https| {
        let entry = Entry {
            https,
            ..entry(RESCUE)
        };
        rescue.signed_entry(entry)
    };
    let honest = said(AliasHttps::No);
    assert_eq!(trust.check_entry(&honest, "a registry"), Ok(()));
    let mut altered = honest.clone();
    altered.https = AliasHttps::Yes;
    let why = trust.check_entry(&altered, "a registry").unwrap_err();
    assert_eq!(why.cause(), "bad_signature");
    // The signature of another registration.
    let mut borrowed = said(AliasHttps::Unknown);
    borrowed.https = AliasHttps::No;
    let why = trust.check_entry(&borrowed, "a registry").unwrap_err();
    assert_eq!(why.cause(), "not_signed");
    let signature = honest.proof.as_ref().unwrap().https_signature.clone();
    borrowed.proof.as_mut().unwrap().https_signature = signature;
    let why = trust.check_entry(&borrowed, "a registry").unwrap_err();
    assert_eq!(why.cause(), "bad_signature");
    let mut cut = honest;
    cut.https = AliasHttps::Unknown;
    cut.proof.as_mut().unwrap().https_signature = None;
    assert_eq!(trust.check_entry(&cut, "a registry"), Ok(()));
    let address = registry(stage.trust_of(REGISTRY)).await;
    let at_registry = client(address, RESCUE, Arc::clone(&rescue));
    at_registry.register(said(AliasHttps::Yes)).await.unwrap();
    let origin = client(address, ORIGIN, trust);
    let found = origin.search(5).await.unwrap();
    assert_eq!(found[0].https, AliasHttps::Yes);
}

#[tokio::test]
async fn a_site_is_no_registry() {
    let stage = community();
    // It is a member, and answers as a registry would.
    let address = lying_registry(stage.trust_of(RESCUE), vec![]).await;
    let trust = stage.trust_of(ORIGIN);
    let origin = client(address, ORIGIN, Arc::clone(&trust));
    let refused = origin.search(5).await.unwrap_err();
    assert!(
        matches!(refused, DirectoryError::Unreachable { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("member as site"), "{refused}");
    assert_eq!(denied(&trust, "wrong_role"), 1);
}
