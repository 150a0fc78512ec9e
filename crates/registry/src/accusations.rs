//! What members of a closed community say of each other: who altered what it delivered.
//!
//! Two members of different domains who both say so are believed, and whom they accuse is left out
//! of answers to searches. One alone is not, nor are many of one domain, nor anybody who speaks of
//! his own. It ends by itself a day after it was seen, when one of the two takes it back, or when
//! the authority takes an accuser off its list: that list decides in the end.
//!
//! Every table is bounded, and each accuser fills only his own part of it: his newest word of so
//! many members. Which word is the newest says its stamp, so registries that have heard the same
//! agree, in whatever order they heard it. That a word was taken back is remembered as long as the
//! word would have lived, or it could be told again.
//!
//! Signatures and member lists are the shell's: what comes here has been checked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};
use levee_wire::registry::{Accusation, Refusal};

/// All of it, by accuser and accused.
#[derive(Clone, Debug, Default)]
pub struct Accusations {
    words: BTreeMap<HostName, BTreeMap<HostName, Word>>,
    /// Whom enough of them accuse.
    believed: BTreeSet<HostName>,
    next_end: Option<Timestamp>,
}

/// One word of one member of another one.
#[derive(Clone, Debug)]
struct Word {
    accusation: Accusation,
    ends: Timestamp,
}

/// What became of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was not known.
    News,
    /// It was, or something newer, or its time is over.
    Known,
    /// It is not taken.
    Refused(Refusal),
}

/// A word holds for so long after its stamp: time for an authority to look, and not for ever.
pub const ACCUSATION_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Members of so many domains are believed.
const ACCUSERS_MIN: usize = 2;
/// Members of whom one accuser speaks at most: it asks a few for help, and most are honest.
const PER_ACCUSER_MAX: usize = 8;
/// Accusers at most. With the limit before it, some 8000 words of 300 bytes.
const ACCUSERS_MAX: usize = 1000;
/// How far a stamp may be ahead of our clock: what clocks of members may differ by.
const AHEAD_MAX: Duration = Duration::from_secs(60);

impl Accusations {
    /// Takes a word that has been checked. `clock` is what the calendar shows, in
    /// milliseconds since 1970.
    pub fn hear(&mut self, now: Timestamp, clock: u64, accusation: Accusation) -> Heard {
        let ahead = Duration::from_millis(accusation.stamp.saturating_sub(clock));
        let age = Duration::from_millis(clock.saturating_sub(accusation.stamp));
        if ahead > AHEAD_MAX {
            return Heard::Refused(Refusal::FromTheFuture);
        }
        let left = ACCUSATION_LIFETIME.saturating_sub(age);
        if left.is_zero() {
            return Heard::Known;
        }
        let Accusation {
            accuser, accused, ..
        } = &accusation;
        if accuser == accused {
            return Heard::Refused(Refusal::Malformed);
        }
        if !self.words.contains_key(accuser) && self.words.len() >= ACCUSERS_MAX {
            return Heard::Refused(Refusal::Full);
        }
        let newest = self.find(accuser, accused);
        if newest.is_some_and(|newest| rank(newest) >= rank(&accusation)) {
            return Heard::Known;
        }
        let ends = now + left;
        let heard = self.keep(Word { accusation, ends });
        self.recount();
        heard
    }

    /// Keeps a word that is news; the oldest of an accuser who says too much goes for it.
    fn keep(&mut self, word: Word) -> Heard {
        let accused = word.accusation.accused.clone();
        let words = self.words.entry(word.accusation.accuser.clone());
        let words = words.or_default();
        words.insert(accused.clone(), word);
        if words.len() <= PER_ACCUSER_MAX {
            return Heard::News;
        }
        let oldest = words.iter().min_by_key(|(_, word)| rank(&word.accusation));
        let oldest = oldest.map(|(oldest, _)| oldest.clone());
        words.retain(|name, _| Some(name) != oldest.as_ref());
        match oldest == Some(accused) {
            true => Heard::Refused(Refusal::Full),
            false => Heard::News,
        }
    }

    /// Forgets what has ended.
    pub fn expire(&mut self, now: Timestamp) {
        if self.next_end.is_none_or(|end| end > now) {
            return;
        }
        self.words.retain(|_, words| {
            words.retain(|_, word| word.ends > now);
            !words.is_empty()
        });
        self.recount();
    }

    /// Forgets what these have said: they are no members any more.
    pub fn forget(&mut self, accusers: &BTreeSet<HostName>) {
        self.words.retain(|accuser, _| !accusers.contains(accuser));
        self.recount();
    }

    /// When something ends next.
    pub const fn next_end(&self) -> Option<Timestamp> {
        self.next_end
    }

    /// Whether enough members accuse it.
    pub fn are_believed_of(&self, member: &HostName) -> bool {
        self.believed.contains(member)
    }

    /// The word of this accuser of this member, even one that was taken back.
    pub fn find(&self, accuser: &HostName, accused: &HostName) -> Option<&Accusation> {
        let word = self.words.get(accuser)?.get(accused)?;
        Some(&word.accusation)
    }

    /// Who has said anything.
    pub fn accusers(&self) -> impl Iterator<Item = &HostName> {
        self.words.keys()
    }

    /// Every word, those that were taken back among them.
    pub fn all(&self) -> impl Iterator<Item = &Accusation> {
        let words = self.words.values().flat_map(BTreeMap::values);
        words.map(|word| &word.accusation)
    }

    /// The words that count: those that are believed first, then the newest.
    pub fn in_force(&self) -> Vec<&Accusation> {
        let counts = |accusation: &&Accusation| accusation.sight.is_some();
        let mut found: Vec<_> = self.all().filter(counts).collect();
        found.sort_by_key(|one| (!self.are_believed_of(&one.accused), Reverse(one.stamp)));
        found
    }

    /// What is told to who asks, `most` words: those that count, and those that were taken back, so
    /// that nobody can make who hears both of them believe the older one. Where there are too many,
    /// either kind has half of the places, or who says much would crowd out what was taken back.
    pub fn told(&self, most: usize) -> Vec<&Accusation> {
        let mut told = self.in_force();
        let mut taken_back: Vec<_> = self.all().filter(|one| one.sight.is_none()).collect();
        taken_back.sort_by_key(|one| Reverse(one.stamp));
        let in_force = most - taken_back.len().min(most / 2);
        told.truncate(in_force);
        taken_back.truncate(most - told.len());
        told.extend(taken_back);
        told
    }

    fn recount(&mut self) {
        let words = self.words.values().flat_map(BTreeMap::values);
        self.next_end = words.map(|word| word.ends).min();
        let mut domains: BTreeMap<&HostName, BTreeSet<&str>> = BTreeMap::new();
        for Accusation {
            accuser, accused, ..
        } in self.all().filter(|accusation| accusation.sight.is_some())
        {
            if accuser.domain() != accused.domain() {
                domains.entry(accused).or_default().insert(accuser.domain());
            }
        }
        let enough = domains.iter().filter(|(_, by)| by.len() >= ACCUSERS_MIN);
        self.believed = enough.map(|(accused, _)| (*accused).clone()).collect();
    }
}

/// The newer word counts, and of two with one stamp always the same one.
fn rank(accusation: &Accusation) -> (u64, &str) {
    (accusation.stamp, accusation.proof.signature.as_str())
}

#[cfg(test)]
mod tests;
