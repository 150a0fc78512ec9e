//! What connections count by themselves: bytes, and requests that never come to the registry.
//!
//! Shared by all connections and links. Nothing waits for these numbers, and none depends on
//! another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use levee_observe::MeshBytes;
use levee_wire::registry::Refusal;

/// Since the start.
#[derive(Debug, Default)]
pub(super) struct Tally {
    from_members: AtomicU64,
    to_members: AtomicU64,
    from_peers: AtomicU64,
    to_peers: AtomicU64,
    malformed: AtomicU64,
    denied: AtomicU64,
    too_many_updates: AtomicU64,
    too_many: AtomicU64,
}

/// Why a connection refuses a request by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is none.
    Malformed,
    /// A closed community does not permit it.
    Denied,
    /// More updates than one may send, who may send more later.
    TooManyUpdates,
    /// Too many in a short time.
    TooMany,
}

impl Tally {
    pub(super) fn heard_member(&self, bytes: usize) {
        add(&self.from_members, bytes);
    }

    pub(super) fn told_member(&self, bytes: usize) {
        add(&self.to_members, bytes);
    }

    pub(super) fn heard_peer(&self, bytes: usize) {
        add(&self.from_peers, bytes);
    }

    pub(super) fn told_peer(&self, bytes: usize) {
        add(&self.to_peers, bytes);
    }

    pub(super) fn refused(&self, reason: Reason) {
        let count = match reason {
            Reason::Malformed => &self.malformed,
            Reason::Denied => &self.denied,
            Reason::TooManyUpdates => &self.too_many_updates,
            Reason::TooMany => &self.too_many,
        };
        add(count, 1);
    }

    pub(super) fn bytes(&self) -> MeshBytes {
        MeshBytes {
            from_members: self.from_members.load(Ordering::Relaxed),
            to_members: self.to_members.load(Ordering::Relaxed),
            from_peers: self.from_peers.load(Ordering::Relaxed),
            to_peers: self.to_peers.load(Ordering::Relaxed),
        }
    }

    /// Adds what was refused to `counts`, by the code of the answer.
    pub(super) fn add_refused(&self, counts: &mut BTreeMap<u16, u64>) {
        for (count, refusal) in [
            (&self.malformed, Refusal::Malformed),
            (&self.denied, Refusal::AddressRefused),
            (&self.too_many_updates, Refusal::TooManyUpdates),
            (&self.too_many, Refusal::TooMany),
        ] {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                *counts.entry(refusal.code()).or_default() += count;
            }
        }
    }
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}
