//! What one core has counted since it started, and how others read it.
//!
//! Each core writes its own block and nobody else's, by a plain load and store: no shared writes,
//! no locked instruction on the path of a request. Readers see each figure whole, though not all of
//! the same instant; they take differences of two readings anyway.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use levee_control::Comeback;
use levee_wire::BackReason;

use crate::answer::Cause;
use crate::engine::CodingCounters;
use crate::histogram::{Histogram, LatencyCounts};
use crate::sample::{Comebacks, Sample, SentBack, SlotSample};

/// Figure that only its owner writes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds, as the owner.
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed) + amount, Relaxed);
    }

    /// Sets, as the owner.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counters of one core. Aligned so that two cores never share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CoreCounters {
    pub requests: Counter,
    pub bytes: Counter,
    pub own_requests: Counter,
    pub own_bytes: Counter,
    pub https_own_bytes: Counter,
    pub redirects: Counter,
    pub redirect_bytes: Counter,
    pub rescue_requests: Counter,
    pub rescue_bytes: Counter,
    pub fetches_served: Counter,
    pub fetch_bytes: Counter,
    pub drill_bytes: Counter,
    pub refused: Counter,
    pub dropped: Counter,
    pub withheld: Counter,
    pub withheld_bytes: Counter,
    pub crawlers_by_name: Counter,
    pub crawlers_by_behaviour: Counter,
    pub crawler_own_bytes: Counter,
    pub crawler_rescue_bytes: Counter,
    pub crawlers_put_off: Counter,
    pub crawlers_closed: Counter,
    pub crawler_connections: Counter,
    pub crawler_blocks: Counter,
    pub evicted: Counter,
    pub bad_requests: Counter,
    pub client_errors: Counter,
    pub server_errors: Counter,
    pub accepted: Counter,
    pub connections: Counter,
    pub handshakes_full: Counter,
    pub handshakes_resumed: Counter,
    pub handshakes_failed: Counter,
    pub handshakes_tls12: Counter,
    pub handshakes_tls13: Counter,
    pub waiting: Counter,
    pub answering: Counter,
    pub held_up: Counter,
    pub held_up_by_visitors: Counter,
    pub log_lines_lost: Counter,
    pub codings: CodingCounters,
    pub panics: Counter,
    /// 1 when the core has ended and nobody had told it to.
    pub lost: Counter,
    pub http2_accepted: Counter,
    pub http2_requests: Counter,
    pub http2_streams: Counter,
    pub kept_visits: Counter,
    pub comebacks: ComebackCounters,
    pub sent_back: SentBackCounters,
    pub latency: Histogram,
    pub slots: Slots,
}

/// Requests with the word of a rescue server, by what it was worth.
#[derive(Debug, Default)]
pub(crate) struct ComebackCounters {
    believed: Counter,
    doubtful: Counter,
    unsigned: Counter,
    returned: Counter,
}

/// Visitors of origins who were sent back, by why.
#[derive(Debug, Default)]
pub(crate) struct SentBackCounters {
    missing: Counter,
    busy: Counter,
    /// The rescue is over.
    pub over: Counter,
}

/// Counters of each link slot.
#[derive(Debug)]
pub(crate) struct Slots(Box<[SlotCounters]>);

/// Counters of one link slot: of a rescue server as a place to redirect to, or of an origin that we
/// rescue.
#[derive(Debug, Default)]
pub(crate) struct SlotCounters {
    pub rescue_requests: Counter,
    pub rescue_bytes: Counter,
    pub redirects: Counter,
    pub redirect_bytes: Counter,
    pub redirect_accounted: Counter,
    pub redirect_file_bytes: Counter,
}

impl Default for Slots {
    fn default() -> Self {
        Self((0..=u8::MAX).map(|_| SlotCounters::default()).collect())
    }
}

impl ComebackCounters {
    /// Notes a request.
    pub fn note(&self, comeback: Comeback) {
        match comeback {
            Comeback::None => {}
            Comeback::Believed => self.believed.add(1),
            Comeback::Doubtful => self.doubtful.add(1),
            Comeback::Unsigned => self.unsigned.add(1),
            Comeback::Returned => self.returned.add(1),
        }
    }

    fn add_to(&self, sample: &mut Comebacks) {
        sample.believed += self.believed.read();
        sample.doubtful += self.doubtful.read();
        sample.unsigned += self.unsigned.read();
        sample.returned += self.returned.read();
    }
}

impl SentBackCounters {
    /// Notes a visitor.
    pub fn note(&self, reason: BackReason) {
        match reason {
            BackReason::Missing => self.missing.add(1),
            BackReason::Busy => self.busy.add(1),
        }
    }

    fn add_to(&self, sample: &mut SentBack) {
        sample.missing += self.missing.read();
        sample.busy += self.busy.read();
        sample.over += self.over.read();
    }
}

impl CoreCounters {
    /// The counters of link slot `slot`.
    pub fn slot(&self, slot: u8) -> &SlotCounters {
        &self.slots.0[usize::from(slot)]
    }

    /// Counts bytes for our own names that our own drill caused.
    pub fn note_cause(&self, cause: Cause, bytes: u64) {
        match cause {
            Cause::Visitors => {}
            Cause::Drill => self.drill_bytes.add(bytes),
        }
    }

    /// Notes the end of a response with this status.
    pub fn note_end(&self, status: u16, latency: Duration) {
        match status {
            400..=499 => self.client_errors.add(1),
            500..=599 => self.server_errors.add(1),
            _ => {}
        }
        self.latency.note(latency);
    }

    /// Adds the figures of this core to `sample`.
    pub fn add_to(&self, sample: &mut Sample) {
        sample.requests += self.requests.read();
        sample.bytes += self.bytes.read();
        sample.own_requests += self.own_requests.read();
        sample.own_bytes += self.own_bytes.read();
        sample.https_own_bytes += self.https_own_bytes.read();
        sample.redirects += self.redirects.read();
        sample.redirect_bytes += self.redirect_bytes.read();
        sample.rescue_requests += self.rescue_requests.read();
        sample.rescue_bytes += self.rescue_bytes.read();
        sample.fetches_served += self.fetches_served.read();
        sample.fetch_bytes += self.fetch_bytes.read();
        sample.drill_bytes += self.drill_bytes.read();
        sample.refused += self.refused.read();
        sample.dropped += self.dropped.read();
        sample.withheld += self.withheld.read();
        sample.withheld_bytes += self.withheld_bytes.read();
        sample.crawlers.by_name += self.crawlers_by_name.read();
        sample.crawlers.by_behaviour += self.crawlers_by_behaviour.read();
        sample.crawlers.own_bytes += self.crawler_own_bytes.read();
        sample.crawlers.rescue_bytes += self.crawler_rescue_bytes.read();
        sample.crawlers.put_off += self.crawlers_put_off.read();
        sample.crawlers.closed += self.crawlers_closed.read();
        sample.crawlers.connections += self.crawler_connections.read();
        sample.crawlers.blocks += self.crawler_blocks.read();
        sample.evicted += self.evicted.read();
        sample.bad_requests += self.bad_requests.read();
        sample.client_errors += self.client_errors.read();
        sample.server_errors += self.server_errors.read();
        sample.accepted += self.accepted.read();
        sample.connections += self.connections.read();
        sample.handshakes.full += self.handshakes_full.read();
        sample.handshakes.resumed += self.handshakes_resumed.read();
        sample.handshakes.failed += self.handshakes_failed.read();
        sample.handshakes.tls12 += self.handshakes_tls12.read();
        sample.handshakes.tls13 += self.handshakes_tls13.read();
        sample.waiting += self.waiting.read();
        sample.answering += self.answering.read();
        sample.held_up += self.held_up.read();
        sample.held_up_by_visitors += self.held_up_by_visitors.read();
        sample.log_lines_lost += self.log_lines_lost.read();
        sample.panics += self.panics.read();
        sample.lost_cores += self.lost.read();
        sample.http2_accepted += self.http2_accepted.read();
        sample.http2_requests += self.http2_requests.read();
        sample.http2_streams += self.http2_streams.read();
        sample.kept_visits += self.kept_visits.read();
        self.comebacks.add_to(&mut sample.comebacks);
        self.sent_back.add_to(&mut sample.sent_back);
        self.latency.add_to(&mut sample.latency);
        for (number, slot) in (0..=u8::MAX).zip(&self.slots.0) {
            if slot.rescue_requests.read() > 0 || slot.redirects.read() > 0 {
                slot.add_to(sample.slots.entry(number).or_default());
            }
        }
    }
}

impl SlotCounters {
    fn add_to(&self, sample: &mut SlotSample) {
        sample.rescue_requests += self.rescue_requests.read();
        sample.rescue_bytes += self.rescue_bytes.read();
        sample.redirects += self.redirects.read();
        sample.redirect_bytes += self.redirect_bytes.read();
        sample.redirect_accounted += self.redirect_accounted.read();
        sample.redirect_file_bytes += self.redirect_file_bytes.read();
    }
}

/// Latencies of all cores together, as a starting point for `Histogram::add_to`.
impl Default for LatencyCounts {
    fn default() -> Self {
        Self::empty()
    }
}
