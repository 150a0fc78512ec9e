//! The sockets of the rescue protocol (R7): takes calls for help, makes them, and carries what the
//! Brain and the other side say to each other.
//!
//! ```text
//!   Brain --Output--> RescueLinks::obey --> switchboard --> link task --> socket
//!   Brain <-------------Input (bounded channel)------------ link task <-- socket
//! ```
//!
//! Each link is a task of its own that runs a pure `levee_wire::RescueSession`, so a peer that
//! hangs, lies or floods costs its own connection and nothing else. The switchboard is one task
//! that accepts connections within limits, spawns the links, and counts and logs how they end. All
//! channels are bounded; the Brain never waits for a link. What a message means is decided
//! elsewhere: here are deadlines, limits, and the one rule of safety that needs to look around,
//! [`AddressBook`].

mod caller;
mod link_task;
mod peers;
mod purge_line;
mod refusals;
mod switchboard;
mod translation;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Candidate, Input, LinkLoss, Output, Rejection, RescueCall};
use levee_registry::PrivateAddresses;
use levee_vocab::{ByteRate, FetchKey, HostName, LinkId, Purge, WebAddress};
use levee_wire::SessionLimits;
use levee_wire::rescue::Rate;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use crate::alias_name::AliasPlaces;
use crate::https::HttpsPorts;
pub use caller::AddressBook;
pub(crate) use caller::may_be_at;
pub use purge_line::PurgeLine;
pub use refusals::Refusals;
use switchboard::Switchboard;

use crate::integrity::IntegrityOffice;
use crate::trust::Trust;

/// Told of every message that is sent, in bytes with the overhead of its packets, so that the
/// outbound link can account for it.
pub type LinkCharge = Arc<dyn Fn(u64) + Send + Sync>;

/// Carries out the purge of an origin that we rescue, in the objects of that origin only; says how
/// many there were. Takes its time: it is called on a thread for such work.
pub type OriginPurge = Arc<dyn Fn(&WebAddress, &Purge) -> u64 + Send + Sync>;

/// What the rescue links of a server need to know.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// Our own name, by which calls for help to us are signed in a closed community.
    pub site: HostName,
    /// Where this server answers web requests: told in `200 OK`, and spoken from if possible.
    pub address: IpAddr,
    /// Whether callers and candidates may be on private addresses.
    pub private_addresses: PrivateAddresses,
    /// Most inbound links at once.
    pub inbound_max: usize,
    /// Most inbound links of one address at once.
    pub inbound_per_address_max: usize,
    /// Longest time from the order to call for help to the answer.
    pub call_wait: Duration,
    /// Longest time to write one message.
    pub write_wait: Duration,
    /// Where visitors by HTTPS are answered.
    pub https: HttpsPorts,
    /// Limits of each link.
    pub session: SessionLimits,
    /// Who gives and checks permits; none where neither is done.
    pub integrity: Option<Arc<IntegrityOffice>>,
}

impl LinkSettings {
    /// The defaults for a server with this name and address.
    pub fn new(site: HostName, address: IpAddr) -> Self {
        Self {
            site,
            address,
            private_addresses: PrivateAddresses::Refused,
            // Sixteen origins are helped at once by default; the rest is for those that are asking.
            inbound_max: 256,
            // Several sites may stand behind one address.
            inbound_per_address_max: 32,
            // Two control intervals.
            call_wait: Duration::from_secs(2),
            // A message is one packet: it fits the send buffer unless the peer takes nothing.
            write_wait: Duration::from_secs(2),
            https: HttpsPorts::default(),
            session: SessionLimits::default(),
            integrity: None,
        }
    }
}

/// Whom the rescue links ask about others.
pub struct Surroundings {
    /// Where sites are.
    pub address_book: Arc<dyn AddressBook>,
    /// Who they are.
    pub trust: Arc<Trust>,
}

/// The rescue links of a server.
#[derive(Debug)]
pub struct RescueLinks {
    orders: mpsc::Sender<Order>,
    refusals: Refusals,
    purge_line: PurgeLine,
    alias_places: AliasPlaces,
    task: JoinHandle<()>,
}

/// What became of an output of the Brain.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the Brain must be told of a failure"]
pub enum Obeyed {
    /// It is on its way.
    Passed,
    /// It has nothing to do with rescue links.
    NotForLinks,
    /// It could not be carried out; the Brain must be told this.
    Failed(Input),
}

/// Says something to the origin of a link beside what the Brain wants said. Cheap to clone; the
/// links can end before it.
#[derive(Clone, Debug)]
pub struct RescueWord(mpsc::WeakSender<Order>);

impl RescueWord {
    /// Reports what another rescue server delivered. Where the link is gone or there is no room it
    /// is not said.
    pub fn report(&self, link: LinkId, report: levee_wire::Report) {
        let saying = Saying::Report(report);
        if let Some(orders) = self.0.upgrade() {
            let _ = orders.try_send(Order::Say { link, saying });
        }
    }
}

/// What the Brain wants of the switchboard.
#[derive(Debug)]
enum Order {
    Call {
        link: LinkId,
        candidate: Candidate,
        call: RescueCall,
    },
    Say {
        link: LinkId,
        saying: Saying,
    },
    Drop {
        link: LinkId,
    },
}

/// What the Brain wants said on a link.
#[derive(Debug)]
enum Saying {
    Accept { alias: WebAddress, rate: ByteRate },
    Reject,
    Rate(Rate),
    Purge(Purge),
    Peers(Vec<levee_vocab::Peer>),
    Report(levee_wire::Report),
    ShutDown,
}

impl RescueLinks {
    /// Starts the switchboard. It takes calls on `listener`, if there is one, and tells `events`
    /// what happened. Needs a tokio runtime.
    pub fn start(
        listener: Option<TcpListener>,
        settings: LinkSettings,
        community: Surroundings,
        charge: LinkCharge,
        origin_purge: OriginPurge,
        events: mpsc::Sender<Input>,
    ) -> Self {
        let (orders, inbox) = mpsc::channel(ORDERS_MAX);
        let refusals = Refusals::default();
        let purge_line = PurgeLine::start(orders.downgrade());
        let alias_places = AliasPlaces::default();
        let context = link_task::Context {
            purge_line: purge_line.clone(),
            refusals: refusals.clone(),
            peers_key: peers_key(),
            origin_purge,
            settings: Arc::new(settings),
            address_book: community.address_book,
            alias_places: alias_places.clone(),
            trust: community.trust,
            charge,
            events,
        };
        let switchboard = Switchboard::new(context, inbox, refusals.clone());
        let task = tokio::spawn(switchboard.run(listener));
        Self {
            orders,
            refusals,
            purge_line,
            alias_places,
            task,
        }
    }

    /// Carries out what the Brain wants of its links. Never waits.
    pub fn obey(&self, output: &Output) -> Obeyed {
        self.speaker().obey(output)
    }

    /// Who can say something later. Links do not end before it is dropped.
    pub fn speaker(&self) -> Speaker {
        Speaker {
            orders: self.orders.clone(),
            refusals: self.refusals.clone(),
        }
    }

    /// How many links and messages were refused, by cause.
    pub fn refusals(&self) -> Refusals {
        self.refusals.clone()
    }

    /// How to report to origins.
    pub fn word(&self) -> RescueWord {
        RescueWord(self.orders.downgrade())
    }

    /// How to have our rescue servers purge.
    pub fn purge_line(&self) -> PurgeLine {
        self.purge_line.clone()
    }

    /// Where the aliases of our rescue servers lead.
    pub fn alias_places(&self) -> AliasPlaces {
        self.alias_places.clone()
    }

    /// Takes no more calls, lets the links that are open say what they have been told to say, and
    /// ends when all are closed. Set a deadline: a link that nobody shut down stays open.
    ///
    /// Dropped half-way, the links go on closing.
    pub async fn finish(self) {
        drop(self.orders);
        // It ends by itself; a panic in it has been logged by the runtime.
        let _ = self.task.await;
    }
}

/// Carries out what the Brain wants of its links.
#[derive(Debug)]
pub struct Speaker {
    orders: mpsc::Sender<Order>,
    refusals: Refusals,
}

impl Speaker {
    /// Carries out what the Brain wants of its links. Never waits.
    pub fn obey(&self, output: &Output) -> Obeyed {
        let (link, order) = match output.clone() {
            Output::CallForHelp {
                link,
                candidate,
                call,
            } => (
                link,
                Order::Call {
                    link,
                    candidate,
                    call,
                },
            ),
            Output::AcceptSos { link, alias, rate } => say(link, Saying::Accept { alias, rate }),
            Output::RejectSos { link, reason: _ } => say(link, Saying::Reject),
            Output::TellRate {
                link,
                rate: redirects,
                carried,
            } => say(link, Saying::Rate(Rate { redirects, carried })),
            Output::TellPeers { link, members } => say(link, Saying::Peers(members)),
            Output::ShutDown { link, cause: _ } => say(link, Saying::ShutDown),
            Output::DropLink { link } => (link, Order::Drop { link }),
            Output::SearchRegistry { .. }
            | Output::Register { .. }
            | Output::Copy(_)
            | Output::SwapPlan
            | Output::RememberAliases
            | Output::RememberGiven
            | Output::Explain(_) => return Obeyed::NotForLinks,
        };
        let failed = match order {
            Order::Call { .. } => not_rescued(link),
            Order::Say { .. } | Order::Drop { .. } => lost(link),
        };
        match self.orders.try_send(order) {
            Ok(()) => Obeyed::Passed,
            Err(_) => {
                self.refusals.note("orders_full");
                Obeyed::Failed(failed)
            }
        }
    }
}

fn say(link: LinkId, saying: Saying) -> (LinkId, Order) {
    (link, Order::Say { link, saying })
}

/// What the Brain must be told of a call that could not be made.
const fn not_rescued(link: LinkId) -> Input {
    let rejection = Rejection::Unreachable;
    Input::RescueRefused { link, rejection }
}

/// What the Brain must be told of a link that is not there any more.
const fn lost(link: LinkId) -> Input {
    let loss = LinkLoss::Closed;
    Input::LinkLost { link, loss }
}

/// What our rescue servers show when they ask each other; the same for all and as long as we run.
/// Without randomness there is none, and they do not learn of each other.
fn peers_key() -> Option<FetchKey> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(FetchKey::from_bytes(bytes))
}

/// A link's name for people: which one, and who is at the other end.
#[derive(Clone, Copy, Debug)]
struct Peer {
    link: LinkId,
    address: SocketAddr,
}

/// A Brain gives a few orders an interval; this many only pile up when the switchboard is stuck.
const ORDERS_MAX: usize = 1024;
