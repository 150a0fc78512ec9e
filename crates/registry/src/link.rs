//! What one registry owes another, and how it stands between the two.
//!
//! Owed are names, not messages: when the other side is slow, a name that changes ten times is told
//! once, with its newest version, and what is owed never outgrows what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};
use levee_wire::MessageBudget;
use levee_wire::mesh::Telling;

/// Number of a link between two registries, which the shell gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// Which end of a link this is. One of the two has to begin, or both would do the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opened the link, and its summaries are compared by the other one.
    Opener,
    /// It compares, and asks for what differs.
    Acceptor,
}

/// How it stands with another registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// Names of which it has still to be told.
    pub owed: usize,
    /// Since it said anything.
    pub silent: Duration,
    /// Since it knew the same as we; none where that was not so yet.
    pub agreed: Option<Duration>,
    /// What was counted since the link was opened.
    pub counts: LinkCounts,
}

/// What was counted on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Names told, whatever the reason.
    pub told: u64,
    /// Names told because sums differed.
    pub told_repairs: u64,
    /// Names heard that were news.
    pub news: u64,
    /// Names heard that were news and had been missed before.
    pub repaired: u64,
    /// Names heard that were refused.
    pub refused: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) side: Side,
    pub(crate) heard_at: Timestamp,
    pub(crate) agreed_at: Option<Timestamp>,
    pub(crate) summary_due: Timestamp,
    pub(crate) owes_summary: Owed,
    /// Groups whose sums are owed, one bit each.
    pub(crate) sums: u32,
    /// Buckets to ask for, by group.
    pub(crate) wants: BTreeMap<u8, u32>,
    pub(crate) counts: LinkCounts,
    asks: MessageBudget,
    names: BTreeMap<HostName, Telling>,
    /// Words of accusers, of the accused, of which it has to be told.
    words: BTreeSet<(HostName, HostName)>,
    /// The name that was told last, so that all get their turn.
    last: Option<HostName>,
}

/// Whether something has to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    Yes,
    No,
}

impl Link {
    /// A link that was opened now. Its first summary is due at once.
    pub(crate) fn new(side: Side, now: Timestamp) -> Self {
        Self {
            side,
            heard_at: now,
            agreed_at: None,
            summary_due: now,
            owes_summary: Owed::No,
            sums: 0,
            wants: BTreeMap::new(),
            counts: LinkCounts {
                told: 0,
                told_repairs: 0,
                news: 0,
                repaired: 0,
                refused: 0,
            },
            asks: MessageBudget::new(ASKS_BURST, ASKS_PER_SECOND),
            names: BTreeMap::new(),
            words: BTreeSet::new(),
            last: None,
        }
    }

    /// Whether it may ask once more to be told what is in some buckets: a line of 20 bytes has us
    /// look up a thirtieth of all names, and tell them. Who asks too often asks again anyhow, since
    /// the sums still differ in the next period.
    pub(crate) fn may_ask(&mut self, now: Timestamp) -> bool {
        self.asks.take(now)
    }

    /// Owes it the newest version of `name`. What has just come stays news.
    pub(crate) fn owe(&mut self, name: HostName, telling: Telling) {
        let owed = self.names.entry(name).or_insert(telling);
        *owed = telling.min(*owed);
    }

    /// The next name to tell.
    pub(crate) fn pop(&mut self) -> Option<(HostName, Telling)> {
        let after = match &self.last {
            Some(last) => (Bound::Excluded(last.clone()), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let next = self.names.range(after).next();
        let (name, _) = next.or_else(|| self.names.first_key_value())?;
        self.last = Some(name.clone());
        self.names.remove_entry(&name.clone())
    }

    /// Owes it what an accuser says of somebody.
    pub(crate) fn owe_word(&mut self, word: (HostName, HostName)) {
        self.words.insert(word);
    }

    /// The next of these.
    pub(crate) fn pop_word(&mut self) -> Option<(HostName, HostName)> {
        self.words.pop_first()
    }

    pub(crate) fn has_mail(&self) -> bool {
        let is_silent = self.names.is_empty()
            && self.words.is_empty()
            && self.sums == 0
            && self.wants.is_empty()
            && self.owes_summary == Owed::No;
        !is_silent
    }

    pub(crate) fn view(&self, now: Timestamp) -> LinkView {
        LinkView {
            owed: self.names.len(),
            silent: now.since(self.heard_at),
            agreed: self.agreed_at.map(|at| now.since(at)),
            counts: self.counts,
        }
    }
}

/// A registry that knows nothing asks once for each of 32 groups, in every period of two seconds
/// less a fifth: twenty times a second.
const ASKS_PER_SECOND: u32 = 20;
/// Two periods that come together.
const ASKS_BURST: u32 = 64;
