//! Keeps a name equal to what is wanted: the site's own addresses, and those of its rescue servers.
//!
//! ```text
//!            wanted changed,            something             written          done
//!            or time to look            to change             down
//!   Settled ────────────────▶ Reading ──────────▶ Remembering ─────▶ Changing ─────▶ Forgetting
//!      ▲                         │ ▲                   │                │  │              │
//!      │       nothing to change │ └───────────────────┼── conflict ────┘  │              │
//!      ◀─────────────────────────┘                     ▼                   ▼              │
//!      ◀───────────────────────────────────────────  Waiting (any failure, then reads)    │
//!      ◀──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It decides and does not act: each input gives at most one thing to do, whose outcome is the next
//! input. What is put in is written down first, so that a crash leaves nothing behind that the next
//! start does not know. What others put in is never removed, not even where it equals something
//! that we would put in: only what is written down is ours. The name never loses its last address.
//! Each change expects what was read before it, so whoever edits the name at the same time makes us
//! read again.

mod view;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::{Random, Timestamp};

use crate::name::DomainName;
use crate::zone::{Cause, Change, Edit, Expected, Kind, Record, Value};

pub use self::view::{KeeperState, KeeperView};

/// A set of addresses.
pub type Addresses = BTreeSet<IpAddr>;

/// First pause after a failure; each further one is twice as long.
const RETRY_MIN: Duration = Duration::from_millis(250);
/// Longest pause: a server that is back is found soon, one that is gone is asked four times a
/// minute.
const RETRY_MAX: Duration = Duration::from_secs(15);
/// Conflicts in a row after which there is a pause: whoever else edits the name is not patient.
const CONFLICTS_MAX: u32 = 3;
/// How often it is looked whether what we put in is still there: whoever loads a zone file anew
/// forgets it.
const AUDIT: Duration = Duration::from_secs(60);

/// What does not change while a name is kept.
#[derive(Clone, Debug)]
pub struct KeptName {
    /// The name.
    pub name: DomainName,
    /// The site's own addresses: put in where the name has no other address but ours, and never
    /// taken out.
    pub own: Addresses,
    /// How long others may remember what we put in.
    pub ttl: Duration,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// These rescue servers shall be in the name, and no others of ours.
    Wanted(Addresses),
    /// The name was read.
    NameRead(Result<Addresses, Cause>),
    /// Our list was written down, or could not be: a sentence.
    Remembered(Result<(), String>),
    /// The change was made, or not.
    Changed(Result<(), Cause>),
    /// The deadline is over.
    TimerFired,
}

/// Something that must be done; its outcome is the next input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Read the addresses of the name.
    Read,
    /// Write down that these are ours.
    Remember(Addresses),
    /// Change the zone.
    Change(Change),
}

/// Keeps one name.
#[derive(Debug)]
pub struct Keeper {
    kept: KeptName,
    wanted: Addresses,
    /// What we put in, as it is written down.
    ours: Addresses,
    /// What the name had when it was read last.
    present: Option<Addresses>,
    phase: Phase,
    /// Failures in a row.
    failures: u32,
    failure: Option<Failure>,
    random: Random,
}

/// Why the name is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The zone.
    Zone(Cause),
    /// The list of what is ours cannot be written, so nothing is put in.
    NotRemembered(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The name is as wanted then; an audit is due at some time if anything is ours.
    Settled {
        audit: Option<Timestamp>,
    },
    Reading,
    Remembering {
        next: Step,
    },
    Changing {
        next: Step,
    },
    Forgetting {
        ours: Addresses,
    },
    Waiting {
        until: Timestamp,
    },
}

/// A change, and what is true after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// Ours before and during it.
    during: Addresses,
    /// Ours after it.
    after: Addresses,
    change: Change,
}

impl Keeper {
    /// Keeps `kept`, in which `ours` may still be from an earlier time. Reads first.
    pub fn new(kept: KeptName, ours: Addresses, seed: u64) -> (Self, Output) {
        let keeper = Self {
            kept,
            wanted: Addresses::new(),
            ours,
            present: None,
            phase: Phase::Reading,
            failures: 0,
            failure: None,
            random: Random::from_seed(seed),
        };
        (keeper, Output::Read)
    }

    /// What is to be done after `input`. What does not belong to the present phase changes nothing.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Option<Output> {
        let phase = std::mem::replace(&mut self.phase, Phase::Reading);
        let (phase, output) = match (phase, input) {
            (Phase::Settled { audit }, Input::Wanted(wanted)) => {
                let changed = wanted != self.wanted;
                self.wanted = wanted;
                match changed {
                    true => (Phase::Reading, Some(Output::Read)),
                    false => (Phase::Settled { audit }, None),
                }
            }
            (phase, Input::Wanted(wanted)) => {
                self.wanted = wanted;
                (phase, None)
            }
            (Phase::Settled { audit }, Input::TimerFired) => {
                match audit.is_some_and(|audit| now >= audit) {
                    true => (Phase::Reading, Some(Output::Read)),
                    false => (Phase::Settled { audit }, None),
                }
            }
            (Phase::Waiting { until }, Input::TimerFired) => match now >= until {
                true => (Phase::Reading, Some(Output::Read)),
                false => (Phase::Waiting { until }, None),
            },
            (Phase::Reading, Input::NameRead(Ok(present))) => self.compare(now, present),
            (Phase::Reading, Input::NameRead(Err(cause))) => self.fail(now, Failure::Zone(cause)),
            (Phase::Remembering { next }, Input::Remembered(Ok(()))) => {
                self.ours.clone_from(&next.during);
                let change = next.change.clone();
                (Phase::Changing { next }, Some(Output::Change(change)))
            }
            (Phase::Remembering { .. }, Input::Remembered(Err(why))) => {
                self.fail(now, Failure::NotRemembered(why))
            }
            (Phase::Changing { next }, Input::Changed(Ok(()))) => self.changed(now, next),
            (Phase::Changing { .. }, Input::Changed(Err(cause))) => self.not_changed(now, cause),
            (Phase::Forgetting { ours }, Input::Remembered(Ok(()))) => {
                self.ours = ours;
                self.settle(now)
            }
            // What is not there any more stays written down until it can be crossed off; a start
            // before that looks for it in vain.
            (Phase::Forgetting { .. }, Input::Remembered(Err(why))) => {
                self.fail(now, Failure::NotRemembered(why))
            }
            (
                phase,
                Input::NameRead(_) | Input::Remembered(_) | Input::Changed(_) | Input::TimerFired,
            ) => (phase, None),
        };
        self.phase = phase;
        output
    }

    /// When [`Input::TimerFired`] is due.
    pub const fn next_deadline(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Settled { audit } => *audit,
            Phase::Waiting { until } => Some(*until),
            Phase::Reading
            | Phase::Remembering { .. }
            | Phase::Changing { .. }
            | Phase::Forgetting { .. } => None,
        }
    }

    /// Whether the name is as wanted, as far as is known.
    pub const fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled { .. })
    }

    /// What is to be changed in a name that has `present`.
    fn compare(&mut self, now: Timestamp, present: Addresses) -> (Phase, Option<Output>) {
        let others: Addresses = present.difference(&self.ours).copied().collect();
        let mut goal: Addresses = self.wanted.difference(&others).copied().collect();
        let mut adds: Addresses = goal.difference(&present).copied().collect();
        let removes = present.intersection(&self.ours);
        let mut removes: Addresses = removes.filter(|one| !goal.contains(one)).copied().collect();
        if others.is_empty() {
            // An own address is the site's, whoever put it in.
            goal.retain(|one| !self.kept.own.contains(one));
            removes.retain(|one| !self.kept.own.contains(one));
            adds.extend(self.kept.own.difference(&present));
        }
        let during: Addresses = self.ours.union(&goal).copied().collect();
        let step = Step {
            change: self.change(&present, &adds, &removes),
            during,
            after: goal,
        };
        self.present = Some(present);
        if adds.is_empty() && removes.is_empty() {
            return self.forget(now, step.after);
        }
        if step.during == self.ours {
            let change = step.change.clone();
            return (Phase::Changing { next: step }, Some(Output::Change(change)));
        }
        let list = step.during.clone();
        (
            Phase::Remembering { next: step },
            Some(Output::Remember(list)),
        )
    }

    fn change(&self, present: &Addresses, adds: &Addresses, removes: &Addresses) -> Change {
        let mut change = Change::default();
        let name = &self.kept.name;
        for kind in [Kind::A, Kind::Aaaa] {
            let of_kind = |one: &&IpAddr| Value::Address(**one).kind() == kind;
            let touched = adds.iter().chain(removes).any(|one| of_kind(&one));
            if touched {
                let values = present.iter().filter(of_kind);
                change.expected.push(Expected {
                    name: name.clone(),
                    kind,
                    values: values.map(|one| Value::Address(*one)).collect(),
                });
            }
        }
        let remove = |one: &IpAddr| Edit::Remove(name.clone(), Value::Address(*one));
        let add = |one: &IpAddr| {
            Edit::Add(Record {
                name: name.clone(),
                value: Value::Address(*one),
                ttl: self.kept.ttl,
            })
        };
        // First in, then out: a server that does it step by step never leaves the name empty.
        change.edits.extend(adds.iter().map(add));
        change.edits.extend(removes.iter().map(remove));
        change
    }

    fn changed(&mut self, now: Timestamp, step: Step) -> (Phase, Option<Output>) {
        let before = self.present.take().unwrap_or_default();
        let mut present = before;
        for edit in &step.change.edits {
            match edit {
                Edit::Add(Record {
                    value: Value::Address(one),
                    ..
                }) => present.insert(*one),
                Edit::Remove(_, Value::Address(one)) => present.remove(one),
                Edit::Add(_) | Edit::Remove(..) | Edit::Clear(..) => false,
            };
        }
        self.present = Some(present);
        self.forget(now, step.after)
    }

    /// Only `ours` is left of what we put in.
    fn forget(&mut self, now: Timestamp, ours: Addresses) -> (Phase, Option<Output>) {
        if ours == self.ours {
            return self.settle(now);
        }
        let list = ours.clone();
        (Phase::Forgetting { ours }, Some(Output::Remember(list)))
    }

    fn settle(&mut self, now: Timestamp) -> (Phase, Option<Output>) {
        self.failures = 0;
        self.failure = None;
        let present = self.present.iter().flatten().copied().collect();
        let is_as_wanted = self.wanted.is_subset(&present) && self.ours.is_subset(&self.wanted);
        if !is_as_wanted {
            // What is wanted has changed meanwhile.
            return (Phase::Reading, Some(Output::Read));
        }
        let audit = (!self.ours.is_empty()).then(|| now + AUDIT);
        (Phase::Settled { audit }, None)
    }

    fn not_changed(&mut self, now: Timestamp, cause: Cause) -> (Phase, Option<Output>) {
        let is_conflict = matches!(cause, Cause::Conflict { .. });
        if is_conflict && self.failures < CONFLICTS_MAX {
            self.failures += 1;
            return (Phase::Reading, Some(Output::Read));
        }
        self.fail(now, Failure::Zone(cause))
    }

    fn fail(&mut self, now: Timestamp, failure: Failure) -> (Phase, Option<Output>) {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(failure);
        let pause = RETRY_MIN.saturating_mul(1 << doublings).min(RETRY_MAX);
        // Sites that lost the same server do not come back to it in step.
        let pause = pause.mul_f64(0.75 + self.random.fraction() / 2.0);
        (Phase::Waiting { until: now + pause }, None)
    }
}

#[cfg(test)]
mod tests;
