//! One stretch of a log under load, in a world of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{GateLimits, Parameters};
use levee_vocab::{ServerState, Timestamp};

use super::outcome::{Outcome, Stretch};
use super::{END_AFTER_MAX, ReplaySettings, Visit};
use crate::crowd::{Arrivals, CrowdSettings, Wants};
use crate::request::CrowdId;
use crate::site::{SiteSettings, default_parameters};
use crate::trace::Detail;
use crate::visitors::Logged;
use crate::{SiteId, World};

/// Whether an episode goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    GoesOn,
    Over,
}

/// See the file header.
#[derive(Debug)]
pub(super) struct Episode {
    world: World,
    crowd: CrowdId,
    /// The second of the log in which it began.
    began: u64,
    /// Seconds since then that are over.
    seconds: u64,
    /// How many of the last seconds asked for little.
    low_seconds: u64,
    low: u64,
    low_needed: u64,
    files: BTreeMap<u64, usize>,
    before: Counts,
    /// What ended in the minutes that are not judged yet.
    stretch: Stretch,
    /// The first of them, counted from the beginning.
    stretch_began: u64,
    redirects: u64,
}

/// The crowd's tally at the last full minute.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    answered: u64,
    refused: u64,
    failed: u64,
}

const ORIGIN: SiteId = SiteId(0);

/// The site and its neighbours know each other for this long when the first visit comes.
const LEAD: Duration = Duration::from_secs(30);

/// Bytes of a redirect of ours with a path of usual length.
const REDIRECT_BYTES: u64 = 240;

const MINUTE: u64 = 60;

/// Minutes with fewer requests are judged together with the next: one of two is no half.
const JUDGED_REQUESTS: u64 = 20;

/// Seconds after which an episode ends at the first moment in which nobody waits: a world grows
/// with all that happened in it, and a log may be overloaded for days.
const LONG: u64 = 1800;

impl Episode {
    pub(super) fn begin(settings: &ReplaySettings, second: u64) -> Self {
        let mut world = World::new(settings.seed);
        world.trace.set_detail(Detail::Nothing);
        let origin = as_simulated(&settings.origin);
        let usable = origin.usable_rate().as_bytes() as f64;
        let low = (usable * origin.thresholds.low) as u64;
        let low_time = origin.interval * origin.low_intervals;
        world.add_site(site("origin", origin, settings.limits.clone()));
        for (number, &link) in settings.neighbours.iter().enumerate() {
            let label = format!("neighbour{}", number + 1);
            let parameters = default_parameters(world.next_site(), &label, link);
            world.add_site(site(&label, parameters, GateLimits::default()));
        }
        world.run_until(Timestamp::ZERO + LEAD);
        let crowd = world.add_crowd(CrowdSettings {
            name: "log".to_owned(),
            site: ORIGIN,
            // The log says when.
            arrivals: Arrivals::Constant { rate: 0.0 },
            wants: Wants::FilesInTurn,
            until: None,
        });
        Self {
            world,
            crowd,
            began: second,
            seconds: 0,
            low_seconds: 0,
            low,
            // A rescue needs some more seconds to end.
            low_needed: low_time.as_secs() + 30,
            files: BTreeMap::new(),
            before: Counts::default(),
            stretch: Stretch {
                from: Timestamp::from_seconds(second),
                answered: 0,
                lost: 0,
            },
            stretch_began: 0,
            redirects: 0,
        }
    }

    pub(super) fn visit(&mut self, visit: &Visit) {
        let since = visit.at.since(Timestamp::from_seconds(self.began));
        self.world.run_until(Timestamp::ZERO + LEAD + since);
        let next = self.files.len();
        let file = *self.files.entry(visit.resource).or_insert(next);
        let logged = Logged {
            file,
            bytes: visit.bytes,
            redirectability: visit.redirectability,
        };
        self.world.visit_as_logged(self.crowd, logged);
    }

    /// The second under way, in which so many bytes were asked for, is over.
    pub(super) fn end_second(&mut self, outcome: &mut Outcome, offered: u64) -> Course {
        self.seconds += 1;
        let now = Timestamp::ZERO + LEAD + Duration::from_secs(self.seconds);
        self.world.run_until(now);
        self.note_redirects(outcome);
        self.low_seconds = if offered > self.low {
            0
        } else {
            self.low_seconds + 1
        };
        let course = self.course();
        if course == Course::Over || self.seconds.is_multiple_of(MINUTE) {
            self.end_minute(outcome);
        }
        if course == Course::Over {
            let neighbours = &self.world.sites[1..];
            for (carried, neighbour) in outcome.carried.iter_mut().zip(neighbours) {
                *carried += neighbour.totals.rescue_requests;
            }
        }
        course
    }

    fn course(&self) -> Course {
        let origin = self.world.sites[ORIGIN.0].running();
        let is_normal = origin.is_none_or(|running| match running.brain.plan().state {
            ServerState::Normal => true,
            ServerState::Sos | ServerState::Rescue => false,
        });
        let is_done = is_normal && self.world.requests_open() == 0;
        let is_late = self.low_seconds >= END_AFTER_MAX.as_secs();
        let low_needed = if self.seconds < LONG {
            self.low_needed
        } else {
            1
        };
        if is_late || (is_done && self.low_seconds >= low_needed) {
            Course::Over
        } else {
            Course::GoesOn
        }
    }

    fn note_redirects(&mut self, outcome: &mut Outcome) {
        let redirects = self.world.sites[ORIGIN.0].totals.redirects;
        let fresh = redirects - self.redirects;
        if fresh > 0 {
            let second = Timestamp::from_seconds(self.began + self.seconds - 1);
            outcome.redirected_from = outcome.redirected_from.or(Some(second));
            outcome.redirected_until = Some(second);
            outcome.redirects += fresh;
            self.redirects = redirects;
        }
    }

    fn end_minute(&mut self, outcome: &mut Outcome) {
        let tally = &self.world.crowds[self.crowd.0].tally;
        let now = Counts {
            answered: tally.answered,
            refused: tally.refused,
            failed: tally.failed,
        };
        let before = std::mem::replace(&mut self.before, now);
        outcome.answered += now.answered - before.answered;
        outcome.refused += now.refused - before.refused;
        outcome.failed += now.failed - before.failed;
        let stretch = &mut self.stretch;
        stretch.answered += now.answered - before.answered;
        stretch.lost += now.refused - before.refused + now.failed - before.failed;
        if stretch.answered + stretch.lost >= JUDGED_REQUESTS {
            let minutes = self.seconds.div_ceil(MINUTE) - self.stretch_began;
            outcome.judge(*stretch, minutes);
            self.begin_stretch();
        }
    }

    fn begin_stretch(&mut self) {
        self.stretch_began = self.seconds / MINUTE;
        self.stretch = Stretch {
            from: Timestamp::from_seconds(self.began + self.seconds),
            answered: 0,
            lost: 0,
        };
    }
}

/// The parameters of a real site with the names and addresses of a simulated one.
fn as_simulated(real: &Parameters) -> Parameters {
    let simulated = default_parameters(ORIGIN, "origin", real.link);
    let mut parameters = real.clone();
    parameters.site = simulated.site;
    parameters.address = simulated.address;
    parameters.rescue_port = simulated.rescue_port;
    parameters.alias_domain = simulated.alias_domain;
    parameters.alias_host = simulated.alias_host;
    // A log does not say who came by HTTPS: rescue servers are taken to answer as visitors come.
    parameters.visitors = simulated.visitors;
    parameters
}

fn site(label: &str, parameters: Parameters, limits: GateLimits) -> SiteSettings {
    SiteSettings {
        label: label.to_owned(),
        files: Vec::new(),
        redirect_bytes: REDIRECT_BYTES,
        limits,
        parameters,
    }
}
