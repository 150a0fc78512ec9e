//! The immutable snapshot that every core reads: where each name leads, and how much to redirect.
//!
//! The Brain makes a new one whenever its mind changes, the shell swaps it in whole. Nothing in it
//! changes while it is read, so a request needs no lock.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_vocab::{
    ByteRate, FetchKey, HostName, LinkId, Misses, ServerState, Timestamp, WebAddress,
};

use crate::copies::HotRoute;
use crate::drill::DrillPlan;
use crate::help::HelpPlan;
use crate::homes::Homes;
use crate::law::Law;
use crate::parameters::Redirects;

/// What the cores need to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutePlan {
    /// Counts up with each plan.
    pub version: u64,
    /// State of the server.
    pub state: ServerState,
    /// Number of the control interval; budgets of a Gate start anew when it changes.
    pub interval: u64,
    /// Length of a control interval.
    pub interval_length: Duration,
    /// Where names lead.
    pub hosts: HostTable,
    /// Keys with which our rescue servers fetch.
    pub fetch_keys: Vec<(LinkId, FetchKey)>,
    /// How to redirect; none while nobody rescues us.
    pub redirect: Option<RedirectPlan>,
    /// How to redirect the visitors of a drill; none while there is none of ours.
    pub drill: Option<DrillPlan>,
    /// What crawlers get; none while nobody has measured what there is.
    pub crawl: Option<CrawlPlan>,
    /// What origins get that we rescue; none while nothing limits it but the link.
    pub help: Option<HelpPlan>,
}

/// What crawlers get in this interval, in accounted bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrawlPlan {
    /// For what they ask for.
    pub pages: ByteRate,
    /// For telling them to come back later; beyond it their connections are closed.
    pub refusals: ByteRate,
}

/// How an origin server in SOS redirects in this interval (R5, R6).
#[derive(Clone, Debug, PartialEq)]
pub struct RedirectPlan {
    /// Whether anybody is.
    pub redirects: Redirects,
    /// The control law: whom a request may be redirected to.
    pub law: Law,
    /// What may be served directly before resources that are to be redirected are, in accounted
    /// bytes a second: as `direct`, but for these alone.
    pub early: ByteRate,
    /// Hot resources, and who holds them. The same list until it changes.
    pub hot: Arc<[HotRoute]>,
    /// T_redi * D_out: what may be served directly, in accounted bytes a second.
    pub direct: ByteRate,
    /// What may go out in all while anything is served directly: midway between T_high * D_out and
    /// D_out. When a crowd grows within an interval, direct responses yield to redirects at once,
    /// before the next interval lowers `direct`; below it, chance alone is no growth.
    pub direct_ceiling: ByteRate,
    /// D_out: what may go out in all, in accounted bytes a second. Beyond it requests are refused.
    pub usable: ByteRate,
    /// U, by which the true bytes of a redirect and its connection are multiplied for accounting.
    pub usable_share: f64,
    /// Overhead of a connection in bytes, where the kernel does not tell.
    pub connection_overhead: u64,
    /// Files from this size go by consistent hashing bounded by load.
    pub large_file: u64,
    /// The rescue servers.
    pub targets: Vec<Target>,
}

/// One rescue server, as a place to redirect to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its link; counters go by it.
    pub link: LinkId,
    /// Slot of the counters of this link, 0 to 255.
    pub slot: u8,
    /// `www-vh1.rescue.example:8080`, which goes into Location.
    pub alias: WebAddress,
    /// The port at which the alias answers by HTTPS; none where visitors by HTTPS cannot be sent
    /// there.
    pub tls: Option<u16>,
    /// Where it answers web requests: what stands in our name for it.
    pub address: IpAddr,
    /// D_redi, the most to redirect to it, in file bytes a second; also its weight.
    pub rate: ByteRate,
}

/// One table for every name that a visitor may ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostTable {
    /// Aliases and origins' names, lower case without port, to an index of `origins`.
    /// The site's own names are not in it: the shell knows them.
    pub names: BTreeMap<HostName, usize>,
    /// The origins that are, or were, rescued.
    pub origins: Vec<Arc<OriginRoute>>,
}

/// What a host name means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Destination<'a> {
    /// Not in the table: our own site, or nobody's.
    NotOurs,
    /// An origin that we rescue: serve from the cache, or fetch.
    Rescued(&'a Arc<OriginRoute>),
    /// An origin that we rescued before a restart, and that may not know of it yet: redirect back
    /// what may be repeated, refuse the rest.
    Restored(&'a Arc<OriginRoute>, Timestamp),
    /// An origin that we no longer rescue: redirect back to it, unless its own name led here.
    Expired(&'a Arc<OriginRoute>),
}

/// One origin that is, or was, rescued.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginRoute {
    /// Slot of its counters, 0 to 255.
    pub slot: u8,
    /// Its link.
    pub link: LinkId,
    /// Its own name and port: Host of a fetch, and where an expired alias redirects to.
    pub origin: WebAddress,
    /// Where to fetch from.
    pub address: SocketAddr,
    /// The port at which it answers by HTTPS, where visitors by HTTPS are sent back to.
    pub tls: Option<u16>,
    /// The alias that we gave out for it.
    pub alias: HostName,
    /// Shown with each fetch.
    pub key: Option<FetchKey>,
    /// Lifetime of objects that state none.
    pub ttl: Duration,
    /// Who may be asked for an object before the origin; none where nobody else helps it.
    pub homes: Option<Arc<Homes>>,
    /// What we do with a request for something that we do not hold.
    pub misses: Misses,
    /// Live, ending or over.
    pub phase: OriginPhase,
}

/// How far a rescue that we give has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginPhase {
    /// We rescue it.
    Live,
    /// It has died, and permits us to show what we have until then. Nothing is fetched for it, and
    /// nobody is sent back to it.
    Orphaned {
        /// When the permit ends.
        until: Timestamp,
    },
    /// The rescue is over, but visitors with a fresh redirect may still arrive until then.
    Ending {
        /// When the alias begins to redirect back.
        until: Timestamp,
    },
    /// We were restarted in mid-rescue: the origin may not have noticed, and still redirect here.
    /// The key is gone, so nothing can be fetched, and nothing signed for the way back.
    Restored {
        /// When the alias begins to redirect back.
        until: Timestamp,
    },
    /// The alias redirects back to the origin.
    Expired {
        /// When the alias is forgotten; it is never given to anybody else.
        until: Timestamp,
    },
}

impl HostTable {
    /// Where `host` leads. `host` is lower case and without a port.
    pub fn destination(&self, host: &str) -> Destination<'_> {
        let Some(origin) = self
            .names
            .get(host)
            .and_then(|&index| self.origins.get(index))
        else {
            return Destination::NotOurs;
        };
        match origin.phase {
            OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => {
                Destination::Rescued(origin)
            }
            OriginPhase::Restored { until } => Destination::Restored(origin, until),
            OriginPhase::Expired { .. } => Destination::Expired(origin),
        }
    }
}
