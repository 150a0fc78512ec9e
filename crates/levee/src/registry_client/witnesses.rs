//! The other registries: what they say counts as much as what the one says that we use.
//!
//! A registry of a closed community can say nothing false, since sites sign what they register, but
//! it can leave out whom it likes, or keep what we register from everybody else. So each search is
//! compared with what the others find, and the newest word of each site counts, whoever tells it;
//! and the others are asked whether they know us, and told where they do not. So with what members
//! say of each other: it is told to all, and heard from all. Who lies so costs its members nothing
//! as long as one registry that they know is honest. What is missing for two seconds is counted and
//! named: before that it may be on its way.
//!
//! In an open community nothing is signed: there the others only add whom the one that we use does
//! not name, where its answer has room left.
//!
//! Who refuses us leaves us out in another way: what one refuses is asked of the others all the
//! same.
//!
//! A connection is made for each question, since registries have room for as many as they have
//! members. One that does not answer is left alone (`away`). Which entries belong into an
//! answer is decided in `levee_registry`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_net::Shared;
use levee_registry::{best, filled, known_first, missing, newest};
use levee_trust::Role;
use levee_vocab::HostName;
use levee_wire::registry::{Accusation, Entry, Farewell, Reply, Request, Search};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::away::AwayTable;
use super::exchange::Exchange;
use super::{DirectoryError, RegistryClientSettings};
use crate::trust::{Denied, Missed, unix_now};

/// See the file header.
pub(super) struct Witnesses {
    settings: RegistryClientSettings,
    memory: Arc<Shared<Memory>>,
    away: AwayTable,
}

#[derive(Default)]
struct Memory {
    /// Who is left out by whom, and since when.
    missed: BTreeMap<SocketAddr, BTreeMap<HostName, Instant>>,
    /// What we have registered.
    offer: Option<Offer>,
    /// Who is asked first, where there are more than are asked at once.
    turn: usize,
}

/// What we register, as it was said last: what is on its way already counts, or an older word could
/// come after it.
#[derive(Clone)]
struct Offer {
    entry: Entry,
    /// The calendar when it was said.
    stamp: u64,
    registered: Option<Registered>,
}

/// That a registry has taken it.
#[derive(Clone, Copy)]
struct Registered {
    at: SocketAddr,
    /// Since when there without a break.
    since: Instant,
    last: Instant,
}

/// What came of a question to a registry.
type Answer = (SocketAddr, Result<Testimony, DirectoryError>);

/// What another registry says.
struct Testimony {
    found: Vec<Entry>,
    said: Vec<Accusation>,
    our_entry: OurEntry,
    /// For how long it has taken our registration, if it was asked for that.
    lifetime: Option<Duration>,
}

impl Testimony {
    fn finds(found: Vec<Entry>) -> Self {
        Self {
            found,
            said: Vec::new(),
            our_entry: OurEntry::Known,
            lifetime: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OurEntry {
    /// It knows it, or was not asked.
    Known,
    /// It did not, and was told.
    Told,
}

impl Memory {
    /// Those of `missing` whom a registry has left out for so long that it is no accident.
    fn settled(&mut self, registry: SocketAddr, missing: BTreeSet<HostName>) -> Vec<HostName> {
        let now = Instant::now();
        let before = self.missed.remove(&registry).unwrap_or_default();
        let since = |host: HostName| {
            let since = before.get(&host).copied().unwrap_or(now);
            (host, since)
        };
        let missed: BTreeMap<HostName, Instant> = missing.into_iter().map(since).collect();
        let settled = missed
            .iter()
            .filter(|(_, since)| **since + SETTLED_AFTER <= now);
        let settled = settled.map(|(host, _)| host.clone()).collect();
        if !missed.is_empty() {
            self.missed.insert(registry, missed);
        }
        settled
    }
}

impl Witnesses {
    /// `away` is also where the one that we use is noted.
    pub(super) fn new(settings: RegistryClientSettings, away: AwayTable) -> Self {
        Self {
            settings,
            memory: Arc::default(),
            away,
        }
    }

    /// We are about to register.
    pub(super) fn note_offered(&self, entry: &Entry) {
        let (entry, stamp) = (entry.clone(), unix_now().0);
        self.memory.with(|memory| {
            let registered = memory.offer.take().and_then(|before| before.registered);
            memory.offer = Some(Offer {
                entry,
                stamp,
                registered,
            });
        });
    }

    /// The registry `at` has taken what we offered, for `lifetime`.
    pub(super) fn note_registered(&self, at: SocketAddr, lifetime: Duration) {
        let now = Instant::now();
        self.memory.with(|memory| {
            // Who has left meanwhile is not registered, whatever comes of what was on its way.
            let Some(offer) = &mut memory.offer else {
                return;
            };
            let unbroken = |one: &Registered| one.at == at && now <= one.last + lifetime;
            let before = offer.registered.filter(unbroken);
            let since = before.map_or(now, |before| before.since);
            let last = now;
            offer.registered = Some(Registered { at, since, last });
        });
    }

    /// Registers us at the others, since `asked` refuses; gives for how long, where one takes us.
    ///
    /// Cancel safety: dropped half-way, some may know us and others not.
    pub(super) async fn register(&self, asked: SocketAddr, entry: &Entry) -> Option<Duration> {
        let question = Question::Register(Box::new(entry.clone()));
        let testimonies = self.ask(asked, question).await;
        testimonies
            .into_iter()
            .filter_map(|(_, one)| one.lifetime)
            .max()
    }

    /// We leave: nobody is told any more what we have registered.
    pub(super) fn note_left(&self) {
        self.memory.with(|memory| memory.offer = None);
    }

    /// Tells the others that we leave: they may know us from ourselves, and not from `asked`.
    ///
    /// Cancel safety: dropped half-way, some forget us when our registration ends.
    pub(super) async fn leave(&self, asked: SocketAddr, site: &HostName) {
        self.ask(asked, Question::Leave(site.clone())).await;
    }

    /// Whether the other members do not take us for one of them.
    pub(super) fn is_excluded(&self) -> bool {
        self.settings.trust.exclusion(Role::Site).is_some()
    }

    /// What all registries find together, where `asked` has found `found`.
    ///
    /// Cancel safety: dropped half-way, the other registries' answers are not counted.
    pub(super) async fn compare(
        &self,
        (asked, found): (SocketAddr, Vec<Entry>),
        search: &Search,
    ) -> Vec<Entry> {
        let question = Question::Whom {
            search: search.clone(),
            offer: self.settled_offer(),
        };
        let mut answers = BTreeMap::from([(asked, found)]);
        for (registry, testimony) in self.ask(asked, question).await {
            if testimony.our_entry == OurEntry::Told {
                let what = format!("registration at registry {asked}");
                let why = Denied::NotPassedOn { registry };
                self.settings.trust.refuse(&what, why);
            }
            answers.insert(registry, testimony.found);
            self.settings.trust.note_accusations(testimony.said);
        }
        let is_kept = |entry: &Entry| !self.settings.trust.is_left_out(&entry.site.host);
        let mut first = answers.get(&asked).cloned().unwrap_or_default();
        first.retain(is_kept);
        let mut all = match self.settings.trust.is_closed() {
            true => newest(answers.values().flatten().cloned()),
            // Nothing is signed: who is found there is added, and nobody's word replaced.
            false => known_first(&first, answers.values().flatten().cloned()),
        };
        all.retain(is_kept);
        self.judge(&answers, &all, search);
        // A registry may not have the newest member list yet.
        let may_be_asked = |entry: &Entry| self.settings.trust.may_be_asked(&entry.site.host);
        first.retain(may_be_asked);
        all.retain(may_be_asked);
        match self.settings.trust.is_closed() {
            true => best(&all, search),
            false => filled(&first, &all, search),
        }
    }

    /// Tells the others as well what we say of a member; whether any of them has heard it. It is
    /// said again in the next period.
    ///
    /// Cancel safety: dropped half-way, some may know it and others not.
    pub(super) async fn tell(&self, asked: SocketAddr, accusation: Accusation) -> bool {
        let question = Question::Hear(Box::new(accusation));
        !self.ask(asked, question).await.is_empty()
    }

    /// The entry of `site`, which `asked` does not know.
    ///
    /// Cancel safety: nothing is lost.
    pub(super) async fn look_up(&self, asked: SocketAddr, site: &HostName) -> Option<Entry> {
        // Who asks waits for a visitor's sake: the first that knows it is enough.
        let mut asking = self.begin(asked, &Question::Where(site.clone()));
        while let Some((_, testimony)) = self.next(&mut asking).await {
            let mut found = testimony.found.into_iter();
            if let Some(entry) = found.find(|entry| entry.site.host == *site) {
                return Some(entry);
            }
        }
        None
    }

    /// Counts who is left out by whom, and was before.
    fn judge(&self, answers: &BTreeMap<SocketAddr, Vec<Entry>>, all: &[Entry], search: &Search) {
        for (registry, answer) in answers {
            let missing: BTreeSet<HostName> =
                missing(answer, all, search).into_iter().cloned().collect();
            let settled = self
                .memory
                .with(|memory| memory.settled(*registry, missing));
            let names_one = |(_, entries): &(&SocketAddr, &Vec<Entry>)| {
                let mut hosts = entries.iter().map(|entry| &entry.site.host);
                hosts.any(|host| settled.contains(host))
            };
            let Some((witness, _)) = answers.iter().find(names_one) else {
                continue;
            };
            let missed = match answer.is_empty() {
                true => Missed::Everybody,
                false => Missed::Members(settled),
            };
            let (what, registry) = (format!("search at registry {registry}"), *witness);
            let why = Denied::LeftOut { registry, missed };
            self.settings.trust.refuse(&what, why);
        }
    }

    /// What we have registered, once the registries have had the time to tell each other.
    fn settled_offer(&self) -> Option<OurOffer> {
        let registered = self
            .memory
            .with(|memory| memory.offer.as_ref()?.registered)?;
        let is_settled = registered.since.elapsed() >= SETTLED_AFTER;
        is_settled.then(|| OurOffer(Arc::clone(&self.memory)))
    }

    /// Asks the others, all at once; gives what those say that answer in time.
    async fn ask(&self, asked: SocketAddr, question: Question) -> Vec<(SocketAddr, Testimony)> {
        let mut asking = self.begin(asked, &question);
        let mut testimonies = Vec::new();
        while let Some(testimony) = self.next(&mut asking).await {
            testimonies.push(testimony);
        }
        testimonies
    }

    fn begin(&self, asked: SocketAddr, question: &Question) -> JoinSet<Answer> {
        let mut asking = JoinSet::new();
        for registry in self.others(asked) {
            let (settings, question) = (self.settings.clone(), question.clone());
            asking.spawn(async move {
                let wait = settings.exchange_wait / 2;
                let testimony = timeout(wait, question.put(&settings, registry)).await;
                let late = Err(DirectoryError::TimedOut { registry, wait });
                (registry, testimony.unwrap_or(late))
            });
        }
        asking
    }

    /// What the next one says that says anything.
    async fn next(&self, asking: &mut JoinSet<Answer>) -> Option<(SocketAddr, Testimony)> {
        while let Some(Ok((registry, testimony))) = asking.join_next().await {
            match testimony {
                Ok(testimony) => {
                    self.away.forget(registry);
                    return Some((registry, testimony));
                }
                // Whoever refuses is there.
                Err(DirectoryError::Refused { .. }) => {
                    self.away.forget(registry);
                }
                Err(error) => {
                    let pauses = (self.settings.retry_delay_min, REST_MAX);
                    self.away
                        .failed_in_search(registry, error.to_string(), pauses);
                }
            }
        }
        None
    }

    /// Whom to ask beside `asked`, in turns where there are many.
    fn others(&self, asked: SocketAddr) -> Vec<SocketAddr> {
        let mut others = self.settings.registries.borrow().registries.clone();
        self.away.keep(&others);
        self.memory.with(|memory| {
            memory.missed.retain(|place, _| others.contains(place));
            others.retain(|place| *place != asked && !self.away.spares_searches(*place));
            let first = memory.turn % others.len().max(1);
            others.rotate_left(first);
            memory.turn = memory.turn.wrapping_add(1);
        });
        others.truncate(WITNESSES_MAX);
        others
    }
}

impl fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witnesses for {}", self.settings.site)
    }
}

/// What the others are asked.
#[derive(Clone)]
enum Question {
    /// Whom they find, what members say of each other, and whether they know what we have
    /// registered, if anything.
    Whom {
        search: Search,
        offer: Option<OurOffer>,
    },
    /// The entry of a site.
    Where(HostName),
    /// Nothing: they are told what we say of a member.
    Hear(Box<Accusation>),
    /// To take us, since another one does not.
    Register(Box<Entry>),
    /// To forget us.
    Leave(HostName),
}

impl Question {
    async fn put(
        self,
        settings: &RegistryClientSettings,
        registry: SocketAddr,
    ) -> Result<Testimony, DirectoryError> {
        let opened = Exchange::open(settings, registry).await;
        let mut exchange =
            opened.map_err(|source| DirectoryError::Unreachable { registry, source })?;
        let (search, offer) = match self {
            Self::Where(site) => {
                let reply = exchange.ask(&Request::Query(site)).await?;
                return Ok(Testimony::finds(found(reply)));
            }
            Self::Hear(accusation) => {
                exchange.ask(&Request::Accuse(accusation)).await?;
                return Ok(Testimony::finds(Vec::new()));
            }
            Self::Register(entry) => {
                let reply = exchange.ask(&Request::Register(*entry)).await?;
                let lifetime = lifetime(&reply);
                return Ok(Testimony {
                    lifetime,
                    ..Testimony::finds(Vec::new())
                });
            }
            Self::Leave(site) => {
                let farewell = Request::Deregister(Farewell::new(site));
                exchange.ask(&farewell).await?;
                return Ok(Testimony::finds(Vec::new()));
            }
            Self::Whom { search, offer } => (search, offer),
        };
        let mut testimony = Testimony::finds(found(exchange.ask(&Request::Search(search)).await?));
        // What it has found counts, whatever becomes of the rest: one that is full takes no
        // registration of ours.
        if settings.trust.is_closed()
            && let Ok(Reply::Said(said)) = exchange.ask(&Request::Accusations).await
        {
            testimony.said = said;
        }
        if let Some(offer) = offer
            && let Ok(our_entry) = offer.make_known(&settings.site, &mut exchange).await
        {
            testimony.our_entry = our_entry;
        }
        Ok(testimony)
    }
}

/// What we offer, as it stands when it is looked at: we may have left meanwhile, or offer less.
#[derive(Clone)]
struct OurOffer(Arc<Shared<Memory>>);

impl OurOffer {
    /// Registers us where we are not known, or only by an old word.
    async fn make_known(
        self,
        site: &HostName,
        exchange: &mut Exchange,
    ) -> Result<OurEntry, DirectoryError> {
        let known = found(exchange.ask(&Request::Query(site.clone())).await?);
        let Some(Offer { entry, stamp, .. }) = self.0.with(|memory| memory.offer.clone()) else {
            return Ok(OurEntry::Known);
        };
        let half = u64::try_from((entry.lifetime / 2).as_millis()).unwrap_or(u64::MAX);
        let is_fresh = |entry: &Entry| entry.stamp.saturating_add(half) >= stamp;
        if known.iter().any(is_fresh) {
            return Ok(OurEntry::Known);
        }
        exchange.ask(&Request::Register(entry)).await?;
        Ok(OurEntry::Told)
    }
}

const fn lifetime(reply: &Reply) -> Option<Duration> {
    match reply {
        Reply::Registered(lifetime) => Some(*lifetime),
        Reply::Found(_)
        | Reply::Removed(_)
        | Reply::Noted(_)
        | Reply::Said(_)
        | Reply::Refused(_) => None,
    }
}

fn found(reply: Reply) -> Vec<Entry> {
    match reply {
        Reply::Found(found) => found,
        Reply::Registered(_)
        | Reply::Removed(_)
        | Reply::Noted(_)
        | Reply::Said(_)
        | Reply::Refused(_) => Vec::new(),
    }
}

/// Registries tell each other within milliseconds; where that takes as long as this, one is cut
/// off.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Asked beside the one that we use: of five registries one honest one is enough each time, and of
/// more each has its turn.
const WITNESSES_MAX: usize = 4;
/// One that is there and never says anything of use makes a search wait once a minute at most.
const REST_MAX: Duration = Duration::from_secs(60);
