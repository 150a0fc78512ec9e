//! Limits of fetching and caching, with the reasons for their defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use levee_vocab::Timestamp;

use crate::cacheability::Wishes;
use crate::flight::{Place, Purpose, Source};

/// The engine's clock: monotonic, the same that every core reads. A jump of the calendar moves
/// nothing.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// Bytes of the cache in memory, with its index. 64 MiB holds the hot objects of any small
    /// site.
    pub memory: u64,
    /// The largest body kept in memory; larger ones go to disk. 1 MiB: pages and pictures, not
    /// films.
    pub memory_object_max: u64,
    /// Bytes of bodies that are on their way and shared, beside `memory`.
    pub memory_in_flight: u64,
    /// Where large objects go; none keeps only what fits into memory.
    pub disk: Option<DiskSettings>,
    /// Time to connect. 2 s: a dead rescue link must be noticed while its visitor still waits.
    pub connect_timeout: Duration,
    /// Time from a request's turn to the first byte of its response, with a second attempt.
    pub first_byte_timeout: Duration,
    /// Time in which another rescue server, asked as an object's home, must begin to answer. 5 s:
    /// half of the above, so that a home that hangs leaves time for the origin; and twice what the
    /// origin needs to find it dead.
    pub home_wait: Duration,
    /// Time without any byte of a body.
    pub body_timeout: Duration,
    /// Time for a whole body that many wait for, however steadily it trickles. An hour: 190 MB over
    /// a link of 54 kB/s. What goes to one visitor as it comes, like a stream of events, has no
    /// such end.
    pub total_timeout: Duration,
    /// Time that a fetch waits for its turn at a busy source, before the timeouts above begin. 15
    /// s: who waits longer has left.
    pub wait_max: Duration,
    /// Bytes of an unshared body that a slow visitor may leave unread.
    pub unread_max: u64,
    /// Requests that wait for one object.
    pub waiters_max: usize,
    /// Flights in all.
    pub flights_max: usize,
    /// Flights of one source, so that one dead origin does not use up all of them.
    pub flights_per_source_max: usize,
    /// Shared fetches that run at one source at a time; the others queue.
    pub shared_fetches_per_source: usize,
    /// The same where the source is an origin that we rescue. Its link is full: the fewer come at a
    /// time, the sooner each is there, and the most wanted come first (`fetch/lane.rs`).
    pub rescue_fetches_per_source: usize,
    /// Fetches for one visitor each that run at one source at a time; the others queue.
    pub private_fetches_per_source: usize,
    /// Fetches that go on although nobody waits any more, or was there to wait: those by which old
    /// objects are renewed while they are shown.
    pub abandoned_max: usize,
    /// Connections that have become tunnels (WebSocket), open at a time. Each holds two sockets and
    /// up to half a MiB where one side does not read.
    pub tunnels_max: usize,
    /// Idle connections kept to one source. Each new connection costs the origin 358 bytes.
    pub idle_connections_per_source: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// How long a key is remembered as not to be shared.
    pub pass_lifetime: Duration,
    /// Lifetime of 404, 410 and the like that state none.
    pub negative_lifetime: Duration,
    /// The most that a lifetime guessed from Last-Modified may be.
    pub heuristic_max: Duration,
    /// How long after its lifetime an object stands in for a source that cannot be reached.
    pub stale_if_error: Duration,
    /// How long an old object is shown before the source is asked again. 5 s: a dead source costs
    /// one fetch for an object in this time, not one for each visitor.
    pub stale_retry: Duration,
    /// How long after that an old object is shown at once while the source is asked again. 60 s:
    /// what is asked for by more than one visitor a minute makes nobody wait for a source in
    /// trouble.
    pub stale_trust: Duration,
    /// Requests in its lifetime that make an object hot: it is renewed before its end. None renews
    /// nothing. 10: whoever is asked for so often would soon be missed, and few objects are.
    pub refresh_hits: Option<u16>,
    /// Whether visitors may ask for something newer than what is stored. Not by default: browsers
    /// do it with each reload.
    pub wishes: Wishes,
    /// How often our name may stand in the Via field of a request: visitor, rescue server, home,
    /// origin server and upstream are all Levees at most.
    pub hops_max: usize,
}

/// The folder for large objects.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// A folder of its own; made where it is missing.
    pub folder: PathBuf,
    /// Bytes of all files.
    pub limit: u64,
    /// The largest body.
    pub object_max: u64,
}

impl FetchSettings {
    /// Renewals of fresh objects that run at one source at a time: a quarter of its turns.
    pub(super) fn early_width(&self, source: &Source) -> usize {
        (self.shared_width(source) / 4).max(1)
    }

    /// Shared fetches that run at one source at a time.
    pub(super) fn shared_width(&self, source: &Source) -> usize {
        match (source.purpose, &source.place) {
            (Purpose::Rescue, _) => self.rescue_fetches_per_source,
            (Purpose::Upstream, place) => self.shared_fetches_per_source * servers(place),
        }
    }

    /// Fetches for one visitor each that run at one source at a time.
    pub(super) fn private_width(&self, source: &Source) -> usize {
        self.private_fetches_per_source * servers(&source.place)
    }
}

/// How many share the work.
fn servers(place: &Place) -> usize {
    match place {
        Place::Address(_) => 1,
        Place::Upstreams(upstreams) => upstreams.count().max(1),
    }
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            memory_object_max: 1 << 20,
            memory_in_flight: 32 << 20,
            disk: None,
            connect_timeout: Duration::from_secs(2),
            first_byte_timeout: Duration::from_secs(10),
            home_wait: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(3600),
            wait_max: Duration::from_secs(15),
            unread_max: 256 << 10,
            waiters_max: 10_000,
            flights_max: 4096,
            flights_per_source_max: 2048,
            shared_fetches_per_source: 32,
            // Four keep a link of 1 MB/s and 100 ms busy with objects of 25 kB.
            rescue_fetches_per_source: 4,
            private_fetches_per_source: 128,
            abandoned_max: 64,
            tunnels_max: 1024,
            idle_connections_per_source: 8,
            idle_timeout: Duration::from_secs(30),
            pass_lifetime: Duration::from_secs(10),
            negative_lifetime: Duration::from_secs(5),
            heuristic_max: Duration::from_secs(3600),
            stale_if_error: Duration::from_secs(600),
            stale_retry: Duration::from_secs(5),
            stale_trust: Duration::from_secs(60),
            refresh_hits: Some(10),
            wishes: Wishes::Ignored,
            hops_max: 3,
        }
    }
}
