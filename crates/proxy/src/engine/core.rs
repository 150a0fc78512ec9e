//! What a core has beside its connections.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::SystemTime;

use foldhash::fast::SeedableRandomState;
use levee_control::{ArrivalTable, Gate, RoutePlan};
use levee_observe::AccessRecord;
use levee_vocab::Timestamp;

use super::PurgeInlet;
use super::drill::Drill;
use super::handshake::HandshakeLine;
use super::hot_index::HotIndex;
use crate::back_keys::BackKeys;
use crate::counters::CoreCounters;
use crate::crawlers::Crawlers;
use crate::date::DateLine;
use crate::fetch::Fetcher;
use crate::files::{Compressor, FileTable};
use crate::flight::Waker;
use crate::front::HandedOverLog;
use crate::http2::WakeList;
use crate::marks::{Marking, OwnKey};
use crate::missing::MissingCopies;
use crate::pacer::{Link, PacedQueue};
use crate::parked::ParkedQueue;
use crate::pool::Pool;
use crate::redirect::Redirects;
use crate::settings::{FrontSettings, HEAD_BYTES_MAX};
use crate::site::{Content, SiteTable};
use crate::tls::TlsOffer;

/// See the head of this file.
pub(crate) struct Core {
    pub settings: Arc<FrontSettings>,
    pub now: Timestamp,
    pub date: DateLine,
    pub gate: Gate,
    pub redirects: Redirects,
    /// The same for the visitors of a drill.
    pub drill: Drill,
    pub back_keys: BackKeys,
    pub marking: Marking,
    pub sites: Arc<SiteTable>,
    /// For each site with a folder, what is known of its files.
    pub files: Vec<Option<FileTable>>,
    pub compressor: Compressor,
    pub fetcher: Option<Fetcher>,
    pub waker: Arc<dyn Waker>,
    /// What visitors who come by HTTPS are offered.
    pub tls: Option<TlsOffer>,
    pub handshakes: HandshakeLine,
    pub counters: Arc<CoreCounters>,
    /// What this core was asked for in the interval under way.
    pub arrivals: ArrivalTable,
    /// What visitors brought back in it.
    pub missing: MissingCopies,
    /// The same on every core, another in every process.
    pub hasher: SeedableRandomState,
    /// Who holds a copy of what is hot.
    pub hot: HotIndex,
    pub crawlers: Crawlers,
    pub link: Option<Arc<Link>>,
    pub paced: PacedQueue,
    /// When the link may have room again.
    pub next_pump: Option<Timestamp>,
    pub parked: ParkedQueue,
    /// When to ask for parked requests again.
    pub next_round: Option<Timestamp>,
    pub pool: Pool,
    pub buffer: Vec<u8>,
    /// Connections that can go on.
    pub ready: Vec<u64>,
    /// Streams of HTTP/2, and whole sessions, that the library has woken.
    pub woken: WakeList,
    pub woken_sessions: WakeList,
    /// Where the frames of a turn are gathered.
    pub frames: Vec<u8>,
    pub log: Option<SyncSender<AccessRecord>>,
    pub handed_over: Option<HandedOverLog>,
    pub purge: Option<PurgeInlet>,
    pub settled: Settled,
    /// What an answer of an upstream usually weighs, for those that nobody has seen yet.
    pub usual_bytes: f64,
    pub request_number: u64,
}

/// Whether connections are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// As visitors wish.
    Keep,
    /// There are too many, or we are going down: each is closed after its response.
    Close,
}

/// What a core is made of.
pub(crate) struct CoreParts {
    pub number: usize,
    pub settings: Arc<FrontSettings>,
    pub plan: Arc<RoutePlan>,
    pub share: f64,
    pub sites: Arc<SiteTable>,
    pub compressor: Compressor,
    pub fetcher: Option<Fetcher>,
    pub waker: Arc<dyn Waker>,
    pub tls: Option<TlsOffer>,
    pub counters: Arc<CoreCounters>,
    pub hasher: SeedableRandomState,
    pub own_key: OwnKey,
    pub link: Option<Arc<Link>>,
    pub log: Option<SyncSender<AccessRecord>>,
    pub handed_over: Option<HandedOverLog>,
    pub purge: Option<PurgeInlet>,
}

/// Resources that a core can tell apart in one interval: what gets one in so many of its requests
/// is sure to be told. Some 75 kB.
const ARRIVAL_PLACES: usize = 256;

/// Room for a whole head and a good piece of a body.
const BUFFER_BYTES: usize = 64 * 1024;
/// A head that fills the buffer could never be read further, nor refused.
const _: () = assert!(HEAD_BYTES_MAX < BUFFER_BYTES);

impl Core {
    pub fn new(parts: CoreParts, now: Timestamp, wall: SystemTime) -> Self {
        let drill = Drill::new(parts.settings.gate.clone());
        let mut core = Self {
            gate: Gate::new(parts.settings.gate.clone()),
            parked: ParkedQueue::new(parts.settings.limits.parked),
            settings: parts.settings,
            now,
            date: DateLine::new(wall),
            redirects: Redirects::default(),
            drill,
            back_keys: BackKeys::default(),
            marking: Marking::new(parts.own_key),
            sites: Arc::clone(&parts.sites),
            files: Vec::new(),
            compressor: parts.compressor,
            fetcher: parts.fetcher,
            waker: parts.waker,
            tls: parts.tls,
            handshakes: HandshakeLine::default(),
            counters: parts.counters,
            arrivals: ArrivalTable::new(ARRIVAL_PLACES),
            missing: MissingCopies::default(),
            hasher: parts.hasher,
            hot: HotIndex::default(),
            crawlers: Crawlers::default(),
            link: parts.link,
            paced: PacedQueue::default(),
            next_pump: None,
            next_round: None,
            pool: Pool::default(),
            buffer: vec![0; BUFFER_BYTES],
            ready: Vec::new(),
            woken: WakeList::default(),
            woken_sessions: WakeList::default(),
            frames: Vec::new(),
            log: parts.log,
            handed_over: parts.handed_over,
            purge: parts.purge,
            settled: Settled::Keep,
            usual_bytes: 16_384.0,
            request_number: (parts.number as u64) << 48,
        };
        core.adopt_sites(parts.sites);
        core.adopt(parts.plan, parts.share);
        core
    }

    /// Looks at the clocks, once a turn.
    pub fn wake_up(&mut self, now: Timestamp, wall: SystemTime, settled: Settled) {
        self.now = now;
        self.date.update(wall);
        self.settled = settled;
    }

    /// Decides by `plan` from now on.
    pub fn adopt(&mut self, plan: Arc<RoutePlan>, share: f64) {
        self.redirects = Redirects::of(plan.redirect.as_ref());
        self.drill.adopt(self.now, &plan, share);
        self.hot.adopt(&self.hasher, &plan);
        self.back_keys.adopt(self.now, &plan);
        self.marking.adopt(&plan);
        self.gate.adopt(self.now, plan, share);
        if !self.parked.is_empty() {
            self.next_round = Some(self.now);
        }
    }

    /// Serves `sites` from now on; what runs goes on with what it has. What is known of files stays
    /// known where the folder is the same.
    pub fn adopt_sites(&mut self, sites: Arc<SiteTable>) {
        let mut known = std::mem::take(&mut self.files);
        let folders = sites.sites().iter();
        let count = folders.len().max(1) as u64;
        let memory = self.settings.limits.file_memory / count;
        self.files = folders
            .map(|site| {
                let Content::Folder(folder) = &site.content else {
                    return None;
                };
                let same = |table: &FileTable| Arc::ptr_eq(table.folder(), folder);
                let before = known.iter_mut().find(|one| one.as_ref().is_some_and(same));
                let table = before.and_then(Option::take);
                Some(table.unwrap_or_else(|| FileTable::new(Arc::clone(folder), memory)))
            })
            .collect();
        self.sites = sites;
    }

    /// After a panic: what may have been lost on the way is made anew.
    pub fn recover(&mut self) {
        self.counters.panics.add(1);
        self.buffer.resize(BUFFER_BYTES, 0);
    }
}
