//! The figures of a demo: what `report.json` holds, and what the table and the report show.
//!
//! Fields are added, never renamed: other programs read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crowd::tally::{Second, Tally};

/// Everything that a demo found out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Seed of the crowd and of the site.
    pub seed: u64,
    /// Length of the crowd in seconds.
    pub crowd_seconds: f64,
    /// When the demo ended, Unix seconds.
    pub made_at: u64,
    /// Whether every criterion of survival was met.
    pub survived: bool,
    /// R_max with the community, against what the link carries alone.
    pub requests_gain: f64,
    /// D_max with the community, against what the link carries alone.
    pub data_gain: f64,
    /// Answered requests with the community, against those of the same site alone in this crowd.
    pub requests_gain_measured: f64,
    /// Delivered bytes with the community, against those of the same site alone in this crowd.
    pub data_gain_measured: f64,
    /// Redirects answered in the bound phase, against B/(n+358).
    pub redirect_bound_ratio: f64,
    /// From the onset to the first whole redirect.
    pub first_redirect_seconds: Option<f64>,
    /// From d_out < T_low to state normal without any rescue server.
    pub back_to_normal_seconds: Option<f64>,
    /// The most that left the origin server within any second, against B.
    pub origin_rate_peak_ratio: f64,
    /// 99th percentile of latency with the community, failed requests counted as 7 s.
    pub p99_with: f64,
    /// The same without.
    pub p99_without: f64,
    /// R_max: offered requests a second in the busiest 10 s with at most 10 % failed.
    pub requests_max: f64,
    /// D_max: body bytes a second delivered in the best such 10 s.
    pub bytes_max: f64,
    /// What the members offered before the crowd, against what the crowd was given, in bytes.
    pub offered_capacity_ratio: f64,
    /// The most by which a visit began too late: whether the crowd's own machinery kept up.
    pub generator_lag_seconds: f64,
    /// What must hold for survival, and the other goals.
    pub criteria: Vec<Criterion>,
    /// What the link carries alone, by arithmetic.
    pub alone: Arithmetic,
    /// The bound phase.
    pub bound: Bound,
    /// The run with the community.
    pub with: Run,
    /// The run without.
    pub without: Run,
    /// What became of the members' own readers, who came all the while.
    pub members_own: Tally,
    /// Rescue servers in the order in which they were drafted.
    pub rescue_servers: Vec<Drafted>,
    /// What is drawn.
    pub series: Series,
}

/// Something that was promised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// What it is about.
    pub name: String,
    /// What was promised.
    pub promised: String,
    /// What came.
    pub measured: String,
    /// Whether it was kept.
    pub met: bool,
    /// Whether the site's survival depends on it.
    pub weight: Weight,
}

/// What a criterion decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The site has not survived when it is missed.
    Survival,
    /// A goal beside it.
    Goal,
}

/// What the link carries without rescue: B / (F + h + o).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arithmetic {
    /// B, bytes a second.
    pub link: f64,
    /// F, mean body of the requests that the crowd offered.
    pub body: f64,
    /// h, mean head of a response.
    pub head: f64,
    /// o, mean overhead: 358 bytes for each connection, less for later responses on it.
    pub overhead: f64,
    /// Requests a second.
    pub requests: f64,
    /// Body bytes a second.
    pub bytes: f64,
}

/// The phase in which nothing but redirects was asked of the origin server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Its length in seconds; 0 when it did not take place.
    pub seconds: f64,
    /// n, mean bytes of a redirect on the wire.
    pub redirect_bytes: f64,
    /// B/(n+358), redirects a second.
    pub limit: f64,
    /// Requests a second that were sent.
    pub offered: f64,
    /// Redirects a second that were whole within the phase and within 7 s.
    pub redirected: f64,
    /// Requests whose object arrived whole and right in the end.
    pub followed: u64,
    /// Requests in all.
    pub requests: u64,
}

/// One of the two runs, over the time of the crowd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Requests and latency.
    #[serde(flatten)]
    pub tally: Tally,
    /// Share of the offered requests that failed or took over 7 s.
    pub failed_share: f64,
    /// Answered requests a second.
    pub answered_rate: f64,
    /// Body bytes a second that visitors got, from whomever.
    pub delivered_rate: f64,
    /// Bytes a second that left over the origin's own link, with overhead.
    pub origin_rate: f64,
    /// The most within any second by the server's own count, against B.
    pub peak_ratio: f64,
    /// The most within any second by the visitors' count, against B.
    pub peak_ratio_seen: f64,
    /// The most within any 20 seconds by the visitors' count, against B.
    pub peak_ratio_seen_long: f64,
    /// R_max in this run.
    pub requests_max: f64,
    /// D_max in this run.
    pub bytes_max: f64,
}

/// A rescue server that was drafted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drafted {
    /// Its name.
    pub name: String,
    /// Its link in bytes a second.
    pub link: u64,
    /// Seconds from the onset until the origin server had it.
    pub seconds: f64,
    /// Responses that it gave for the origin server.
    pub requests: u64,
}

/// What is drawn, second by second from the start of the crowd's schedule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Second of the onset.
    pub onset: f64,
    /// Second at which the last visitor set off.
    pub crowd_end: f64,
    /// Begin and end of the bound phase.
    pub bound: Option<(f64, f64)>,
    /// Second at which everything was normal.
    pub normal: Option<f64>,
    /// The crowd with the community.
    pub with: Vec<Second>,
    /// The crowd without.
    pub without: Vec<Second>,
    /// Redirects that were whole, each second.
    pub redirects: Vec<u64>,
    /// Bytes that left the origin server with the community, each second.
    pub origin_carried: Vec<f64>,
    /// The same without.
    pub alone_carried: Vec<f64>,
    /// Bytes that visitors received from each server, each second.
    pub delivered: BTreeMap<String, Vec<u64>>,
}
