//! What a site measures in one control interval (R2).

use levee_control::{LoadSample, Traffic, Visitor};
use levee_vocab::{LinkId, Timestamp};

/// Whose bytes a response counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// The site's own, fetches by its rescue servers too.
    Own,
    /// The site's own, and a crawler's. Crawlers are never redirected, so none comes for an origin.
    Crawler,
    /// An origin's that it rescues.
    Rescue(LinkId),
}

/// Counters of the interval under way.
#[derive(Debug)]
pub struct Meter {
    since: Timestamp,
    sample: LoadSample,
    /// Requests that came, and those of crawlers among them.
    came: u64,
    crawled: u64,
}

impl Meter {
    /// Everything at zero.
    pub fn new(since: Timestamp) -> Self {
        Self {
            since,
            sample: LoadSample::default(),
            came: 0,
            crawled: 0,
        }
    }

    /// Somebody asks for something.
    pub const fn count_arrival(&mut self, visitor: Visitor) {
        self.came += 1;
        self.crawled += visitor.is_crawler() as u64;
    }

    /// Bytes of a response left.
    pub fn count_bytes(&mut self, account: Account, bytes: u64) {
        if account == Account::Crawler {
            self.sample.crawlers.own_bytes += bytes;
        }
        self.traffic(account).bytes += bytes;
    }

    /// A response is whole.
    pub fn count_request(&mut self, account: Account) {
        self.traffic(account).requests += 1;
    }

    /// A redirect to a rescue server, of this many accounted bytes.
    pub fn count_redirect(&mut self, target: LinkId, accounted: u64, file_bytes: u64) {
        let traffic = self.sample.redirects.entry(target).or_default();
        traffic.bytes += accounted;
        traffic.requests += 1;
        traffic.file_bytes += file_bytes;
    }

    /// A refusal of this many accounted bytes.
    pub const fn count_refusal(&mut self, accounted: u64) {
        self.sample.own.bytes += accounted;
        self.sample.refused += 1;
    }

    /// Ends the interval and begins the next.
    pub fn take(&mut self, now: Timestamp, waiting: usize, connections: f64) -> LoadSample {
        let mut sample = std::mem::take(&mut self.sample);
        sample.elapsed = now.since(self.since);
        sample.waiting = waiting as u64;
        sample.connections = connections;
        sample.crawlers.part = self.crawled as f64 / self.came.max(1) as f64;
        (self.came, self.crawled) = (0, 0);
        self.since = now;
        sample
    }

    fn traffic(&mut self, account: Account) -> &mut Traffic {
        match account {
            Account::Own | Account::Crawler => &mut self.sample.own,
            Account::Rescue(link) => self.sample.rescue.entry(link).or_default(),
        }
    }
}
