//! The reverse caching proxy: from the cache, or by one fetch for everybody who asks.
//!
//! ```text
//!  ask ─▶ fresh in the cache? ─▶ yes: there it is
//!            │ no
//!         old, but may be shown? ─▶ yes: there it is, and a flight for a newer one
//!            │ no
//!         known to be for one visitor each? ─▶ yes: a private flight
//!            │ no
//!         a flight for it under way? ─▶ yes: join it
//!            │ no
//!         a new flight, with the old object to fall back on
//! ```
//!
//! Each flight is filled by a task of its own (`fetch/task.rs`), so no visitor leads it. The
//! invariants:
//! - one shared flight for a key at a time; the object is in the cache before its flight leaves
//!   the table;
//! - whatever becomes of a task, its flight ends and leaves the table (a guard sees to it);
//! - every wait has a deadline and every queue a limit (`fetch/settings.rs`).

mod aside;
mod background;
mod body;
mod copies;
mod counters;
mod dial;
mod early;
mod exchange;
mod homes;
mod integrity;
mod lane;
mod pool;
mod purges;
mod request;
mod response;
mod settings;
mod table;
mod task;
mod tunnel;
mod wishes;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use http::Method;
use levee_vocab::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::cache::{Cache, CacheKey, Found, Freshness, Stored};
use crate::disk::{Disk, DiskError, DiskOwner};
use crate::flight::{
    Asker, BodyReceiver, CacheResult, FetchError, Flight, Miss, NotJoined, ObjectRef, Overloaded,
    Party, RequestHeaders, Waiting, Waker, lock,
};
use crate::publisher::Publisher;
use crate::upstream::Endpoint;
pub use aside::Reply;
use copies::CopyDesk;
pub use copies::{PushJudgement, judge_push};
pub use counters::{FetchCounters, SourceCounters};
use counters::{Tally, count};
pub(crate) use dial::{Way, dial};
use homes::HomeDesk;
pub(crate) use homes::{HOME_FIELD, HOME_LINE};
use integrity::IntegrityDesk;
pub use integrity::{Delivered, OriginKey, Standing, Verify};
use pool::Pool;
pub(crate) use request::Upload;
pub use settings::{Clock, DiskSettings, FetchSettings};
use table::Table;
use task::Fetch;
use wishes::Wished;

/// The cache and its fetches. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

/// What all cores and tasks share.
struct Shared {
    settings: FetchSettings,
    runtime: Handle,
    clock: Clock,
    cache: Cache,
    pool: Arc<Pool>,
    table: Mutex<Table>,
    tally: Tally,
    /// Fetches that may go on although nobody waits.
    abandoned: Arc<Semaphore>,
    /// Tunnels that may be opened.
    tunnels: Arc<Semaphore>,
    /// Answers of our own that are being made.
    asides: Arc<Semaphore>,
    /// Copies that origins have made here.
    copies: CopyDesk,
    /// Bytes of shared bodies on their way.
    in_flight: AtomicU64,
    /// How it stands with the homes of objects.
    homes: Mutex<HomeDesk>,
    /// Whose signatures hold for what we fetch.
    integrity: IntegrityDesk,
    /// Signs what rescue servers fetch from us.
    publisher: OnceLock<Arc<Publisher>>,
}

/// Where a visitor is to be woken.
struct Caller {
    waker: Arc<dyn Waker>,
    connection: u64,
}

impl Fetcher {
    /// A cache that is empty, whose fetches run on `runtime`. `clock` must be the one whose time is
    /// given to [`Fetcher::lookup`]. Fails only where the folder for large objects cannot be used.
    pub fn new(settings: FetchSettings, runtime: Handle, clock: Clock) -> Result<Self, DiskError> {
        let disk = settings.disk.as_ref();
        let disk = disk
            .map(|disk| Disk::open(&disk.folder, disk.limit))
            .transpose()?;
        let cache = Cache::new(settings.memory, settings.memory_object_max, disk);
        let pool = Pool::new(
            settings.connect_timeout,
            settings.idle_timeout,
            settings.idle_connections_per_source,
        );
        let abandoned = Arc::new(Semaphore::new(settings.abandoned_max));
        let tunnels = Arc::new(Semaphore::new(settings.tunnels_max));
        Ok(Self {
            shared: Arc::new(Shared {
                settings,
                runtime,
                clock,
                cache,
                pool,
                table: Mutex::default(),
                tally: Tally::default(),
                abandoned,
                tunnels,
                asides: Arc::new(Semaphore::new(aside::ASIDES_MAX)),
                copies: CopyDesk::default(),
                in_flight: AtomicU64::new(0),
                homes: Mutex::default(),
                integrity: IntegrityDesk::default(),
                publisher: OnceLock::new(),
            }),
        })
    }

    /// The object for a GET or HEAD with these headers, where it is in the cache and may be used.
    /// Copies and allocates nothing, unless the object varies by request headers. Counts hits.
    pub fn lookup(
        &self,
        object: ObjectRef<'_>,
        headers: &(impl RequestHeaders + ?Sized),
        now: Timestamp,
    ) -> Option<Arc<Stored>> {
        match self.look(object, headers, now) {
            Found::Object(stored) => Some(stored),
            Found::Passes(_) | Found::Nothing => None,
        }
    }

    /// The same, and whether nobody may keep what is not there.
    pub(crate) fn look(
        &self,
        object: ObjectRef<'_>,
        headers: &(impl RequestHeaders + ?Sized),
        now: Timestamp,
    ) -> Found {
        match self.shared.cache.find(object, headers, now) {
            Found::Object(stored) => {
                let space = object.space;
                let credentials = request::credentials(space, headers);
                let usable = stored.sharing.allows(credentials)
                    && match self.shared.wished(space, &stored, headers, now) {
                        Wished::AsUsual => self.shared.count_hit(&stored, now),
                        Wished::EvenOld | Wished::Newer => false,
                    };
                match usable {
                    true => Found::Object(stored),
                    false => Found::Nothing,
                }
            }
            other @ (Found::Passes(_) | Found::Nothing) => other,
        }
    }

    /// The same where the origin is dead and permits us to go on: an object that may stand in after
    /// its lifetime is used however old it is. Counts what is old as such.
    pub(crate) fn lookup_held(
        &self,
        object: ObjectRef<'_>,
        headers: &(impl RequestHeaders + ?Sized),
        now: Timestamp,
    ) -> Option<Arc<Stored>> {
        let tally = &self.shared.tally;
        match self.shared.cache.find(object, headers, now) {
            Found::Object(stored) => {
                let credentials = request::credentials(object.space, headers);
                let is_fresh = now < stored.fresh_until;
                let may_be_old = stored.stale_until > stored.fresh_until;
                if !stored.sharing.allows(credentials) || !(is_fresh || may_be_old) {
                    return None;
                }
                count(if is_fresh {
                    &tally.hits
                } else {
                    &tally.stale_hits
                });
                Some(stored)
            }
            Found::Passes(_) | Found::Nothing => None,
        }
    }

    /// Asks for an object that [`Fetcher::lookup`] did not find, or for the answer to a request
    /// that is not for the cache (other methods, or with a body). `connection` is woken through
    /// `waker` when [`Waiting::read`] has something new.
    pub fn ask(
        &self,
        miss: Miss,
        waker: Arc<dyn Waker>,
        connection: u64,
    ) -> Result<Waiting, Overloaded> {
        let caller = Caller { waker, connection };
        let shared = &self.shared;
        if request::hops(&miss.headers) > shared.settings.hops_max {
            shared.tally.failed(FetchError::Loop);
            count(&shared.tally.misses);
            return Ok(Waiting::failed(FetchError::Loop));
        }
        let (asker, body) = Asker::of(miss);
        let for_cache = asker.method == Method::GET || asker.method == Method::HEAD;
        let asked = if for_cache && body.is_none() && !shared.is_to_be_forgotten(&asker) {
            shared.ask_shared(asker, caller)
        } else {
            shared.ask_private(asker, body, caller)
        };
        shared.count_asked(&asked);
        asked
    }

    /// What rescue servers fetch from us is signed by `publisher` from now on. The first call
    /// counts: a site has one key.
    pub fn publish_by(&self, publisher: Arc<Publisher>) {
        let _ = self.shared.publisher.set(publisher);
    }

    /// Who signs what rescue servers fetch from us.
    pub fn publisher(&self) -> Option<&Arc<Publisher>> {
        self.shared.publisher.get()
    }

    /// Closes the connections that are kept to these and not in use: they are upstreams no more.
    pub fn close_idle(&self, endpoints: &[Endpoint]) {
        self.shared.pool.close(endpoints);
    }

    /// What was done since the start.
    pub fn counters(&self) -> FetchCounters {
        self.shared.tally.read()
    }

    /// Bytes of the cache in memory with its index, and the limit.
    pub fn cache_bytes(&self) -> (u64, u64) {
        self.shared.cache.bytes()
    }

    /// Bytes of the cache on disk, and the limit; zeros without a folder.
    pub fn disk_bytes(&self) -> (u64, u64) {
        let disk = self.shared.cache.disk();
        disk.map_or((0, 0), |disk| (disk.used(), disk.limit()))
    }

    /// Bytes on disk of the origins that we rescue, and the limit; zeros without a folder.
    pub fn disk_bytes_of_others(&self) -> (u64, u64) {
        let disk = self.shared.cache.disk();
        let bytes = |disk: &Arc<Disk>| (disk.used_by_others(), disk.limit_of(DiskOwner::Another));
        disk.map_or((0, 0), bytes)
    }

    /// From now on the origins that we rescue have so much of the disk at most; none means as much
    /// as there is. What is too much goes at once, but for files that are still read.
    pub fn limit_disk_of_others(&self, bytes: Option<u64>) {
        let cache = &self.shared.cache;
        if let Some(disk) = cache.disk() {
            disk.limit_others(bytes.unwrap_or(u64::MAX));
            cache.make_disk_room(DiskOwner::Another, 0);
        }
    }

    /// Flights under way, and the most of them.
    pub fn flights(&self) -> (usize, usize) {
        let flights = lock(&self.shared.table).len();
        (flights, self.shared.settings.flights_max)
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Whether the object may be used now; if so, counts it. One that may be shown while its source
    /// is asked may not: somebody has to ask.
    fn count_hit(&self, stored: &Stored, now: Timestamp) -> bool {
        match stored.freshness(now) {
            Freshness::Shown | Freshness::Stale => return false,
            Freshness::Spared => count(&self.tally.stale_hits),
            Freshness::Fresh if stored.is_due(now) && self.settings.refresh_hits.is_some() => {
                return false;
            }
            Freshness::Fresh => count(&self.tally.hits),
        }
        true
    }

    /// Counts a request that [`Fetcher::lookup`] could not answer.
    fn count_asked(&self, asked: &Result<Waiting, Overloaded>) {
        let tally = &self.tally;
        match asked.as_ref().map(Waiting::result) {
            Ok(CacheResult::Hit) => count(&tally.hits),
            Ok(CacheResult::Stale) => count(&tally.stale_hits),
            Ok(
                CacheResult::Revalidated
                | CacheResult::Miss
                | CacheResult::Collapsed
                | CacheResult::Passed,
            ) => count(&tally.misses),
            Err(_) => {
                count(&tally.misses);
                count(&tally.overloaded);
            }
        }
    }

    /// For a request whose response may be shared.
    fn ask_shared(
        self: &Arc<Self>,
        asker: Box<Asker>,
        caller: Caller,
    ) -> Result<Waiting, Overloaded> {
        let now = self.now();
        let table = lock(&self.table);
        // Before the object is looked for: what is found is then what stands under this key,
        // because notes of variants are only added under the lock.
        let key = self.key_for(&asker);
        // Asked again under the lock: the flight may have landed since the core looked.
        let found = self.cache.find(asker.key.borrowed(), &asker.headers, now);
        let stale = match found {
            Found::Passes(_) => {
                drop(table);
                return self.ask_private(asker, None, caller);
            }
            Found::Object(stored) if !stored.sharing.allows(asker.credentials) => {
                drop(table);
                return self.ask_private(asker, None, caller);
            }
            Found::Object(stored) => match self.use_of(&asker, &stored, now) {
                Freshness::Fresh if stored.is_due(now) => {
                    return Ok(self.show_and_renew_early(table, key, asker, &stored));
                }
                Freshness::Fresh => return Ok(Waiting::of_stored(stored, CacheResult::Hit)),
                Freshness::Spared => return Ok(Waiting::of_stored(stored, CacheResult::Stale)),
                Freshness::Shown => return Ok(self.show_and_renew(table, key, asker, &stored)),
                Freshness::Stale => Some(stored),
            },
            Found::Nothing => None,
        };
        let asked = self.join_or_begin(table, key, asker, caller, stale.clone());
        asked.or_else(|overloaded| match stale {
            Some(old) if now < old.stale_until => Ok(Waiting::of_stored(old, CacheResult::Stale)),
            Some(_) | None => Err(overloaded),
        })
    }

    /// The freshness of what is stored, as `asker` sees it.
    fn use_of(&self, asker: &Asker, stored: &Stored, now: Timestamp) -> Freshness {
        match self.wished(asker.key.space.borrowed(), stored, &asker.headers, now) {
            // What is old here has no home but the origin.
            Wished::AsUsual if asker.is_another() => match stored.freshness(now) {
                Freshness::Fresh => Freshness::Fresh,
                Freshness::Spared | Freshness::Shown | Freshness::Stale => Freshness::Stale,
            },
            Wished::AsUsual => stored.freshness(now),
            Wished::EvenOld => Freshness::Spared,
            Wished::Newer => Freshness::Stale,
        }
    }

    /// A place at the flight under way for `key`, or at a new one, which may fall back on `stale`.
    fn join_or_begin(
        self: &Arc<Self>,
        mut table: MutexGuard<'_, Table>,
        key: CacheKey,
        asker: Box<Asker>,
        caller: Caller,
        stale: Option<Arc<Stored>>,
    ) -> Result<Waiting, Overloaded> {
        let asker = match table.find(&key) {
            None => asker,
            Some(flight) => {
                let most = self.settings.waiters_max;
                match flight.join(asker, Arc::clone(&caller.waker), caller.connection, most) {
                    Ok(waiting) => {
                        count(&self.tally.collapsed);
                        return Ok(waiting);
                    }
                    Err(NotJoined::Full) => return Err(Overloaded::Waiters),
                    Err(NotJoined::Over(asker)) => asker,
                    Err(NotJoined::NotForIt(asker)) => {
                        drop(table);
                        return self.ask_private(asker, None, caller);
                    }
                }
            }
        };
        let (flight, waiting) = self.begin(Party::Shared, caller);
        let ticket = table.admit(&self.settings, &asker.source, &flight, Some(key))?;
        drop(table);
        let fetch = Fetch::shared(Arc::clone(self), ticket, asker, stale);
        flight.attach_task(self.runtime.spawn(fetch.run()).abort_handle());
        Ok(waiting)
    }

    /// For a request whose response is for it alone.
    fn ask_private(
        self: &Arc<Self>,
        asker: Box<Asker>,
        body: Option<BodyReceiver>,
        caller: Caller,
    ) -> Result<Waiting, Overloaded> {
        let (flight, waiting) = self.begin(Party::Private, caller);
        let ticket = lock(&self.table).admit(&self.settings, &asker.source, &flight, None)?;
        count(&self.tally.passed);
        let fetch = Fetch::private(Arc::clone(self), ticket, asker, body);
        flight.attach_task(self.runtime.spawn(fetch.run()).abort_handle());
        Ok(waiting)
    }

    /// A flight whose first reader has its place before anybody else can find it.
    fn begin(&self, party: Party, caller: Caller) -> (Arc<Flight>, Waiting) {
        let abandoned = Arc::clone(&self.abandoned);
        Flight::begin(party, abandoned, caller.waker, caller.connection)
    }

    /// The key under which an object for this request is kept, as far as is known.
    fn key_for(&self, asker: &Asker) -> CacheKey {
        let names = self.cache.vary(&asker.key);
        CacheKey {
            object: asker.key.clone(),
            variant: names.map(|names| names.variant(&asker.headers)),
        }
    }

    /// Another flight for a request that waited for one whose response is not for it.
    fn ask_again(self: &Arc<Self>, asker: Box<Asker>, caller: Caller, why: Excluded) -> Waiting {
        let asked = match why {
            Excluded::ResponseIsForOne => self.ask_private(asker, None, caller),
            Excluded::OtherCredentials | Excluded::OtherVariant => self.ask_shared(asker, caller),
        };
        asked.unwrap_or_else(|_| {
            self.tally.failed(FetchError::Overloaded);
            Waiting::failed(FetchError::Overloaded)
        })
    }
}

/// Why a request that waited for a response may not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excluded {
    /// It is for the request by which it was fetched.
    ResponseIsForOne,
    /// It is so because that request carried credentials.
    OtherCredentials,
    /// It is a variant for other request headers.
    OtherVariant,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("flights", &self.flights())
            .field("cache_bytes", &self.cache_bytes())
            .finish_non_exhaustive()
    }
}
