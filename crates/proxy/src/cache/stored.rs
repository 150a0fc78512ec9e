//! One cached response.

use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use levee_vocab::Timestamp;
use levee_wire::Digest;

use super::weight::{allocation, counted, shared_bytes};
use crate::cacheability::{Keeping, Sharing};
use crate::disk::StoredFile;
use crate::flight::ResponseHead;

/// A response in the cache. Immutable; a response that proved unchanged is a new one with the same
/// body.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Status and cleaned headers.
    pub head: Arc<ResponseHead>,
    /// The whole body.
    pub body: Body,
    /// Fresh before this.
    pub fresh_until: Timestamp,
    /// Fresh, but worth renewing from now on if many ask for it.
    pub renew_from: Timestamp,
    /// Shown before this while its source is asked for a newer one.
    pub shown_until: Timestamp,
    /// Usable before this where its source cannot be reached.
    pub stale_until: Timestamp,
    /// Shown before this without asking its source, which was asked a moment ago.
    pub spared_until: Timestamp,
    /// Who may have it.
    pub sharing: Sharing,
    /// Of the body, once somebody wanted it.
    pub(crate) digest: OnceLock<Digest>,
}

/// The body of a cached response.
#[derive(Clone, Debug)]
pub enum Body {
    /// In memory.
    Memory(Bytes),
    /// In a file of its own, from its start.
    File {
        /// The file.
        file: Arc<StoredFile>,
        /// Bytes of the body.
        length: u64,
    },
}

/// Whether a stored response may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Fresh.
    Fresh,
    /// Too old, but its source was asked a moment ago.
    Spared,
    /// Too old; may be shown while its source is asked.
    Shown,
    /// Too old.
    Stale,
}

impl Stored {
    /// A response that has just come, to be kept as `keeping` says.
    pub(crate) fn new(head: Arc<ResponseHead>, body: Body, keeping: &Keeping) -> Self {
        let left = |time: Duration| head.received + time.saturating_sub(head.age_initial);
        let fresh_until = left(keeping.lifetime);
        let shown = keeping.stale_while_revalidate;
        let shown_until = left(keeping.lifetime.saturating_add(shown));
        Self {
            body,
            renew_from: renew_from(&head, fresh_until),
            fresh_until,
            shown_until,
            // What may be shown while its source is asked may be shown when that fails.
            stale_until: (fresh_until + keeping.stale_if_error).max(shown_until),
            spared_until: Timestamp::ZERO,
            sharing: keeping.sharing,
            digest: OnceLock::new(),
            head,
        }
    }

    /// The same response, shown for `time` without asking its source again; never beyond
    /// `shown_until`.
    pub(crate) fn spared(&self, now: Timestamp, time: Duration) -> Self {
        Self {
            spared_until: (now + time).min(self.shown_until),
            ..self.clone()
        }
    }

    /// The same response after its source could not be reached: shown for `rest` without asking
    /// again, and for `trust` after that while its source is asked; never beyond `stale_until`.
    pub(crate) fn after_failure(&self, now: Timestamp, rest: Duration, trust: Duration) -> Self {
        let trusted_until = (now + rest + trust).min(self.stale_until);
        let shown_until = self.shown_until.max(trusted_until);
        Self {
            shown_until,
            ..self.undue()
        }
        .spared(now, rest)
    }

    /// Whether it is fresh, and so near its end that it should be renewed where many ask for it.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.renew_from <= now && now < self.fresh_until
    }

    /// The same response, not to be renewed before its end.
    pub(crate) fn undue(&self) -> Self {
        Self {
            renew_from: self.fresh_until,
            ..self.clone()
        }
    }

    /// The same response, to be renewed from then on.
    pub(crate) fn due_from(&self, then: Timestamp) -> Self {
        Self {
            renew_from: then.min(self.fresh_until),
            ..self.clone()
        }
    }

    /// The same response, never shown again before its source was asked.
    pub(crate) fn expired(&self) -> Self {
        Self {
            fresh_until: Timestamp::ZERO,
            shown_until: Timestamp::ZERO,
            stale_until: Timestamp::ZERO,
            spared_until: Timestamp::ZERO,
            ..self.clone()
        }
    }

    /// The same response after a soft purge: no longer fresh, and shown while its source is asked
    /// for as long as it might have stood in after its lifetime.
    pub(crate) fn purged(&self, now: Timestamp) -> Self {
        let fresh_until = self.fresh_until.min(now);
        let stale_until = self
            .stale_until
            .min(now + self.stale_until.since(self.fresh_until));
        Self {
            fresh_until,
            shown_until: stale_until,
            stale_until,
            spared_until: Timestamp::ZERO,
            ..self.clone()
        }
    }

    /// Whether it may be used at `now`.
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        if now < self.fresh_until {
            Freshness::Fresh
        } else if now < self.spared_until {
            Freshness::Spared
        } else if now < self.shown_until {
            Freshness::Shown
        } else {
            Freshness::Stale
        }
    }

    /// Age at `now`, for the Age field.
    pub fn age(&self, now: Timestamp) -> Duration {
        self.head.age(now)
    }

    /// Bytes on the heap that count against the memory limit.
    pub(crate) fn weight(&self) -> usize {
        let body = match &self.body {
            Body::Memory(bytes) => shared_bytes(bytes.len()),
            // And its path.
            Body::File { .. } => counted::<StoredFile>() + allocation(100),
        };
        let structs = counted::<Self>() + counted::<ResponseHead>();
        let tags = match self.head.tags.length() {
            0 => 0,
            bytes => shared_bytes(bytes),
        };
        structs + shared_bytes(self.head.lines.len()) + tags + body
    }
}

/// Between a tenth and a fifth of the lifetime before its end, a minute at most: each object at a
/// time of its own, so that a page and its pictures, which came together, do not go together.
fn renew_from(head: &ResponseHead, fresh_until: Timestamp) -> Timestamp {
    let lifetime = fresh_until.since(head.received);
    let window = (lifetime / 5).min(RENEWAL_WINDOW_MAX);
    let chance = foldhash::fast::RandomState::default().hash_one(head.received);
    let part = 500 + (chance % 500) as u32;
    let early = window * part / 1000;
    head.received + (lifetime - early)
}

/// An object that is good for a day need not be fetched hours before its end.
const RENEWAL_WINDOW_MAX: Duration = Duration::from_secs(60);

impl Body {
    /// Bytes of the body.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }
}
