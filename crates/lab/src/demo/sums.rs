//! From what was seen to the figures: the only place where the report's numbers are made.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::figures::{Arithmetic, Bound, Drafted, Figures, Run, Series};
use super::neighbourhood::LINK;
use super::verdict;
use super::watch::{Look, Recovery};
use crate::crowd::PATIENCE;
use crate::crowd::ledger::{Asked, Record};
use crate::crowd::meter::{self, Bin};
use crate::crowd::schedule::Profile;
use crate::crowd::tally::{self, Tally};
use crate::site::Site;

/// Bytes that a connection costs beside its response (dotslash 4.3).
pub const CONNECTION_OVERHEAD: u64 = 358;
/// Bytes that a later response on a kept connection costs: two segments of 70 bytes.
const LATER_OVERHEAD: f64 = 140.0;

/// All that was seen of a demo. Times count from the start of the crowd's schedule.
#[derive(Clone, Debug)]
pub struct Played {
    /// Seed of everything.
    pub seed: u64,
    /// Shape of the crowd.
    pub profile: Profile,
    /// The site with the community.
    pub with: Side,
    /// The site alone.
    pub without: Side,
    /// The bound phase, if it took place.
    pub bound: Option<BoundPlayed>,
    /// Looks at each member.
    pub members: BTreeMap<String, MemberSeen>,
    /// Bytes a second that the members offered before the crowd.
    pub capacity_offered: u64,
    /// Name of the site behind each port.
    pub names: BTreeMap<u16, String>,
    /// The site's objects.
    pub site: Site,
}

/// One of the two runs.
#[derive(Clone, Debug)]
pub struct Side {
    /// Every request of the crowd.
    pub records: Vec<Record>,
    /// Bytes by port.
    pub traffic: BTreeMap<u16, Vec<Bin>>,
    /// Looks at the server.
    pub looks: Vec<Look>,
    /// Port of the server.
    pub port: u16,
    /// Lag of the crowd's own machinery.
    pub lag: Duration,
}

/// The bound phase.
#[derive(Clone, Debug)]
pub struct BoundPlayed {
    /// When it began.
    pub start: Duration,
    /// Its length.
    pub length: Duration,
    /// Requests a second.
    pub rate: f64,
    /// Its requests, timed from its own start.
    pub records: Vec<Record>,
}

/// What was seen of a member.
#[derive(Clone, Debug)]
pub struct MemberSeen {
    /// Its link.
    pub link: u64,
    /// Looks at it.
    pub looks: Vec<Look>,
    /// Requests of its own readers.
    pub own: Vec<Record>,
}

impl Played {
    /// When the visitors came.
    fn crowd(&self) -> Range<Duration> {
        self.profile.calm..self.profile.calm + self.profile.crowd
    }

    /// Draws all figures.
    pub fn figures(&self) -> Figures {
        let (with, without) = (self.run(&self.with), self.run(&self.without));
        let alone = self.arithmetic();
        let bound = self.bound.as_ref().map(bound).unwrap_or_default();
        let onset = self.profile.calm;
        let redirects = self
            .with
            .records
            .iter()
            .filter_map(|record| record.redirected);
        let first = redirects.map(|(at, _)| at).filter(|&at| at >= onset).min();
        let recovery = Recovery::of(&self.with.looks, self.crowd().end);
        let drafted = self.drafted();
        let crowd_seconds = self.profile.crowd.as_secs_f64();
        let asked_for = alone.body * with.tally.offered as f64 / crowd_seconds;
        let mut figures = Figures {
            seed: self.seed,
            crowd_seconds,
            made_at: unix_seconds(),
            requests_gain: with.requests_max / alone.requests,
            data_gain: with.bytes_max / alone.bytes,
            requests_gain_measured: with.answered_rate / without.answered_rate.max(0.01),
            data_gain_measured: with.delivered_rate / without.delivered_rate.max(1.0),
            redirect_bound_ratio: bound.redirected / bound.limit.max(1.0),
            first_redirect_seconds: first.map(|at| (at - onset).as_secs_f64()),
            back_to_normal_seconds: recovery.seconds(),
            origin_rate_peak_ratio: with.peak_ratio,
            p99_with: with.tally.p99,
            p99_without: without.tally.p99,
            requests_max: with.requests_max,
            bytes_max: with.bytes_max,
            offered_capacity_ratio: self.capacity_offered as f64 / asked_for.max(1.0),
            generator_lag_seconds: self.with.lag.max(self.without.lag).as_secs_f64(),
            alone,
            bound,
            with,
            without,
            members_own: self.members_own(),
            rescue_servers: drafted,
            series: self.series(recovery.normal),
            ..Figures::default()
        };
        figures.criteria = verdict::criteria(&figures);
        figures.survived = verdict::survived(&figures.criteria);
        figures
    }

    fn run(&self, side: &Side) -> Run {
        let crowd = self.crowd();
        let seconds = self.profile.crowd.as_secs_f64();
        let tally = Tally::of(&side.records, &crowd);
        let most = tally::most(&side.records, &crowd);
        let bins = side.traffic.get(&side.port).map_or(&[][..], Vec::as_slice);
        let seen = |length| {
            let peak = meter::peak_rate(bins, Duration::from_secs(length), CONNECTION_OVERHEAD);
            peak / LINK as f64
        };
        let carried = |at| carried_at(&side.looks, at);
        let peak = side.looks.last().map_or(0, |look| look.seen.link.peak);
        Run {
            failed_share: tally.failed_share(),
            answered_rate: tally.answered as f64 / seconds,
            delivered_rate: tally.bytes as f64 / seconds,
            origin_rate: (carried(crowd.end) - carried(crowd.start)) / seconds,
            peak_ratio: peak as f64 / LINK as f64,
            peak_ratio_seen: seen(1),
            peak_ratio_seen_long: seen(20),
            requests_max: most.requests,
            bytes_max: most.bytes,
            tally,
        }
    }

    /// What the link carries alone of the very requests that the crowd offered.
    fn arithmetic(&self) -> Arithmetic {
        let crowd = self.crowd();
        let offered = self
            .with
            .records
            .iter()
            .filter(|record| crowd.contains(&record.arrived));
        let (mut count, mut body, mut overhead) = (0.0, 0.0, 0.0);
        for record in offered {
            count += 1.0;
            body += self.mean_body(record);
            // A reader's images come over the page's connection and one more.
            overhead += match record.kind {
                Asked::Image => LATER_OVERHEAD,
                Asked::PostHead | Asked::Post | Asked::Preview | Asked::Page | Asked::Single => {
                    CONNECTION_OVERHEAD as f64
                }
            };
        }
        let whole: f64 = f64::max(count, 1.0);
        let (body, overhead) = (body / whole, overhead / whole);
        // Of the answers that it gave alone: rescue servers pass on signatures beside theirs.
        let head = mean_head(&self.without.records);
        let requests = LINK as f64 / (body + head + overhead);
        Arithmetic {
            link: LINK as f64,
            body,
            head,
            overhead,
            requests,
            bytes: requests * body,
        }
    }

    /// The body that a request would have brought. For what a reader asks that failed it is not
    /// known which one it was; the mean of its kind stands for it.
    fn mean_body(&self, record: &Record) -> f64 {
        let bytes = |path: &str| self.site.body(path).len() as f64;
        match (record.kind, record.result) {
            (Asked::PostHead, _) => 0.0,
            (_, Ok(answer)) => answer.bytes as f64,
            (Asked::Post, Err(_)) => bytes(&self.site.post().path),
            (Asked::Preview, Err(_)) => bytes(&self.site.preview),
            (Asked::Page | Asked::Image | Asked::Single, Err(_)) => {
                let all = self.site.objects.len() as f64;
                self.site.total_bytes() as f64 / all
            }
        }
    }

    fn members_own(&self) -> Tally {
        let own = self.members.values().flat_map(|member| &member.own);
        let own: Vec<Record> = own.copied().collect();
        Tally::of(&own, &self.crowd())
    }

    /// Redirects that were whole, by second, of the crowd and of the bound phase.
    fn redirects(&self) -> Vec<u64> {
        let redirected = |record: &Record| record.redirected.map(|(at, _)| at);
        let crowd = self.with.records.iter().filter_map(redirected);
        let bound = self.bound.iter().flat_map(|bound| {
            let at = bound.records.iter().filter_map(redirected);
            at.map(|at| bound.start + at)
        });
        let mut seconds = Vec::new();
        for at in crowd.chain(bound) {
            let second = at.as_secs() as usize;
            if seconds.len() <= second {
                seconds.resize(second + 1, 0);
            }
            seconds[second] += 1;
        }
        seconds
    }

    /// In the order in which the origin server had them.
    fn drafted(&self) -> Vec<Drafted> {
        let mut known = BTreeSet::new();
        let mut drafted = Vec::new();
        for look in &self.with.looks {
            for peer in &look.seen.rescue_servers {
                let name = peer.site.split('.').next().unwrap_or_default();
                let Some(member) = self.members.get(name) else {
                    continue;
                };
                if known.insert(name.to_owned()) {
                    let last = member.looks.last();
                    drafted.push(Drafted {
                        name: name.to_owned(),
                        link: member.link,
                        seconds: look.at.as_secs_f64() - self.profile.calm.as_secs_f64(),
                        requests: last.map_or(0, |look| look.seen.lifetime.rescue_requests),
                    });
                }
            }
        }
        drafted
    }

    fn series(&self, normal: Option<Duration>) -> Series {
        let delivered = self.with.traffic.iter().filter_map(|(port, bins)| {
            let name = self.names.get(port)?.clone();
            Some((name, meter::by_second(bins)))
        });
        Series {
            onset: self.profile.calm.as_secs_f64(),
            crowd_end: self.crowd().end.as_secs_f64(),
            bound: self.bound.as_ref().map(|bound| {
                let start = bound.start.as_secs_f64();
                (start, start + bound.length.as_secs_f64())
            }),
            normal: normal.map(|at| at.as_secs_f64()),
            with: tally::seconds(&self.with.records),
            without: tally::seconds(&self.without.records),
            redirects: self.redirects(),
            origin_carried: carried_by_second(&self.with.looks),
            alone_carried: carried_by_second(&self.without.looks),
            delivered: delivered.collect(),
        }
    }
}

fn bound(played: &BoundPlayed) -> Bound {
    let seconds = played.length.as_secs_f64();
    let whole: Vec<u64> = played
        .records
        .iter()
        .filter_map(|record| {
            let (at, bytes) = record.redirected?;
            // Only what was whole before the phase ended counts: what was still queued then would
            // have been answered at the expense of nobody.
            (at <= played.length && at - record.asked <= PATIENCE).then_some(bytes)
        })
        .collect();
    let redirect_bytes = whole.iter().sum::<u64>() as f64 / (whole.len() as f64).max(1.0);
    Bound {
        seconds,
        redirect_bytes,
        limit: LINK as f64 / (redirect_bytes + CONNECTION_OVERHEAD as f64),
        offered: played.rate,
        redirected: whole.len() as f64 / seconds,
        followed: played
            .records
            .iter()
            .filter(|record| record.result.is_ok())
            .count() as u64,
        requests: played.records.len() as u64,
    }
}

fn mean_head(records: &[Record]) -> f64 {
    let heads = records
        .iter()
        .filter_map(|record| record.result.ok())
        .map(|answer| answer.wire_bytes.saturating_sub(answer.bytes) as f64);
    let count = heads.clone().count() as f64;
    heads.sum::<f64>() / count.max(1.0)
}

/// Bytes that a server's link had carried at a time, between two looks in proportion.
fn carried_at(looks: &[Look], at: Duration) -> f64 {
    let after = looks.partition_point(|look| look.at < at);
    let carried = |look: &Look| look.seen.link.carried as f64;
    match (
        after.checked_sub(1).map(|index| &looks[index]),
        looks.get(after),
    ) {
        (Some(before), Some(next)) => {
            let whole = (next.at - before.at).as_secs_f64().max(1e-9);
            let part = (at - before.at).as_secs_f64() / whole;
            carried(before) + part * (carried(next) - carried(before))
        }
        (Some(only), None) | (None, Some(only)) => carried(only),
        (None, None) => 0.0,
    }
}

fn carried_by_second(looks: &[Look]) -> Vec<f64> {
    let end = looks.last().map_or(0, |look| look.at.as_secs());
    let at = |second| carried_at(looks, Duration::from_secs(second));
    (0..end).map(|second| at(second + 1) - at(second)).collect()
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
