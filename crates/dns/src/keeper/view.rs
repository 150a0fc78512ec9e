//! What a keeper shows of itself: the name, who is in it, and why it is not as it should be.

use std::time::Duration;

use levee_vocab::Timestamp;

use super::{Addresses, Failure, Keeper, Phase};

/// A keeper's mind, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperView {
    /// Where it stands.
    pub state: KeeperState,
    /// What the name had when it was read or changed last; none before the first time.
    pub present: Option<Addresses>,
    /// What of it, or of what may be in it, we put in.
    pub ours: Addresses,
    /// What is to be in it beside the site's own addresses.
    pub wanted: Addresses,
    /// Failures in a row.
    pub failures: u32,
}

/// Whether a name is as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperState {
    /// It is.
    Settled,
    /// It is being made so.
    Working,
    /// It could not be made so.
    Failing {
        /// Why.
        failure: Failure,
        /// Time to the next attempt; none where one is under way.
        next: Option<Duration>,
    },
}

impl Keeper {
    /// How it stands with the name.
    pub fn view(&self, now: Timestamp) -> KeeperView {
        let next = match &self.phase {
            Phase::Waiting { until } => Some(until.since(now)),
            Phase::Settled { .. }
            | Phase::Reading
            | Phase::Remembering { .. }
            | Phase::Changing { .. }
            | Phase::Forgetting { .. } => None,
        };
        let state = match (&self.failure, &self.phase) {
            (Some(failure), _) => KeeperState::Failing {
                failure: failure.clone(),
                next,
            },
            (None, Phase::Settled { .. }) => KeeperState::Settled,
            (
                None,
                Phase::Reading
                | Phase::Remembering { .. }
                | Phase::Changing { .. }
                | Phase::Forgetting { .. }
                | Phase::Waiting { .. },
            ) => KeeperState::Working,
        };
        KeeperView {
            state,
            present: self.present.clone(),
            ours: self.ours.clone(),
            wanted: self.wanted.clone(),
            failures: self.failures,
        }
    }
}
