//! The registry of a community on a socket (R11): `levee registry`.
//!
//! One task owns the pure `levee_registry::Mesh`; each connection is a task that cuts lines, asks
//! the owner through a bounded channel, and writes the answer. With peers, a task for each opens
//! the link to it, and a connection that greets as a registry becomes a link. A connection is
//! limited in rate, in line length and in idle time, and their number is limited, so that a bad one
//! costs only itself. What is told to others, or must be verified, has a budget for whoever sends
//! it, over all of his connections: the updates of a site, the messages of another registry.

mod admin;
mod budget_holder;
mod connection;
mod dialer;
mod gate;
mod linking;
mod peers;
mod pump;
mod status;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_net::{Clock, Shared};
use levee_observe::MeshStatus;
use levee_registry::{
    Asker, BudgetLimits, Budgets, Change, LinkCounts, LinkId, Mesh, MeshInput, MeshOutput,
    MeshRules, RegistryLimits, Side,
};
use levee_vocab::{Network, Random, Timestamp};
use levee_wire::MessageBudget;
use levee_wire::mesh::{Message, RegistryId};
use levee_wire::registry::{Refusal, Reply, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::community_socket;
use crate::trust::{Trust, unix_now};
pub use admin::serve_status;
use budget_holder::BudgetHolder;
use connection::{Connection, End, Home};
use peers::{Holder, OpenLink, Peers};
pub use status::StatusDesk;
use tally::Tally;

/// What a registry on a socket needs to know.
#[derive(Clone, Debug)]
pub struct RegistryServerSettings {
    /// How much the registry takes.
    pub limits: RegistryLimits,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections of one address at once; of IPv6, of one network (/64).
    pub connections_per_address_max: usize,
    /// Longest time without a whole line.
    pub idle_max: Duration,
    /// Longest that a connection stays open in a closed community whose other end is no member.
    pub stranger_max: Duration,
    /// Longest time to write one answer.
    pub write_wait: Duration,
    /// Most requests at once.
    pub requests_burst: u32,
    /// Most requests a second on average.
    pub requests_per_second: u32,
    /// Updates of one member of a closed community, over all its connections.
    pub updates_of_member: BudgetLimits,
    /// Updates of one network in an open community, over all its connections.
    pub updates_of_network: BudgetLimits,
    /// Messages of one other registry: it waits while it has none left.
    pub messages_of_peer: BudgetLimits,
    /// The other registries, `host:port` each; may name this one too.
    pub peers: Vec<String>,
    /// How often registries compare what they know.
    pub rules: MeshRules,
}

impl Default for RegistryServerSettings {
    fn default() -> Self {
        Self {
            limits: RegistryLimits::default(),
            connections_max: 4096,
            // Sites of one household or one small provider share an address.
            connections_per_address_max: 128,
            // Twelve registration periods: a site that is alive has long said so.
            idle_max: Duration::from_secs(120),
            // Enough to fetch a member list; and strangers must not hold every place.
            stranger_max: Duration::from_secs(10),
            write_wait: Duration::from_secs(5),
            // A site asks twice in ten seconds; a rescue server asks once for each caller.
            requests_burst: 100,
            requests_per_second: 20,
            // A site tells what it offers four times a second at most. The burst is for what it
            // says of others after a restart, and for two servers of one member while one takes
            // over from the other.
            updates_of_member: BudgetLimits {
                burst: 100,
                per_second: 5,
                holders_max: HOLDERS_MAX,
            },
            // Each of the sites that share an address may renew once a second.
            updates_of_network: BudgetLimits {
                burst: 640,
                per_second: 64,
                holders_max: HOLDERS_MAX,
            },
            // After a restart it tells all its entries and farewells at once; later no more than
            // what its part of 10 000 sites says in each period.
            messages_of_peer: BudgetLimits {
                burst: 20_000,
                per_second: 2000,
                holders_max: HOLDERS_MAX,
            },
            peers: Vec::new(),
            rules: MeshRules::default(),
        }
    }
}

/// Answers sites on `listener` until `stop` is ready, and keeps up with the peers; open connections
/// are then closed.
///
/// Dropped half-way, all its connections are closed and what it knew is forgotten.
pub async fn run(
    listener: TcpListener,
    settings: RegistryServerSettings,
    trust: Arc<Trust>,
    stop: impl Future<Output = ()>,
) {
    let parts = (listener, settings, trust);
    run_with(parts, desk(), stop).await;
}

/// Where one can ask a registry how it stands, and what to run it with.
pub fn desk() -> (StatusDesk, Inbox) {
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    (StatusDesk::new(events), Inbox(inbox))
}

/// What a registry is told, to be given to [`run_with`].
pub struct Inbox(mpsc::Receiver<Event>);

/// As [`run`], and answers at the desk.
///
/// Dropped half-way, as [`run`].
pub async fn run_with(
    (listener, settings, trust): (TcpListener, RegistryServerSettings, Arc<Trust>),
    (desk, Inbox(inbox)): (StatusDesk, Inbox),
    stop: impl Future<Output = ()>,
) {
    let events = desk.events();
    let mut random = Random::from_seed(getrandom::u64().unwrap_or(0x5EED));
    let rules = settings.rules.clone();
    let own = RegistryId(random.next_bits());
    let mesh = Mesh::new(settings.limits.clone(), rules, random.fork());
    let (linked, _) = watch::channel(BTreeSet::new());
    let mut server = Server {
        mesh,
        own,
        peers: Peers::new(&settings.peers),
        links: BTreeMap::new(),
        opened: 0,
        linked,
        dialers: JoinSet::new(),
        address: listener
            .local_addr()
            .map_or_else(|_| String::new(), |a| a.to_string()),
        begun: Clock.now(),
        counts: Counts::default(),
        tally: Arc::default(),
        updates: Arc::new(Shared::new(Budgets::new(match trust.is_closed() {
            true => settings.updates_of_member,
            false => settings.updates_of_network,
        }))),
        messages: Arc::new(Shared::new(Budgets::new(settings.messages_of_peer))),
        settings,
        trust,
        events,
        tasks: JoinSet::new(),
        askers: BTreeMap::new(),
        waiting: BTreeMap::new(),
        asked: 0,
        warnings: MessageBudget::new(WARNINGS_BURST, WARNINGS_PER_SECOND),
    };
    server.dial(&mut random);
    tokio::select! {
        () = server.serve(listener, inbox) => {}
        () = stop => {}
    }
}

/// What its tasks tell the owner of the registry.
enum Event {
    /// A site asks.
    Asked(Question),
    /// Somebody at this address says that it is a registry.
    IsPeer {
        address: IpAddr,
        answer: oneshot::Sender<bool>,
    },
    /// The name of a peer was looked up.
    PeerFound { peer: usize, addresses: Vec<IpAddr> },
    /// A peer has said who it is, and that there is a link already.
    PeerKnown {
        peer: usize,
        registry: (RegistryId, Holder),
    },
    /// There is no link to a peer.
    PeerAway { peer: usize, trouble: String },
    /// Another registry has said who it is.
    Greeted {
        greeting: Greeting,
        peer: Option<usize>,
    },
    /// Another registry said this.
    Heard { link: LinkId, message: Message },
    /// A link can take more.
    LinkReady(LinkId),
    /// A link has ended.
    LinkClosed(LinkId),
    /// Somebody wants to know how it stands.
    StatusAsked(oneshot::Sender<MeshStatus>),
}

/// A link that could be opened.
struct Greeting {
    registry: RegistryId,
    holder: Holder,
    side: Side,
    place: String,
    outbox: mpsc::Sender<Vec<u8>>,
    /// The number of the link; none where another one stays.
    answer: oneshot::Sender<Option<LinkId>>,
}

/// A request on its way from a connection to the registry.
struct Question {
    address: IpAddr,
    request: Request,
    answer: oneshot::Sender<Reply>,
}

/// What was counted since the start.
#[derive(Clone, Debug, Default)]
struct Counts {
    requests: u64,
    /// By the code of the answer: a refusal may hold a stamp, of which there are too many.
    refused: BTreeMap<u16, u64>,
    /// Connections that were cut off or never taken.
    dropped: u64,
    /// Of links that have ended.
    links: LinkCounts,
}

/// How much each may still send; shared by all connections.
type HeldBudgets = Arc<Shared<Budgets<BudgetHolder>>>;

struct Server {
    mesh: Mesh,
    own: RegistryId,
    peers: Peers,
    links: BTreeMap<LinkId, OpenLink>,
    /// Links so far: their numbers.
    opened: u64,
    /// For the dialers.
    linked: watch::Sender<BTreeSet<Holder>>,
    dialers: JoinSet<()>,
    address: String,
    begun: Timestamp,
    counts: Counts,
    tally: Arc<Tally>,
    updates: HeldBudgets,
    messages: HeldBudgets,
    settings: RegistryServerSettings,
    trust: Arc<Trust>,
    events: mpsc::Sender<Event>,
    tasks: JoinSet<End>,
    /// Who is connected, by task.
    askers: BTreeMap<Id, SocketAddr>,
    /// Who waits for an answer, by number of the request.
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    asked: u64,
    warnings: MessageBudget,
}

impl Server {
    async fn serve(mut self, listener: TcpListener, mut inbox: mpsc::Receiver<Event>) {
        let mut lists = self.trust.newer_lists();
        loop {
            let deadline = self.mesh.next_deadline();
            let wait = deadline.map(|deadline| deadline.since(Clock.now()));
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => self.admit(stream, address),
                    Err(failure) => {
                        warn!(%failure, "cannot accept a connection to the registry");
                        // Out of files or memory: trying again at once would only burn time.
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(event) = inbox.recv() => self.take(event),
                // Fails only when the registry stops.
                Ok(()) = lists.changed() => {
                    let gone = self.trust.gone_accusers(self.mesh.accusations());
                    self.happens(MeshInput::AccusersGone(gone));
                }
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    match ended {
                        Ok((task, end)) => self.note_end(task, &end),
                        Err(failure) => self.note_end(failure.id(), &End::Panicked),
                    }
                },
                () = sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {
                    self.happens(MeshInput::TimerFired);
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        let askers = self.askers.values().map(SocketAddr::ip);
        if !has_room(&self.settings, askers, address.ip()) {
            return self.warn(address, "too many connections");
        }
        // An option that the kernel does not know costs speed, not safety.
        if let Err(failure) = community_socket::prepare(&stream) {
            debug!(%address, %failure, "cannot set the options of a connection");
        }
        let home = Home {
            own: self.own,
            events: self.events.clone(),
            trust: Arc::clone(&self.trust),
            tally: Arc::clone(&self.tally),
            updates: Arc::clone(&self.updates),
            messages: Arc::clone(&self.messages),
            settings: self.settings.clone(),
        };
        let task = self.tasks.spawn(Connection::hold(stream, address, home));
        self.askers.insert(task.id(), address);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Asked(question) => self.ask(question),
            Event::IsPeer { address, answer } => {
                // Who has hung up does not want to know.
                let _ = answer.send(self.peers.are_at(address));
            }
            Event::PeerFound { peer, addresses } => self.peers.found(peer, addresses),
            Event::PeerKnown { peer, registry } => self.peers.linked(peer, registry),
            Event::PeerAway { peer, trouble } => self.peers.away(peer, trouble),
            Event::Greeted { greeting, peer } => self.greeted(greeting, peer),
            Event::Heard { link, message } => {
                let clock = unix_now().0;
                self.happens(MeshInput::MessageReceived {
                    link,
                    message,
                    clock,
                });
            }
            Event::LinkReady(link) => self.say(link),
            Event::LinkClosed(link) => self.link_closed(link),
            Event::StatusAsked(answer) => {
                let _ = answer.send(self.status());
            }
        }
    }

    fn ask(&mut self, question: Question) {
        self.asked += 1;
        let connection = self.asked;
        self.waiting.insert(connection, question.answer);
        let address = question.address;
        let asker = Asker {
            connection,
            address,
            clock: unix_now().0,
        };
        let request = question.request;
        self.counts.requests += 1;
        self.happens(MeshInput::RequestReceived { asker, request });
    }

    fn happens(&mut self, input: MeshInput) {
        for output in self.mesh.handle(Clock.now(), input) {
            match output {
                MeshOutput::Answer { connection, reply } => {
                    if let Reply::Refused(refusal) = &reply {
                        *self.counts.refused.entry(refusal.code()).or_default() += 1;
                    }
                    if let Some(answer) = self.waiting.remove(&connection) {
                        // Who has hung up does not want to know.
                        let _ = answer.send(reply);
                    }
                }
                MeshOutput::Announce(change) => log(&change),
                MeshOutput::CloseLink(link) => self.link_silent(link),
            }
        }
        let with_mail: Vec<LinkId> = self.mesh.links_with_mail().collect();
        for link in with_mail {
            self.say(link);
        }
    }

    fn note_end(&mut self, task: Id, end: &End) {
        let Some(address) = self.askers.remove(&task) else {
            return;
        };
        match end {
            End::Closed => debug!(%address, "connection to the registry closed"),
            End::Idle => debug!(%address, "connection to the registry closed: idle"),
            End::LinkEnded(why) => info!(%address, "link from another registry ended: {why}"),
            End::Refused => self.counts.dropped += 1,
            End::Dropped(why) => self.warn(address, why),
            End::Panicked => self.warn(address, "a fault of ours"),
        }
    }

    fn warn(&mut self, address: SocketAddr, why: &str) {
        self.counts.dropped += 1;
        if self.warnings.take(Clock.now()) {
            warn!(%address, "connection to the registry dropped: {why}");
        }
    }
}

/// Whether one more from `address` fits beside `askers`.
fn has_room(
    settings: &RegistryServerSettings,
    askers: impl ExactSizeIterator<Item = IpAddr>,
    address: IpAddr,
) -> bool {
    let network = Network::of(address);
    askers.len() < settings.connections_max
        && askers.filter(|one| Network::of(*one) == network).count()
            < settings.connections_per_address_max
}

fn log(change: &Change) {
    match change {
        Change::Added(held) => {
            info!(site = %held.site, rescue = %held.rescue, free = %held.free, "site registered");
        }
        Change::Renewed(held) => debug!(site = %held.site, free = %held.free, "site renewed"),
        Change::Removed(site) => info!(%site, "site deregistered"),
        Change::Expired(site) => info!(%site, "site has gone quiet"),
        Change::Accused(said) => {
            let (accuser, accused) = (&said.accuser, &said.accused);
            match &said.sight {
                Some(sight) => {
                    let target = &sight.target;
                    warn!(%accuser, %accused, target, "a member accuses another one");
                }
                None => info!(%accuser, %accused, "an accusation was taken back"),
            }
        }
    }
}

/// Said to who asks too fast, before the connection is closed.
const TOO_MANY: Reply = Reply::Refused(Refusal::TooMany);
/// Said to who has no updates left. He may go on asking, and say the newest later.
const TOO_MANY_UPDATES: Reply = Reply::Refused(Refusal::TooManyUpdates);
/// As many as have entries; less than a megabyte.
const HOLDERS_MAX: usize = 10_000;
/// Each connection has at most one question or message under way.
const EVENTS_MAX: usize = 1024;
/// Enough to see what is going on, too little to fill a disk.
const WARNINGS_BURST: u32 = 50;
const WARNINGS_PER_SECOND: u32 = 5;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_has_no_more_connections_than_one_address() {
        let settings = RegistryServerSettings {
            connections_max: 3,
            connections_per_address_max: 2,
            ..RegistryServerSettings::default()
        };
        let fits = |askers: &[&str], address: &str| {
            let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
            let askers: Vec<IpAddr> = askers.iter().map(|one| parse(one)).collect();
            has_room(&settings, askers.into_iter(), parse(address))
        };
        assert!(fits(&["2001:db8::1"], "2001:db8::2"));
        assert!(!fits(&["2001:db8::1", "2001:db8::2"], "2001:db8::3"));
        assert!(fits(&["2001:db8::1", "2001:db8::2"], "2001:db8:0:1::3"));
        assert!(!fits(&["192.0.2.1", "::ffff:192.0.2.1"], "192.0.2.1"));
        assert!(!fits(&["192.0.2.1", "192.0.2.2", "192.0.2.3"], "192.0.2.4"));
    }
}
