//! Opens the link to one other registry, again and again.
//!
//! Pauses grow and are jittered. While there is a link to that registry, whoever opened it, nothing
//! is tried. Its name is looked up for every attempt, since an address may change.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_registry::Side;
use levee_trust::Deed;
use levee_vocab::Random;
use levee_wire::LineReader;
use levee_wire::mesh::{RegistryId, Welcome, encode_hello, parse_welcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::lookup_host;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::budget_holder::BudgetHolder;
use super::peers::Holder;
use super::pump::{Pump, reader};
use super::tally::Tally;
use super::{Event, Greeting, HeldBudgets};
use crate::community_socket;
use crate::trust::{Channel, CommunityStream, Counterpart, Trust};

/// What opens the link to one registry.
pub(super) struct Dialer {
    /// Its number among the peers.
    pub(super) peer: usize,
    /// `host:port`.
    pub(super) name: String,
    /// Ourselves.
    pub(super) own: RegistryId,
    pub(super) trust: Arc<Trust>,
    pub(super) tally: Arc<Tally>,
    /// Of what registries say.
    pub(super) messages: HeldBudgets,
    pub(super) events: mpsc::Sender<Event>,
    /// To whom there are links.
    pub(super) linked: watch::Receiver<BTreeSet<Holder>>,
    pub(super) random: Random,
}

/// What came of an attempt.
enum Attempt {
    /// A link was there, and has ended.
    Ended(String),
    /// There is a link that the other side opened, or it is ourselves.
    Already(RegistryId, Holder),
    /// There is none.
    Failed(String),
}

/// A connection on which the other side has answered the greeting.
struct Opened {
    stream: CommunityStream,
    /// Who has proved to be at the other end.
    other: Counterpart,
    address: IpAddr,
    lines: LineReader,
    welcome: Welcome,
    /// What came behind the answer.
    rest: Vec<u8>,
}

impl Dialer {
    /// Runs for ever.
    pub(super) async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        let mut complained = String::new();
        loop {
            let trouble = match self.attempt().await {
                Attempt::Already(number, holder) => {
                    let (peer, registry) = (self.peer, (number, holder));
                    let known = Event::PeerKnown { peer, registry };
                    let _ = self.events.send(known).await;
                    if number == self.own {
                        info!(peer = self.name, "this peer is ourselves");
                        return;
                    }
                    self.wait_while_linked(holder).await;
                    pause = PAUSE_MIN;
                    continue;
                }
                Attempt::Ended(why) => {
                    pause = PAUSE_MIN;
                    complained.clear();
                    why
                }
                Attempt::Failed(why) => why,
            };
            // Once for each kind of trouble, not for each attempt.
            if trouble != complained {
                warn!(peer = self.name, "no link to another registry: {trouble}");
                complained.clone_from(&trouble);
            }
            let peer = self.peer;
            let _ = self.events.send(Event::PeerAway { peer, trouble }).await;
            sleep(pause.mul_f64(0.5 + 0.5 * self.random.fraction())).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn attempt(&self) -> Attempt {
        let opened = timeout(ATTEMPT_WAIT, self.open()).await;
        let Opened {
            stream,
            other,
            address,
            lines,
            welcome,
            rest,
        } = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(trouble)) => return Attempt::Failed(trouble),
            Err(_) => return Attempt::Failed("it does not answer".to_owned()),
        };
        let registry = match welcome {
            Welcome::Open(registry) | Welcome::Already(registry)
                if self.is_disguised(registry, other) =>
            {
                return Attempt::Failed("it says our own number, and is another".to_owned());
            }
            Welcome::Open(registry) => registry,
            Welcome::Already(registry) => {
                return Attempt::Already(registry, Holder::of(registry, other));
            }
            Welcome::Refused { code, text } => {
                return Attempt::Failed(format!("it refuses us: {code} {text}"));
            }
        };
        let (outbox, inbox) = mpsc::channel(1);
        let (answer, answered) = oneshot::channel();
        let greeting = Greeting {
            registry,
            holder: Holder::of(registry, other),
            side: Side::Opener,
            place: self.name.clone(),
            outbox,
            answer,
        };
        let peer = Some(self.peer);
        let _ = self.events.send(Event::Greeted { greeting, peer }).await;
        let Ok(Some(link)) = answered.await else {
            return Attempt::Already(registry, Holder::of(registry, other));
        };
        info!(peer = self.name, %registry, "linked to another registry");
        let pump = Pump {
            link,
            place: self.name.clone(),
            stream,
            trust: Arc::clone(&self.trust),
            tally: Arc::clone(&self.tally),
            other,
            reader: lines,
            rest,
            events: self.events.clone(),
            outbox: inbox,
            budget: (BudgetHolder::of(other, address), Arc::clone(&self.messages)),
        };
        Attempt::Ended(pump.run().await)
    }

    async fn open(&self) -> Result<Opened, String> {
        let found = lookup_host(&self.name).await;
        let found: Vec<SocketAddr> = found
            .map_err(|error| format!("its name has no address: {error}"))?
            .collect();
        let (peer, addresses) = (self.peer, found.iter().map(SocketAddr::ip).collect());
        let _ = self.events.send(Event::PeerFound { peer, addresses }).await;
        let mut trouble = "its name has no address".to_owned();
        for address in found {
            match community_socket::connect(None, address).await {
                Ok(stream) => {
                    let stream = self.trust.connect(stream, Channel::Registry).await;
                    let (stream, other) = stream.map_err(|error| error.to_string())?;
                    let what = format!("registry at {address}");
                    let permitted = self.trust.permits(other, Deed::SpreadEntries, &what);
                    permitted.map_err(|why| why.to_string())?;
                    return self.greet(stream, (other, address.ip())).await;
                }
                Err(error) => trouble = format!("cannot connect to {address}: {error}"),
            }
        }
        Err(trouble)
    }

    async fn greet(
        &self,
        mut stream: CommunityStream,
        (other, address): (Counterpart, IpAddr),
    ) -> Result<Opened, String> {
        let mut hello = Vec::new();
        encode_hello(self.own, 1, &mut hello);
        stream.write_all(&hello).await.map_err(|e| e.to_string())?;
        stream.flush().await.map_err(|e| e.to_string())?;
        let mut lines = reader();
        let mut buffer = [0; 1024];
        loop {
            let count = stream.read(&mut buffer).await.map_err(|e| e.to_string())?;
            if count == 0 {
                return Err("it closed the connection".to_owned());
            }
            let mut rest = &buffer[..count];
            let line = lines.next_line(&mut rest).map_err(|e| e.to_string())?;
            if let Some(line) = line {
                let welcome = parse_welcome(line);
                let (_, welcome) = welcome.map_err(|e| format!("it is no registry: {e}"))?;
                let rest = rest.to_vec();
                return Ok(Opened {
                    stream,
                    other,
                    address,
                    lines,
                    welcome,
                    rest,
                });
            }
        }
    }

    /// Whether another one says that it is this registry, so that we leave it alone for ever.
    fn is_disguised(&self, registry: RegistryId, other: Counterpart) -> bool {
        let is_another = |key| key != self.trust.identity().key();
        registry == self.own && matches!(other, Counterpart::Key(key) if is_another(key))
    }

    async fn wait_while_linked(&mut self, holder: Holder) {
        // The link may be so new that it is not known yet on this side.
        sleep(PAUSE_MIN).await;
        let gone = |linked: &BTreeSet<Holder>| !linked.contains(&holder);
        // Fails only when the registry stops.
        let _ = self.linked.wait_for(gone).await;
    }
}

/// Name, connection and greeting.
const ATTEMPT_WAIT: Duration = Duration::from_secs(3);
/// A registry that restarts is back within a second.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// One that is gone for good is asked some forty times a minute, so that after a cut both sides
/// agree within seconds.
const PAUSE_MAX: Duration = Duration::from_secs(2);
