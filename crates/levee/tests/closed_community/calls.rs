//! Calls for help: who may call whom, once.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use levee::rescue_link::{AddressBook, LinkSettings, Obeyed, RescueLinks, Surroundings};
use levee::trust::{Channel, Trust, unix_now};
use levee_control::{Candidate, Input, LinkLoss, Output, Rejection, RescueCall};
use levee_registry::PrivateAddresses;
use levee_trust::Role;
use levee_vocab::{ByteRate, HostName, LinkId, WebAddress};
use levee_wire::rescue::Sos;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::stage::{PATIENCE, Stage, Typist, denied};

const ORIGIN: &str = "www.origin.example";
const RESCUE: &str = "www.rescue.example";
const OTHER: &str = "www.other.example";

/// Three sites.
fn community() -> Stage {
    let stage = Stage::set();
    for name in [ORIGIN, RESCUE, OTHER] {
        stage.adds(name, Role::Site);
    }
    stage
}

/// Addresses tell themselves here.
struct Nobody;

impl AddressBook for Nobody {
    fn address_of<'a>(
        &'a self,
        _: &'a HostName,
    ) -> Pin<Box<dyn Future<Output = Option<IpAddr>> + Send + 'a>> {
        Box::pin(async { None })
    }
}

/// The rescue links of a member; the test is its Brain.
struct Server {
    links: RescueLinks,
    trust: Arc<Trust>,
    address: SocketAddr,
    events: mpsc::Receiver<Input>,
}

impl Server {
    async fn start(name: &str, trust: Arc<Trust>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut settings = LinkSettings::new(name.parse().unwrap(), address.ip());
        settings.private_addresses = PrivateAddresses::Permitted;
        let surroundings = Surroundings {
            address_book: Arc::new(Nobody),
            trust: Arc::clone(&trust),
        };
        let (sender, events) = mpsc::channel(64);
        let (charge, purge) = (Arc::new(|_| {}), Arc::new(|_: &_, _: &_| 0));
        let links = RescueLinks::start(
            Some(listener),
            settings,
            surroundings,
            charge,
            purge,
            sender,
        );
        Self {
            links,
            trust,
            address,
            events,
        }
    }

    async fn hears(&mut self) -> Input {
        let heard = timeout(PATIENCE, self.events.recv()).await;
        heard.expect("an event").expect("a running server")
    }

    fn calls(&self, name: &str, rescue: SocketAddr) {
        let candidate = Candidate {
            site: web(name),
            rescue,
            free: ByteRate::from_kilobytes(500),
            https: levee_vocab::AliasHttps::Unknown,
        };
        let address = "127.0.0.1".parse().unwrap();
        let call = RescueCall::new(web(ORIGIN), address, Duration::from_secs(600));
        let link = LinkId::Outbound(1);
        let order = Output::CallForHelp {
            link,
            candidate,
            call,
        };
        assert_eq!(self.links.obey(&order), Obeyed::Passed);
    }
}

fn web(name: &str) -> WebAddress {
    WebAddress {
        host: name.parse().unwrap(),
        port: 8080,
    }
}

/// A call for help as a line, of who has this key.
fn sos(trust: &Trust, asked: &str) -> String {
    let address = "127.0.0.1".parse().unwrap();
    let sos = Sos::new(web(ORIGIN), address, Duration::from_secs(600));
    format!(
        "1 {}",
        levee_wire::rescue::Request::Sos(trust.signed_sos(sos, &asked.parse().unwrap()))
    )
}

#[tokio::test]
async fn a_member_calls_a_member() {
    let stage = community();
    let mut rescue = Server::start(RESCUE, stage.trust_of(RESCUE)).await;
    let mut origin = Server::start(ORIGIN, stage.trust_of(ORIGIN)).await;
    origin.calls(RESCUE, rescue.address);
    let Input::SosReceived { link, call } = rescue.hears().await else {
        panic!("a call for help");
    };
    assert_eq!(call.origin.host.as_str(), ORIGIN);
    let (alias, rate) = (
        web("www-vh1.aliases.example"),
        ByteRate::from_kilobytes(100),
    );
    let accept = Output::AcceptSos { link, alias, rate };
    assert_eq!(rescue.links.obey(&accept), Obeyed::Passed);
    let heard = origin.hears().await;
    assert!(matches!(heard, Input::RescueAccepted { .. }), "{heard:?}");
}

#[tokio::test]
async fn a_bogus_origin_is_told_why_and_let_go() {
    let stage = community();
    let trust = stage.trust_of(RESCUE);
    let mut rescue = Server::start(RESCUE, Arc::clone(&trust)).await;
    let stranger = stage.trust_of("www.stranger.example");
    let mut typist = Typist::connects(&stranger, Channel::Rescue, rescue.address).await;
    assert!(typist.reads().await.contains("is the key of no member"));
    assert_eq!(denied(&trust, "not_a_member"), 1);
    // A member that calls in the name of another.
    let other = stage.trust_of(OTHER);
    let mut typist = Typist::connects(&other, Channel::Rescue, rescue.address).await;
    typist.types(&sos(&other, RESCUE)).await;
    assert_eq!(typist.reads().await, "1 403 Reject");
    assert_eq!(denied(&trust, "wrong_name"), 1);
    assert!(rescue.events.try_recv().is_err());
}

#[tokio::test]
async fn a_bogus_rescue_server_is_not_asked() {
    let stage = community();
    let trust = stage.trust_of(ORIGIN);
    let mut origin = Server::start(ORIGIN, Arc::clone(&trust)).await;
    // It stands where the rescue server should, with another member's key.
    let mut bogus = Server::start(RESCUE, stage.trust_of(OTHER)).await;
    origin.calls(RESCUE, bogus.address);
    let heard = origin.hears().await;
    let rejection = Rejection::Unreachable;
    assert_eq!(
        heard,
        Input::RescueRefused {
            link: LinkId::Outbound(1),
            rejection
        }
    );
    assert_eq!(denied(&trust, "wrong_name"), 1);
    assert!(bogus.events.try_recv().is_err());
}

#[tokio::test]
async fn a_call_is_taken_once_by_the_one_who_is_asked() {
    let stage = community();
    let trust = stage.trust_of(RESCUE);
    let mut rescue = Server::start(RESCUE, Arc::clone(&trust)).await;
    let origin = stage.trust_of(ORIGIN);
    let line = sos(&origin, RESCUE);
    let mut first = Typist::connects(&origin, Channel::Rescue, rescue.address).await;
    first.types(&line).await;
    let heard = rescue.hears().await;
    assert!(matches!(heard, Input::SosReceived { .. }), "{heard:?}");
    // The same bytes again.
    let mut again = Typist::connects(&origin, Channel::Rescue, rescue.address).await;
    again.types(&line).await;
    assert_eq!(again.reads().await, "1 403 Reject");
    assert_eq!(denied(&trust, "replayed"), 1);
    // By another member, which recorded them.
    let other = stage.trust_of(OTHER);
    let mut thief = Typist::connects(&other, Channel::Rescue, rescue.address).await;
    thief.types(&line).await;
    assert_eq!(thief.reads().await, "1 403 Reject");
    assert_eq!(denied(&trust, "foreign_message"), 1);
    // A call to somebody else, and an altered one.
    for line in [
        sos(&origin, OTHER),
        sos(&origin, RESCUE).replace(" 600 ", " 900 "),
    ] {
        let mut typist = Typist::connects(&origin, Channel::Rescue, rescue.address).await;
        typist.types(&line).await;
        assert_eq!(typist.reads().await, "1 403 Reject");
    }
    assert_eq!(denied(&trust, "bad_signature"), 2);
    let last = trust.denied().all();
    let (_, told) = last
        .iter()
        .find(|(cause, _)| *cause == "bad_signature")
        .unwrap();
    assert!(
        told.last.contains("call for help of www.origin.example"),
        "{}",
        told.last
    );
    assert!(told.at <= unix_now());
}

fn expels(stage: &Stage, name: &str) {
    let expelled = levee::command::Community::Expel {
        name: name.parse().unwrap(),
        reason: "it altered pages".to_owned(),
        desk: stage.desk(),
    };
    super::stage::desk(&expelled).unwrap();
}

/// A rescue server, and the link of an origin that it helps, whose side is typed.
async fn helping(stage: &Stage) -> (Server, Typist, LinkId) {
    let origin = stage.trust_of(ORIGIN);
    let mut rescue = Server::start(RESCUE, stage.trust_of(RESCUE)).await;
    let mut typist = Typist::connects(&origin, Channel::Rescue, rescue.address).await;
    typist.types(&sos(&origin, RESCUE)).await;
    let Input::SosReceived { link, .. } = rescue.hears().await else {
        panic!("a call");
    };
    let (alias, rate) = (web("www-vh1.rescue.example"), ByteRate::from_kilobytes(9));
    let accept = Output::AcceptSos { link, alias, rate };
    assert_eq!(rescue.links.obey(&accept), Obeyed::Passed);
    assert!(typist.reads().await.starts_with("1 200 OK "));
    (rescue, typist, link)
}

fn takes_the_list(stage: &Stage, trust: &Trust) {
    let list = std::fs::read_to_string(stage.path("members.list")).unwrap();
    assert!(trust.take_list(&list).unwrap().is_some());
}

/// It may have permitted us to go on without it.
#[tokio::test]
async fn who_is_expelled_in_the_middle_of_a_rescue_has_not_died_and_is_told_why() {
    let stage = community();
    let (mut rescue, mut typist, link) = helping(&stage).await;
    expels(&stage, ORIGIN);
    takes_the_list(&stage, &rescue.trust);
    let loss = LinkLoss::Distrusted;
    assert_eq!(rescue.hears().await, Input::LinkLost { link, loss });
    assert_eq!(denied(&rescue.trust, "expelled"), 1);
    assert_eq!(typist.reads().await, "1 SHUTDOWN cause=not_a_member");
}

#[tokio::test]
async fn an_origin_that_lets_an_expelled_helper_go_has_not_died_whether_or_not_it_says_so() {
    let stage = community();
    let (mut rescue, mut typist, link) = helping(&stage).await;
    typist.types("2 SHUTDOWN cause=not_a_member").await;
    let loss = LinkLoss::NotAMember;
    assert_eq!(rescue.hears().await, Input::LinkLost { link, loss });
    // Older ones close without a word; the list tells.
    let (mut rescue, typist, link) = helping(&stage).await;
    expels(&stage, RESCUE);
    takes_the_list(&stage, &rescue.trust);
    drop(typist);
    assert_eq!(rescue.hears().await, Input::LinkLost { link, loss });
}

#[tokio::test]
async fn an_origin_that_closes_its_link_to_a_member_has_died() {
    let stage = community();
    let (mut rescue, typist, link) = helping(&stage).await;
    drop(typist);
    let loss = LinkLoss::Closed;
    assert_eq!(rescue.hears().await, Input::LinkLost { link, loss });
}

#[tokio::test]
async fn who_was_expelled_is_told_the_reason() {
    let stage = community();
    let origin = stage.trust_of(ORIGIN);
    expels(&stage, ORIGIN);
    let trust = stage.trust_of(RESCUE);
    let rescue = Server::start(RESCUE, Arc::clone(&trust)).await;
    let mut typist = Typist::connects(&origin, Channel::Rescue, rescue.address).await;
    assert!(
        typist
            .reads()
            .await
            .contains("was expelled: it altered pages")
    );
    assert_eq!(denied(&trust, "expelled"), 1);
}
