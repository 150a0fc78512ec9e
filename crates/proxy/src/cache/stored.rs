//! One cached response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use levee_vocab::Timestamp;

use super::ALLOCATION;
use crate::cacheability::{Keeping, Sharing};
use crate::disk::StoredFile;
use crate::flight::ResponseHead;

/// A response in the cache. Immutable; a response that proved unchanged is a new one with the same body.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Status and cleaned headers.
    pub head: Arc<ResponseHead>,
    /// The whole body.
    pub body: Body,
    /// Fresh before this.
    pub fresh_until: Timestamp,
    /// Usable before this where its source cannot be reached.
    pub stale_until: Timestamp,
    /// Taken for fresh before this, because its source could not be reached a moment ago.
    pub spared_until: Timestamp,
    /// Who may have it.
    pub sharing: Sharing,
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
    /// Too old, but its source cannot be reached.
    Spared,
    /// Too old.
    Stale,
}

impl Stored {
    /// A response that has just come, to be kept as `keeping` says.
    pub(crate) fn new(head: Arc<ResponseHead>, body: Body, keeping: &Keeping) -> Self {
        let left = keeping.lifetime.saturating_sub(head.age_initial);
        let fresh_until = head.received + left;
        Self {
            body,
            fresh_until,
            stale_until: fresh_until + keeping.stale_if_error,
            spared_until: Timestamp::ZERO,
            sharing: keeping.sharing,
            head,
        }
    }

    /// The same response, used for `time` longer because its source cannot be reached; never beyond
    /// `stale_until`.
    pub(crate) fn spared(&self, now: Timestamp, time: Duration) -> Self {
        Self {
            spared_until: (now + time).min(self.stale_until),
            ..self.clone()
        }
    }

    /// Whether it may be used at `now`.
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        if now < self.fresh_until {
            Freshness::Fresh
        } else if now < self.spared_until {
            Freshness::Spared
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
            // The body's own control block and its bytes.
            Body::Memory(bytes) => bytes.len() + 2 * ALLOCATION,
            Body::File { .. } => size_of::<StoredFile>() + 6 * ALLOCATION,
        };
        let structs = size_of::<Self>() + size_of::<ResponseHead>() + 4 * ALLOCATION;
        structs + self.head.lines.len() + 2 * ALLOCATION + body
    }
}

impl Body {
    /// Bytes of the body.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }
}
