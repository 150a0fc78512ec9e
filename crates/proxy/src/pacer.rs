//! The outbound link, held to its rate B.
//!
//! The link is a clock: it says when the last admitted byte will have left (`free_at`). A message
//! may start when that time has come, and moves it on by its own length. So at most B bytes leave
//! in any second, whoever asks: all cores, and whoever debits from outside, share the one clock.
//!
//! ```text
//!   now            free_at
//!    │  on the wire   │  next message of the most urgent class
//!    └────────────────┴──▶ time
//! ```
//!
//! Order of classes (redirects and refusals, then fetches by rescue servers, then pages, then
//! those of crawlers) is kept by
//! the queue of each core; between cores, a core with something less urgent steps back while
//! another one has something more urgent. A core takes the link for a short lease, so that fast
//! links cost one shared write for many messages, and gives back what it did not use.
//!
//! Where no rate is set there is no `Link`, and nothing of this costs anything.

mod packets;
mod peak;
mod queue;
mod schedule;
mod share;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use levee_control::Visitor;
use levee_vocab::{ByteRate, Timestamp};

pub(crate) use packets::{Packets, SEGMENT_BYTES};
pub(crate) use peak::PeakMeter;
pub(crate) use queue::PacedQueue;
use schedule::Schedule;
use share::Share;

use crate::sample::LinkSample;

/// What a message is, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Redirects, refusals and other answers without a body: they make room.
    Redirect,
    /// Fetches by rescue servers: each saves many pages.
    Fetch,
    /// Everything else.
    Page,
    /// Pages for crawlers: what nobody waits for.
    Crawl,
}

/// How many classes there are.
pub(crate) const CLASSES: usize = 4;

/// The link of this process, shared by its cores.
#[derive(Debug)]
pub struct Link {
    schedule: Schedule,
    free_at: AtomicU64,
    charged: AtomicU64,
    /// Admitted, but not on the link yet; by class.
    queued: [AtomicU64; CLASSES],
    peak: AtomicU64,
    /// For refusals.
    refusals: Share,
    /// For what leaves without asking.
    unasked: Share,
    /// Cores with something of this class to send.
    waiting: [AtomicU64; CLASSES],
}

/// Whether a message may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Yes, and it has been charged.
    Now,
    /// Not before then.
    NotBefore(Timestamp),
}

/// Most of the link that goes to 503s: one costs nearly as much as a redirect, which helps more.
const REFUSAL_SHARE: f64 = 0.02;
/// Most of the link that is kept free for what leaves without asking: resets and rescue messages.
const UNASKED_SHARE: f64 = 0.5;
/// Longest lease of the link to one core.
const LEASE: Duration = Duration::from_micros(500);

impl Link {
    /// A link of `rate`, which must be more than zero.
    pub fn new(rate: ByteRate) -> Self {
        assert!(
            rate > ByteRate::ZERO,
            "a link without a rate carries nothing"
        );
        Self {
            schedule: Schedule::new(rate),
            free_at: AtomicU64::new(0),
            charged: AtomicU64::new(0),
            queued: Default::default(),
            peak: AtomicU64::new(0),
            refusals: Share::new(rate, REFUSAL_SHARE),
            unasked: Share::new(rate, UNASKED_SHARE),
            waiting: Default::default(),
        }
    }

    /// Charges `bytes` that leave now whatever the clock says: rescue messages, resets. Beyond
    /// their share they are left out: nobody can hold them back, and if visitors waited for them,
    /// a few seconds of opened connections could keep a small site shut for minutes.
    pub fn charge(&self, now: Timestamp, bytes: u64) {
        if !self.unasked.take(now, bytes) {
            return;
        }
        let move_on = |free_at| Some(self.schedule.after(free_at, now, bytes));
        // The closure never gives none, so the update cannot fail.
        let _ = self.free_at.fetch_update(Relaxed, Relaxed, move_on);
        self.charged.fetch_add(bytes, Relaxed);
    }

    /// Time that the link needs for what is admitted but has not left.
    pub fn backlog(&self, now: Timestamp) -> Duration {
        self.backlog_up_to(Class::Crawl, now)
    }

    /// The part of it that goes before a page of `visitor`.
    pub(crate) fn backlog_for(&self, visitor: Visitor, now: Timestamp) -> Duration {
        let class = match visitor {
            Visitor::Reader => Class::Page,
            Visitor::Crawler(_) => Class::Crawl,
        };
        self.backlog_up_to(class, now)
    }

    fn backlog_up_to(&self, class: Class, now: Timestamp) -> Duration {
        let on_wire = Timestamp::from_nanoseconds(self.free_at.load(Relaxed)).since(now);
        let queued = self.queued[..=class as usize].iter();
        let queued = queued.map(|bytes| bytes.load(Relaxed)).sum();
        on_wire + self.schedule.rate().time_for(queued)
    }

    /// The part of the backlog that goes before everything else: redirects and refusals.
    pub(crate) fn urgent_backlog(&self, now: Timestamp) -> Duration {
        self.backlog_up_to(Class::Redirect, now)
    }

    /// Bytes that have left: what was charged less what is still on the wire.
    pub fn carried(&self, now: Timestamp) -> u64 {
        self.carried_exactly(now) as u64
    }

    /// The same with the part of a byte that is just leaving, for differences.
    pub(crate) fn carried_exactly(&self, now: Timestamp) -> f64 {
        let on_wire = Timestamp::from_nanoseconds(self.free_at.load(Relaxed)).since(now);
        let unsent = self.schedule.rate().as_bytes() as f64 * on_wire.as_secs_f64();
        (self.charged.load(Relaxed) as f64 - unsent).max(0.0)
    }

    /// The newest time of which it is known what has left by then, and how much that is. Where the
    /// link has just run dry, a core that is late may still start a message in that gap.
    pub(crate) fn settled(&self, now: Timestamp) -> (Timestamp, f64) {
        let free = Timestamp::from_nanoseconds(self.free_at.load(Relaxed));
        let at = now.min(free.max(self.schedule.earliest_start(now)));
        (at, self.carried_exactly(at))
    }

    /// A reading for the control interval.
    pub fn sample(&self, now: Timestamp) -> LinkSample {
        LinkSample {
            carried: self.carried(now),
            peak: self.peak.load(Relaxed),
            backlog: self.backlog(now).as_secs_f64(),
        }
    }

    /// Asks to start a message of `bytes` that has been ready since `ready`.
    pub(crate) fn start(
        &self,
        class: Class,
        now: Timestamp,
        ready: Timestamp,
        bytes: u64,
    ) -> Grant {
        let more_urgent = &self.waiting[..class as usize];
        if more_urgent.iter().any(|cores| cores.load(Relaxed) > 0) {
            // Another core goes first: look again when it may have had its turn.
            return Grant::NotBefore(now + LEASE);
        }
        let mut free_at = self.free_at.load(Relaxed);
        loop {
            let next = match self.schedule.start(free_at, now, ready, bytes) {
                Ok(next) => next,
                Err(at) => return Grant::NotBefore(at),
            };
            match self
                .free_at
                .compare_exchange_weak(free_at, next, Relaxed, Relaxed)
            {
                Ok(_) => break,
                Err(seen) => free_at = seen,
            }
        }
        self.charged.fetch_add(bytes, Relaxed);
        Grant::Now
    }

    /// Gives back what was charged but not sent.
    pub(crate) fn refund(&self, bytes: u64) {
        let time = self.schedule.nanoseconds(bytes);
        let back = |free_at: u64| Some(free_at.saturating_sub(time));
        let _ = self.free_at.fetch_update(Relaxed, Relaxed, back);
        self.charged.fetch_sub(bytes, Relaxed);
    }

    /// Notes that `bytes` were admitted and will be sent.
    pub(crate) fn admit(&self, class: Class, bytes: u64) {
        self.queued[class as usize].fetch_add(bytes, Relaxed);
    }

    /// Notes that `bytes` of what was admitted were sent, or will never be.
    pub(crate) fn settle(&self, class: Class, bytes: u64) {
        self.queued[class as usize].fetch_sub(bytes, Relaxed);
    }

    /// Whether a refusal of `bytes` may be sent; if so, it is charged to the refusals' share (the
    /// link itself is charged when it is sent).
    pub(crate) fn allows_refusal(&self, now: Timestamp, bytes: u64) -> bool {
        self.refusals.take(now, bytes)
    }

    /// Tells that this core has begun or ceased to have something of `class` to send.
    pub(crate) fn note_waiting(&self, class: Class, presence: Presence) {
        let cores = &self.waiting[class as usize];
        match presence {
            Presence::Begun => cores.fetch_add(1, Relaxed),
            Presence::Ceased => cores.fetch_sub(1, Relaxed),
        };
    }

    /// Most bytes in one lease, and the piece in which pages take turns.
    pub(crate) fn lease_bytes(&self) -> u64 {
        self.schedule.rate().bytes_in(LEASE)
    }

    /// Pages take turns in pieces of about 5 ms, but not so small that heads of packets eat the
    /// link, nor so large that a redirect waits.
    pub(crate) fn quantum(&self) -> u64 {
        let piece = self.schedule.rate().bytes_in(Duration::from_millis(5));
        piece.clamp(1460, 65_536)
    }

    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.free_at.load(Relaxed) <= now.as_nanoseconds()
    }

    fn note_peak(&self, bytes: u64) {
        self.peak.fetch_max(bytes, Relaxed);
    }
}

/// Whether a core has something of a class to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Begun,
    Ceased,
}

#[cfg(test)]
mod tests;
