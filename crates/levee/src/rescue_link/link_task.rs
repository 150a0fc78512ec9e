//! One rescue link: runs the pure session over a socket, until either is over.
//!
//! Reads little at a time, writes with a deadline, and waits for nothing without one. It decides
//! nothing but whether the address in an SOS may be believed, which needs a look into the registry.

mod alias;
mod permits;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use levee_control::{Candidate, Input, LinkLoss, Rejection, RescueCall};
use levee_net::Clock;
use levee_trust::{Deed, PublicKey};
use levee_vocab::{FetchKey, LinkId, Purge, WebAddress};
use levee_wire::rescue::{Message, Offer, Sos};
use levee_wire::{Ending, Event, Output, RescueSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use alias::Lookup;

use super::caller::{AddressBook, AddressRefusal, check_caller, check_range};
use super::{LinkCharge, LinkSettings, OriginPurge, Peer, PurgeLine, Refusals, Saying};
use super::{peers, translation};
use crate::alias_name::AliasPlaces;
use crate::community_socket;
use crate::trust::{Channel, CommunityStream, Counterpart, Denied, Trust};

/// What every link needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) settings: Arc<LinkSettings>,
    pub(super) address_book: Arc<dyn AddressBook>,
    pub(super) alias_places: AliasPlaces,
    pub(super) trust: Arc<Trust>,
    pub(super) charge: LinkCharge,
    pub(super) purge_line: PurgeLine,
    pub(super) origin_purge: OriginPurge,
    pub(super) refusals: Refusals,
    /// See [`super::peers_key`].
    pub(super) peers_key: Option<FetchKey>,
    pub(super) events: mpsc::Sender<Input>,
}

/// How a link ended, for the log and the counters.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) peer: Peer,
    pub(super) end: LinkEnd,
}

#[derive(Debug)]
pub(super) enum LinkEnd {
    /// As the session says.
    Session(Ending),
    /// The address in the SOS, or of the candidate, is not believed.
    AddressRefused(AddressRefusal),
    /// It is not trusted, or what it said is not.
    Denied(Denied),
    /// The candidate could not be connected to.
    NotConnected(io::Error),
    /// The operating system gave no randomness, so there is no key.
    NoKey(getrandom::Error),
}

/// A link that another server opened to us.
pub(super) async fn answer(
    context: Context,
    stream: TcpStream,
    peer: Peer,
    sayings: mpsc::Receiver<Saying>,
    is_greeted: Arc<AtomicBool>,
) -> Report {
    let (stream, counterpart) = match greet(&context, stream, peer).await {
        Ok(greeted) => greeted,
        Err(why) => {
            let end = LinkEnd::Denied(why);
            return Report { peer, end };
        }
    };
    let session = RescueSession::answer(Clock.now(), context.settings.session.clone());
    let lists = context.trust.newer_lists();
    let task = LinkTask {
        context,
        stream,
        counterpart,
        lists,
        peer,
        session,
        sayings,
        is_greeted,
        key: FetchKey::from_bytes([0; 16]),
        other: None,
        refusal: None,
        alias: None,
        heard_key: None,
        permit_at: None,
        names: Names::Believed,
        alias_watch: JoinSet::new(),
    };
    task.run(None).await
}

/// Who is not a site of this community is told so and let go before it can say anything.
async fn greet(
    context: &Context,
    stream: TcpStream,
    peer: Peer,
) -> Result<(CommunityStream, Counterpart), Denied> {
    let trust = &context.trust;
    let wait = context.settings.call_wait;
    let accepting = timeout(wait, trust.accept(stream, Channel::Rescue)).await;
    let (mut stream, counterpart) = accepting.unwrap_or_else(|_| {
        let told = format!("no handshake within {} s", wait.as_secs());
        Err(Denied::NoKey(told))
    })?;
    let what = format!("rescue link from {}", peer.address);
    if let Err(why) = trust.permits(counterpart, Deed::CallForHelp, &what) {
        // Its SOS has the number 1. Whether it still listens does not matter.
        let words = format!("1 403 Reject {why}\n");
        let telling = async {
            stream.write_all(words.as_bytes()).await?;
            stream.shutdown().await
        };
        let _ = timeout(wait, telling).await;
        return Err(why);
    }
    Ok((stream, counterpart))
}

/// A link that we open to ask for help.
pub(super) async fn call(
    context: Context,
    link: LinkId,
    candidate: Candidate,
    call: RescueCall,
    sayings: mpsc::Receiver<Saying>,
) -> Report {
    let settings = Arc::clone(&context.settings);
    let address = candidate.rescue;
    let peer = Peer { link, address };
    let answer_by = Clock.now() + settings.call_wait;
    let opened = open(&context, &candidate, call.address).await;
    let (stream, counterpart, key) = match opened {
        Ok(opened) => opened,
        Err(end) => {
            let rejection = Rejection::Unreachable;
            // The Brain is gone only when the server stops: then nobody wants to know.
            let _ = context
                .events
                .send(Input::RescueRefused { link, rejection })
                .await;
            return Report { peer, end };
        }
    };
    let asked = &candidate.site.host;
    // A rehearsal is there to find out where names lead, and nobody else is sent there.
    let names = match call.drill {
        Some(_) => Names::Believed,
        None => Names::LookedUp,
    };
    let sos = translation::sos(call, key, settings.https.now().site);
    let sos = context.trust.signed_sos(sos, asked);
    let (session, first) = RescueSession::call(sos, answer_by, settings.session.clone());
    let lists = context.trust.newer_lists();
    let task = LinkTask {
        context,
        stream,
        counterpart,
        lists,
        peer,
        session,
        sayings,
        is_greeted: Arc::default(),
        key,
        other: Some(candidate.site),
        refusal: None,
        alias: None,
        heard_key: None,
        permit_at: None,
        names,
        alias_watch: JoinSet::new(),
    };
    task.run(Some(first)).await
}

async fn open(
    context: &Context,
    candidate: &Candidate,
    source: IpAddr,
) -> Result<(CommunityStream, Counterpart, FetchKey), LinkEnd> {
    let (settings, trust) = (&context.settings, &context.trust);
    let target = candidate.rescue;
    check_range(target.ip(), settings.private_addresses).map_err(LinkEnd::AddressRefused)?;
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(LinkEnd::NoKey)?;
    let connecting = async {
        let stream = community_socket::connect(Some(source), target).await?;
        trust.connect(stream, Channel::Rescue).await
    };
    let (stream, counterpart) = timeout(settings.call_wait, connecting)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(LinkEnd::NotConnected)?;
    let what = format!("rescue server {} at {target}", candidate.site);
    trust
        .permits_as(counterpart, &candidate.site.host, Deed::Rescue, &what)
        .map_err(LinkEnd::Denied)?;
    Ok((stream, counterpart, FetchKey::from_bytes(bytes)))
}

struct LinkTask {
    context: Context,
    stream: CommunityStream,
    /// Who has proved to be at the other end.
    counterpart: Counterpart,
    /// Changes with each newer member list.
    lists: watch::Receiver<u64>,
    peer: Peer,
    session: RescueSession,
    sayings: mpsc::Receiver<Saying>,
    /// Set when a whole SOS has come: from then on the link is not thrown out for a newer one.
    is_greeted: Arc<AtomicBool>,
    key: FetchKey,
    /// The other side's own name: of the candidate that we call, or of the origin that calls us.
    other: Option<WebAddress>,
    refusal: Option<LinkEnd>,
    /// The alias under which the rescue server of this link serves its origin.
    alias: Option<WebAddress>,
    /// The key of the origin's first permit.
    heard_key: Option<PublicKey>,
    /// When to give the next permit.
    permit_at: Option<Instant>,
    names: Names,
    /// Ends when the alias leads away from its rescue server.
    alias_watch: JoinSet<Denied>,
}

/// Whether it matters where the alias of an offer leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Believed,
    LookedUp,
}

/// Whether an offer is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Belief {
    Given,
    Refused,
}

/// Whether the other side may still send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    Ended,
}

impl LinkTask {
    async fn run(mut self, first: Option<Output>) -> Report {
        let ending = self.live(first).await;
        self.say_goodbye().await;
        let end = match self.refusal {
            Some(refusal) => refusal,
            None => LinkEnd::Session(ending),
        };
        let peer = self.peer;
        Report { peer, end }
    }

    async fn live(&mut self, first: Option<Output>) -> Ending {
        let mut buffer = [0; READ_MAX];
        let mut reading = Reading::Open;
        if let Some(ending) = self.carry_out(first.into_iter().collect()).await {
            return ending;
        }
        loop {
            let deadline = self.session.next_deadline();
            let wait = deadline.map(|deadline| deadline.since(Clock.now()));
            let permit_at = self.permit_at.unwrap_or_else(Instant::now);
            let outputs = tokio::select! {
                read = self.stream.read(&mut buffer), if reading == Reading::Open => match read {
                    Ok(0) | Err(_) => {
                        reading = Reading::Ended;
                        self.happens(levee_wire::Input::PeerClosed)
                    }
                    Ok(count) => {
                        self.happens(levee_wire::Input::BytesReceived(&buffer[..count]))
                    }
                },
                saying = self.sayings.recv() => match saying {
                    Some(saying) => self.say(saying),
                    // The switchboard is gone, and with it everybody who could want this link.
                    None => return Ending::Finished,
                },
                Some(Ok(elsewhere)) = self.alias_watch.join_next() => {
                    self.refusal = Some(self.denies(elsewhere));
                    self.happens(levee_wire::Input::PeerClosed)
                }
                () = sleep_until(permit_at), if self.permit_at.is_some() => self.give_permit(),
                // Fails only when the server stops.
                Ok(()) = self.lists.changed() => self.look_again(),
                () = sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {
                    self.happens(levee_wire::Input::TimerFired)
                }
            };
            if let Some(ending) = self.carry_out(outputs).await {
                return ending;
            }
        }
    }

    /// A newer member list is in force: who is not on it any more is let go, in the middle of a
    /// rescue too.
    fn look_again(&mut self) -> Vec<Output> {
        let deed = match self.peer.link {
            LinkId::Inbound(_) => Deed::CallForHelp,
            LinkId::Outbound(_) => Deed::Rescue,
        };
        let what = format!("rescue link {} with {}", self.peer.link, self.peer.address);
        match self.context.trust.permits(self.counterpart, deed, &what) {
            Ok(_) => Vec::new(),
            Err(why) => {
                self.refusal = Some(LinkEnd::Denied(why));
                self.happens(levee_wire::Input::PeerDenied)
            }
        }
    }

    fn say(&mut self, saying: Saying) -> Vec<Output> {
        let (address, key) = (self.context.settings.address, self.context.peers_key);
        if let Saying::Accept { alias, .. } = &saying {
            self.alias = Some(alias.clone());
            self.believe_caller();
        }
        let tls = self.context.settings.https.now().alias;
        match translation::said(saying, (address, tls), key) {
            Some(input) => self.happens(input),
            None => Vec::new(),
        }
    }

    fn happens(&mut self, input: levee_wire::Input<'_>) -> Vec<Output> {
        self.session.handle(Clock.now(), input)
    }

    /// Carries out what the session wants, in order; the ending if that is what it wants.
    async fn carry_out(&mut self, outputs: Vec<Output>) -> Option<Ending> {
        let mut queue = std::collections::VecDeque::from(outputs);
        while let Some(output) = queue.pop_front() {
            match output {
                Output::Send(message) => {
                    if let Err(failure) = self.write(&message).await {
                        // What else the session wanted is told before it learns of the failure:
                        // an event that happened has happened.
                        queue.retain(|output| !matches!(output, Output::Send(_)));
                        queue.extend(self.happens(failure));
                    }
                }
                Output::Tell(Event::SosReceived(sos)) => queue.extend(self.take_sos(sos).await),
                Output::Tell(Event::PurgeReceived(purge)) => queue.extend(self.purge(purge).await),
                Output::Tell(Event::PurgeAnswered(answer)) => {
                    self.context
                        .purge_line
                        .answered(self.peer.link, answer)
                        .await;
                }
                Output::Tell(Event::PeersReceived(told)) => {
                    let private = self.context.settings.private_addresses;
                    let known = peers::believed(told, private, &self.context.refusals);
                    self.tell(Event::PeersReceived(known)).await;
                }
                Output::Tell(Event::Accepted(offer)) => {
                    let alias = offer.alias.clone();
                    if self.take_offer(offer).await == Belief::Refused {
                        return Some(Ending::Finished);
                    }
                    self.alias = Some(alias);
                    queue.extend(self.give_permit());
                }
                Output::Tell(Event::PermitReceived(permit)) => self.take_permit(&permit).await,
                Output::Tell(Event::ReportReceived(report)) => self.take_report(report),
                Output::Tell(event) => self.tell(event).await,
                Output::Close(ending) => return Some(ending),
            }
        }
        None
    }

    async fn write(&mut self, message: &Message) -> Result<(), levee_wire::Input<'static>> {
        let mut bytes = Vec::with_capacity(128);
        message.encode(&mut bytes);
        (self.context.charge)(bytes.len() as u64 + PACKET_OVERHEAD);
        let writing = async {
            self.stream.write_all(&bytes).await?;
            self.stream.flush().await
        };
        match timeout(self.context.settings.write_wait, writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(levee_wire::Input::PeerClosed),
            Err(_) => Err(levee_wire::Input::PeerStalled),
        }
    }

    /// The Brain is asked only about callers whose address may be believed.
    async fn take_sos(&mut self, sos: Sos) -> Vec<Output> {
        let (trust, own) = (&self.context.trust, &self.context.settings.site);
        if let Err(why) = trust.check_sos(&sos, own, self.counterpart) {
            self.refusal = Some(LinkEnd::Denied(why));
            return self.happens(levee_wire::Input::SosRejected);
        }
        let site = sos.origin.host.clone();
        let book = Arc::clone(&self.context.address_book);
        let private = self.context.settings.private_addresses;
        let peer = self.peer.address.ip();
        match check_caller(&site, sos.address, peer, private, &*book).await {
            Ok(()) => {
                self.is_greeted.store(true, Ordering::Release);
                self.other = Some(sos.origin.clone());
                self.tell(Event::SosReceived(sos)).await;
                Vec::new()
            }
            Err(refusal) => {
                self.refusal = Some(LinkEnd::AddressRefused(refusal));
                self.happens(levee_wire::Input::SosRejected)
            }
        }
    }

    /// Copies are sent to where an offer says, and visitors to where its name leads, so nobody may
    /// offer another's place, nor one inside of our own network.
    async fn take_offer(&mut self, offer: Offer) -> Belief {
        let lookup = Lookup {
            alias: offer.alias.clone(),
            told: offer.address,
            book: Arc::clone(&self.context.address_book),
            place: self.context.alias_places.open(self.peer.link),
        };
        match self.check_offer(&offer, &lookup).await {
            Ok(()) => {
                self.alias_watch = lookup.watch(self.names);
                self.tell(Event::Accepted(offer)).await;
                Belief::Given
            }
            Err(refusal) => {
                self.refusal = Some(refusal);
                let (link, rejection) = (self.peer.link, Rejection::Garbage);
                // The Brain is gone only when the server stops: then nobody wants to know.
                let refused = Input::RescueRefused { link, rejection };
                let _ = self.context.events.send(refused).await;
                Belief::Refused
            }
        }
    }

    async fn check_offer(&self, offer: &Offer, alias: &Lookup) -> Result<(), LinkEnd> {
        let private = self.context.settings.private_addresses;
        let book = &*self.context.address_book;
        let peer = self.peer.address.ip();
        let checked = match self.other.as_ref().map(|site| &site.host) {
            Some(site) => check_caller(site, offer.address, peer, private, book).await,
            None => check_range(offer.address, private),
        };
        checked.map_err(LinkEnd::AddressRefused)?;
        match self.names {
            Names::Believed => Ok(()),
            Names::LookedUp => {
                let looked = alias.look().await;
                looked.map_err(|elsewhere| self.denies(elsewhere))
            }
        }
    }

    /// Counts why the other side is let go, for the status page.
    fn denies(&self, why: Denied) -> LinkEnd {
        let name = self.other.as_ref().map(|site| site.host.as_str());
        let what = format!("rescue server {}", name.unwrap_or_default());
        self.context.trust.refuse(&what, why.clone());
        LinkEnd::Denied(why)
    }

    /// Removes what the origin wants removed, then says so.
    async fn purge(&mut self, purge: Purge) -> Vec<Output> {
        let work = Arc::clone(&self.context.origin_purge);
        let objects = match (self.peer.link, self.other.clone()) {
            (LinkId::Inbound(_), Some(origin)) => {
                tokio::task::spawn_blocking(move || work(&origin, &purge)).await
            }
            // An origin asks; a rescue server has nothing to purge here.
            (LinkId::Outbound(_), _) | (LinkId::Inbound(_), None) => Ok(0),
        };
        match objects {
            Ok(objects) => self.happens(levee_wire::Input::PurgeDone { objects }),
            // What may still be there must not be confirmed.
            Err(_) => self.happens(levee_wire::Input::PeerClosed),
        }
    }

    async fn tell(&self, event: Event) {
        if let (Event::Accepted(_), Some(site)) = (&event, &self.other) {
            let site = site.clone();
            self.context.purge_line.came(self.peer.link, site).await;
        }
        let Some(mut input) = translation::told(self.peer.link, event, self.key) else {
            return;
        };
        if let Input::LinkLost { loss, .. } = &mut input {
            *loss = self.true_loss(*loss);
        }
        // The Brain is gone only when the server stops: then nobody wants to know.
        let _ = self.context.events.send(input).await;
    }

    /// Whom we let go has not died, so no permit of its counts, and neither has who may have let us
    /// go.
    fn true_loss(&self, loss: LinkLoss) -> LinkLoss {
        match (loss, &self.refusal) {
            (_, Some(LinkEnd::Denied(_))) => LinkLoss::Distrusted,
            (LinkLoss::Closed | LinkLoss::Silent, _)
                if !self.context.trust.is_listed(&self.context.settings.site) =>
            {
                LinkLoss::NotAMember
            }
            (loss, _) => loss,
        }
    }

    /// Closes so that the other side can read our last words: a socket closed with unread bytes in
    /// it is reset, and a reset takes back what was not read yet.
    async fn say_goodbye(&mut self) {
        let closing = async {
            self.stream.shutdown().await?;
            let mut buffer = [0; READ_MAX];
            let mut left = GOODBYE_BYTES;
            while left > 0 {
                let count = self.stream.read(&mut buffer).await?;
                if count == 0 {
                    break;
                }
                left = left.saturating_sub(count);
            }
            io::Result::Ok(())
        };
        // Whatever goes wrong now, the link is over.
        let _ = timeout(GOODBYE_WAIT, closing).await;
    }
}

/// Lines are short and few; a peer that sends more waits for its turn.
const READ_MAX: usize = 2048;
/// Bytes on the link beside a message: the headers of its packet and of the one that acknowledges
/// it.
const PACKET_OVERHEAD: u64 = 70;
/// Two round trips around the world.
const GOODBYE_WAIT: Duration = Duration::from_millis(500);
/// What an honest peer may have had under way.
const GOODBYE_BYTES: usize = 64 * 1024;
