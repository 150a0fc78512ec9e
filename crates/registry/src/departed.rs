//! Names whose entry is gone, and the last version that there was of each.
//!
//! Without this memory an old registration that is still under way, or that a peer still holds,
//! would bring back a site that has left. It is kept for a bounded time and in a bounded number:
//! what is forgotten too early can come back for as long as its entry had left to live elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use levee_vocab::{HostName, Timestamp};
use levee_wire::registry::Proof;

use crate::sums::Version;

/// What is known of a name whose entry is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// The last version that is known.
    pub version: Version,
    /// When this is forgotten.
    pub until: Timestamp,
    /// How it went.
    pub parting: Parting,
}

/// How an entry went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The site said so: other registries are told.
    Deregistered(Option<Proof>),
    /// Its time was over. Each registry finds that out by itself, so that none can end the entry
    /// of a site that lives.
    Expired,
}

/// All names that are gone.
#[derive(Clone, Debug)]
pub(crate) struct Memorial {
    departed: BTreeMap<HostName, Departed>,
    by_end: BTreeSet<(Timestamp, HostName)>,
    count_max: usize,
}

impl Memorial {
    pub(crate) const fn new(count_max: usize) -> Self {
        Self {
            departed: BTreeMap::new(),
            by_end: BTreeSet::new(),
            count_max,
        }
    }

    pub(crate) fn find(&self, name: &HostName) -> Option<&Departed> {
        self.departed.get(name)
    }

    /// Remembers `departed`. Gives what had to be forgotten for lack of room.
    pub(crate) fn put(
        &mut self,
        name: HostName,
        departed: Departed,
    ) -> Option<(HostName, Departed)> {
        self.take(&name);
        let is_full = self.departed.len() >= self.count_max;
        let oldest = is_full.then(|| self.by_end.first().cloned()).flatten();
        let forgotten = oldest.and_then(|(_, oldest)| self.take(&oldest).map(|was| (oldest, was)));
        self.by_end.insert((departed.until, name.clone()));
        self.departed.insert(name, departed);
        forgotten
    }

    pub(crate) fn take(&mut self, name: &HostName) -> Option<Departed> {
        let departed = self.departed.remove(name)?;
        self.by_end.remove(&(departed.until, name.clone()));
        Some(departed)
    }

    /// One whose time has come.
    pub(crate) fn forget_one(&mut self, now: Timestamp) -> Option<(HostName, Departed)> {
        let (until, name) = self.by_end.first()?;
        if *until > now {
            return None;
        }
        let name = name.clone();
        self.take(&name).map(|departed| (name, departed))
    }

    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.by_end.first().map(|(until, _)| *until)
    }
}
