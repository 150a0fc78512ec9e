//! One of several registries that know the same (R11; RFC 3528, mSLP).
//!
//! A registration is accepted by any of them and owed to every other at once. That alone would do
//! if nothing were ever lost; so each tells the others in every period what it knows in 32 sums.
//!
//! ```text
//! opener                      acceptor
//!   SUMMARY (sums of groups) ──▶  equal: agreed
//!   ◀── SUMS g (of buckets)       for each group that differs
//!   entries of those buckets ──▶
//!   WANT g buckets           ──▶
//!   ◀── entries of those buckets
//! ```
//!
//! Every message may be lost, doubled, late or out of order: the newest version of a name wins, and
//! what is still missing differs in the next summary. What is not passed on is what was heard from
//! another registry: the mesh is full, and where it is not, the sums carry it further. Accusations
//! are few: all are told when a link opens, and each that is news to every link but its own.
//!
//! A mesh decides what to say, never when it goes out: the shell takes messages from
//! [`Mesh::next_message`] while the other side takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use levee_vocab::{HostName, Random, Timestamp};
use levee_wire::mesh::{Message, SUMS, Telling, ToldEntry, ToldGone};
use levee_wire::registry::{Accusation, Farewell, Refusal, Reply, Request};

use crate::accusations::{Accusations, Heard};
use crate::catalog::{Change, Known};
use crate::departed::Parting;
use crate::limits::RegistryLimits;
use crate::link::{Link, LinkId, LinkView, Owed, Side};
use crate::merge::Merged;
use crate::registry::{Asker, Input, Output, Registry, RegistryView};
use crate::sums::{Sums, differences};

/// Something that happened to a registry of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshInput {
    /// A site asks.
    RequestReceived {
        /// Who, and where the answer goes.
        asker: Asker,
        /// What.
        request: Request,
    },
    /// There is a connection to another registry.
    LinkOpened {
        /// Its number, new each time.
        link: LinkId,
        /// Which end is ours.
        side: Side,
    },
    /// Another registry says something.
    MessageReceived {
        /// On which link.
        link: LinkId,
        /// What.
        message: Message,
        /// What the calendar showed: milliseconds since 1970.
        clock: u64,
    },
    /// A connection to another registry has ended.
    LinkClosed(LinkId),
    /// The member list has changed, and these are no members any more.
    AccusersGone(BTreeSet<HostName>),
    /// The deadline has come, or some earlier or later time.
    TimerFired,
}

/// Something that must be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshOutput {
    /// Give this answer to the asker.
    Answer {
        /// `Asker::connection` of the request.
        connection: u64,
        /// What to say.
        reply: Reply,
    },
    /// For the log.
    Announce(Change),
    /// The other registry said nothing for too long: end the link, and open it again.
    CloseLink(LinkId),
}

/// How often registries compare what they know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshRules {
    /// Time between two summaries, give or take a fifth.
    pub summary_period: Duration,
    /// A link on which nothing was heard for so long is dead.
    pub silence_max: Duration,
}

impl Default for MeshRules {
    fn default() -> Self {
        Self {
            // 600 bytes for each peer, so 300 bytes a second.
            summary_period: Duration::from_secs(2),
            // Two summaries may be lost. A link that is given up too early costs one greeting.
            silence_max: Duration::from_secs(5),
        }
    }
}

/// What the status shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshView {
    /// What is held.
    pub registry: RegistryView,
    /// Each link.
    pub links: BTreeMap<LinkId, LinkView>,
    /// What other registries told since the start and was not taken, by the code that a site would
    /// have got.
    pub refused: BTreeMap<u16, u64>,
}

/// A registry and its links to others. Without links it is a registry on its own.
#[derive(Clone, Debug)]
pub struct Mesh {
    registry: Registry,
    links: BTreeMap<LinkId, Link>,
    rules: MeshRules,
    random: Random,
    refused: BTreeMap<u16, u64>,
}

impl Mesh {
    /// An empty registry without links.
    pub fn new(limits: RegistryLimits, rules: MeshRules, random: Random) -> Self {
        Self {
            registry: Registry::new(limits),
            links: BTreeMap::new(),
            rules,
            random,
            refused: BTreeMap::new(),
        }
    }

    /// Takes note of what happened. Each request gets exactly one answer.
    pub fn handle(&mut self, now: Timestamp, input: MeshInput) -> Vec<MeshOutput> {
        let mut outputs = match input {
            MeshInput::RequestReceived { asker, request } => {
                self.registry(now, Input::RequestReceived { asker, request })
            }
            MeshInput::TimerFired => self.registry(now, Input::TimerFired),
            MeshInput::LinkOpened { link, side } => {
                let mut opened = Link::new(side, now);
                self.registry.accusations.all().for_each(|word| {
                    opened.owe_word((word.accuser.clone(), word.accused.clone()));
                });
                self.links.insert(link, opened);
                Vec::new()
            }
            MeshInput::LinkClosed(link) => {
                self.links.remove(&link);
                Vec::new()
            }
            MeshInput::AccusersGone(accusers) => {
                self.registry.accusations.forget(&accusers);
                Vec::new()
            }
            MeshInput::MessageReceived {
                link,
                message,
                clock,
            } => {
                let mut outputs = self.registry(now, Input::TimerFired);
                outputs.extend(self.hear(now, clock, link, message));
                outputs
            }
        };
        outputs.extend(self.keep_time(now));
        outputs
    }

    /// When to call with [`MeshInput::TimerFired`] at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let of_links = self.links.values().map(|link| {
            let silent_at = link.heard_at + self.rules.silence_max;
            link.summary_due.min(silent_at)
        });
        of_links.chain(self.registry.next_deadline()).min()
    }

    /// Links on which there is something to say.
    pub fn links_with_mail(&self) -> impl Iterator<Item = LinkId> {
        let with_mail = self.links.iter().filter(|(_, link)| link.has_mail());
        with_mail.map(|(id, _)| *id)
    }

    /// The next message for the other end of `link`; it is said by being taken.
    pub fn next_message(&mut self, now: Timestamp, link: LinkId) -> Option<Message> {
        // What changed goes before the sums, which count on its being known.
        while let Some((name, telling)) = self.links.get_mut(&link)?.pop() {
            if let Some(message) = self.tell(now, &name, telling) {
                let counts = &mut self.links.get_mut(&link)?.counts;
                counts.told += 1;
                counts.told_repairs += u64::from(telling == Telling::Repaired);
                return Some(message);
            }
        }
        while let Some((accuser, accused)) = self.links.get_mut(&link)?.pop_word() {
            if let Some(word) = self.registry.accusations.find(&accuser, &accused) {
                return Some(Message::Accusation(Box::new(word.clone())));
            }
        }
        let link = self.links.get_mut(&link)?;
        let sums = self.registry.catalog.sums();
        if let Some((group, buckets)) = link.wants.pop_first() {
            return Some(Message::Want { group, buckets });
        }
        if link.sums > 0 {
            let group = link.sums.trailing_zeros() as u8;
            link.sums &= link.sums - 1;
            let sums = *sums.buckets(group)?;
            return Some(Message::Sums { group, sums });
        }
        match std::mem::replace(&mut link.owes_summary, Owed::No) {
            Owed::Yes => Some(Message::Summary(*sums.groups())),
            Owed::No => None,
        }
    }

    /// What the status shows.
    pub fn view(&self, now: Timestamp) -> MeshView {
        let links = self.links.iter();
        MeshView {
            registry: self.registry.view(),
            links: links.map(|(id, link)| (*id, link.view(now))).collect(),
            refused: self.refused.clone(),
        }
    }

    /// The newest that is known of `site`.
    pub fn known(&self, site: &HostName) -> Option<Known<'_>> {
        self.registry.catalog.known(site)
    }

    /// What members say of each other.
    pub const fn accusations(&self) -> &Accusations {
        &self.registry.accusations
    }

    /// What is known, in few numbers.
    pub const fn sums(&self) -> &Sums {
        self.registry.catalog.sums()
    }

    fn registry(&mut self, now: Timestamp, input: Input) -> Vec<MeshOutput> {
        let outputs = self.registry.handle(now, input).into_iter();
        outputs
            .map(|output| match output {
                Output::Answer { connection, reply } => MeshOutput::Answer { connection, reply },
                Output::Announce(change) => {
                    self.forward(&change);
                    MeshOutput::Announce(change)
                }
            })
            .collect()
    }

    /// Owes every other registry what a site has just said here.
    fn forward(&mut self, change: &Change) {
        let name = match change {
            Change::Added(held) | Change::Renewed(held) => &held.site.host,
            Change::Removed(name) => name,
            // They find out by themselves.
            Change::Expired(_) => return,
            Change::Accused(accusation) => return self.pass_on(accusation, None),
        };
        for link in self.links.values_mut() {
            link.owe(name.clone(), Telling::Forwarded);
        }
    }

    /// Owes every other registry a word that was news here, but for the one it came from. Each
    /// takes it as news once, so it comes to an end, also where the mesh is not full.
    fn pass_on(&mut self, accusation: &Accusation, from: Option<LinkId>) {
        let others = self.links.iter_mut().filter(|(id, _)| Some(**id) != from);
        for (_, link) in others {
            link.owe_word((accusation.accuser.clone(), accusation.accused.clone()));
        }
    }

    fn hear(
        &mut self,
        now: Timestamp,
        clock: u64,
        id: LinkId,
        message: Message,
    ) -> Option<MeshOutput> {
        let link = self.links.get_mut(&id)?;
        link.heard_at = now;
        match message {
            Message::Entry(told) => {
                let (name, telling) = (told.entry.site.host.clone(), told.telling);
                let merged = self.registry.merge_entry(now, clock, told);
                self.note(id, (name, telling), merged)
            }
            Message::Gone(told) => {
                let (name, telling) = (told.farewell.site.clone(), told.telling);
                let merged = self.registry.merge_gone(now, clock, told);
                self.note(id, (name, telling), merged)
            }
            Message::Summary(theirs) => {
                let differ = differences(self.registry.catalog.sums().groups(), &theirs);
                match (differ, link.side) {
                    (0, _) => link.agreed_at = Some(now),
                    (_, Side::Opener) => {}
                    (_, Side::Acceptor) => link.sums |= differ,
                }
                None
            }
            Message::Sums { .. } | Message::Want { .. } if !link.may_ask(now) => {
                self.count_refused(id, Refusal::TooMany);
                None
            }
            Message::Sums { group, sums } => {
                self.compare(id, group, &sums);
                None
            }
            Message::Want { group, buckets } => {
                self.owe_buckets(id, group, buckets);
                None
            }
            Message::Accusation(accusation) => {
                let word = (*accusation).clone();
                match self.registry.accusations.hear(now, clock, word) {
                    Heard::News => {
                        self.pass_on(&accusation, Some(id));
                        Some(MeshOutput::Announce(Change::Accused(accusation)))
                    }
                    Heard::Known | Heard::Refused(_) => None,
                }
            }
            Message::Unknown(_) => None,
        }
    }

    fn note(
        &mut self,
        id: LinkId,
        (name, telling): (HostName, Telling),
        merged: Merged,
    ) -> Option<MeshOutput> {
        let link = self.links.get_mut(&id)?;
        match merged {
            Merged::News(change) => {
                link.counts.news += 1;
                link.counts.repaired += u64::from(telling == Telling::Repaired);
                change.map(MeshOutput::Announce)
            }
            Merged::Known => None,
            Merged::Older => {
                link.owe(name, Telling::Repaired);
                None
            }
            Merged::Refused(refusal) => {
                self.count_refused(id, refusal);
                None
            }
        }
    }

    fn count_refused(&mut self, id: LinkId, refusal: Refusal) {
        if let Some(link) = self.links.get_mut(&id) {
            link.counts.refused += 1;
        }
        *self.refused.entry(refusal.code()).or_default() += 1;
    }

    fn compare(&mut self, id: LinkId, group: u8, theirs: &[u64; SUMS]) {
        let Some(ours) = self.registry.catalog.sums().buckets(group) else {
            return;
        };
        let differ = differences(ours, theirs);
        if differ > 0 {
            self.owe_buckets(id, group, differ);
            if let Some(link) = self.links.get_mut(&id) {
                *link.wants.entry(group).or_default() |= differ;
            }
        }
    }

    fn owe_buckets(&mut self, id: LinkId, group: u8, buckets: u32) {
        if let Some(link) = self.links.get_mut(&id) {
            for name in self.registry.catalog.names_in(group, buckets) {
                link.owe(name, Telling::Repaired);
            }
        }
    }

    /// What is known of `name` now; none where nothing is known that others need to hear.
    fn tell(&self, now: Timestamp, name: &HostName, telling: Telling) -> Option<Message> {
        match self.registry.catalog.known(name)? {
            Known::Here(held) if held.expires <= now => None,
            Known::Here(held) => Some(Message::Entry(ToldEntry {
                entry: held.entry(now),
                owner: held.owner,
                telling,
            })),
            Known::Gone(departed) => match &departed.parting {
                Parting::Expired => None,
                Parting::Deregistered(proof) => Some(Message::Gone(ToldGone {
                    farewell: Farewell {
                        site: name.clone(),
                        stamp: departed.version.stamp,
                        proof: proof.clone(),
                    },
                    left: departed.until.since(now),
                    telling,
                })),
            },
        }
    }

    fn keep_time(&mut self, now: Timestamp) -> Vec<MeshOutput> {
        let mut outputs = Vec::new();
        for (id, link) in &mut self.links {
            if now >= link.summary_due {
                link.owes_summary = Owed::Yes;
                let part = 0.8 + 0.4 * self.random.fraction();
                link.summary_due = now + self.rules.summary_period.mul_f64(part);
            }
            if now.since(link.heard_at) >= self.rules.silence_max {
                outputs.push(MeshOutput::CloseLink(*id));
                // Said once; the shell says when it is closed.
                link.heard_at = now;
            }
        }
        outputs
    }
}
