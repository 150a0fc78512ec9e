//! What a log says by itself, before anything is simulated: how much, the busiest second, and which
//! resources became hot when.

use std::hash::{DefaultHasher, Hash, Hasher};

use levee_control::{Arrival, ArrivalTable, HotSpotInput, HotSpotRules, HotSpotStep, HotSpots};
use levee_vocab::Timestamp;

use super::timeline::Dated;

/// Looks at every request once.
#[derive(Debug)]
pub struct Scan {
    /// What was seen so far.
    pub seen: Seen,
    second: Second,
    table: ArrivalTable,
    spots: HotSpots,
    overhead: u64,
}

/// What a log says by itself.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Requests.
    pub requests: u64,
    /// Bytes of their answers.
    pub bytes: u64,
    /// The second that asked for the most bytes.
    pub busiest: Second,
    /// The first resources that became worth copying, the earliest first.
    pub hot: Vec<HotSpot>,
    /// How often a resource became worth copying.
    pub hot_count: u64,
}

/// One second of a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Since the log began.
    pub number: u64,
    /// Requests in it.
    pub requests: u64,
    /// Bytes that it asks of the link.
    pub link_bytes: u64,
}

/// When a resource became hot.
#[derive(Clone, Debug)]
pub struct HotSpot {
    /// Its path.
    pub path: String,
    /// The second in which T_C was reached, since the log began.
    pub copy_at: u64,
    /// The second in which T_R was reached for the first time, if it was.
    pub redirect_at: Option<u64>,
}

/// As many places as a core of the server has, and as the server watches.
const CORE_PLACES: usize = 256;
const WATCHED_PLACES: usize = 1024;

/// More hot resources nobody reads.
const HOT_SHOWN: usize = 20;

impl Scan {
    /// Nothing was seen yet; each connection costs the link `overhead` bytes beside its answer.
    pub fn new(overhead: u64) -> Self {
        Self {
            seen: Seen::default(),
            second: Second::default(),
            table: ArrivalTable::new(CORE_PLACES),
            spots: HotSpots::new(HotSpotRules::default(), WATCHED_PLACES),
            overhead,
        }
    }

    /// Looks at the next request.
    pub fn look(&mut self, dated: &Dated<'_>) {
        let number = dated.at.as_nanoseconds() / 1_000_000_000;
        if number != self.second.number {
            self.end_second();
            self.second.number = number;
        }
        self.seen.requests += 1;
        self.seen.bytes += dated.bytes;
        self.second.requests += 1;
        self.second.link_bytes += dated.bytes + self.overhead;
        let path = dated.target.split('?').next().unwrap_or_default();
        let arrival = Arrival {
            hash: hash(path),
            bytes: dated.bytes,
            host: "",
            path,
        };
        self.table.note(dated.at, &arrival);
    }

    /// The second under way is over.
    pub fn end_second(&mut self) {
        let second = std::mem::take(&mut self.second);
        if second.link_bytes > self.seen.busiest.link_bytes {
            self.seen.busiest = second;
        }
        let end = Timestamp::from_seconds(second.number + 1);
        let input = HotSpotInput::ArrivalsTold(self.table.take());
        for output in self.spots.handle(end, input) {
            match output.step {
                HotSpotStep::Normal => {}
                HotSpotStep::Copy => self.note_copy(output.url, second.number),
                HotSpotStep::Redirect => self.note_redirect(&output.url, second.number),
            }
        }
    }

    fn note_copy(&mut self, path: String, copy_at: u64) {
        self.seen.hot_count += 1;
        let is_known = self.seen.hot.iter().any(|spot| spot.path == path);
        if !is_known && self.seen.hot.len() < HOT_SHOWN {
            self.seen.hot.push(HotSpot {
                path,
                copy_at,
                redirect_at: None,
            });
        }
    }

    fn note_redirect(&mut self, path: &str, second: u64) {
        let mut spots = self.seen.hot.iter_mut();
        if let Some(spot) = spots.find(|spot| spot.path == path) {
            spot.redirect_at = spot.redirect_at.or(Some(second));
        }
    }
}

/// The same hash in every run.
pub fn hash(target: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    hasher.finish()
}
