//! Storms: many sites, many crowds, many faults, all drawn from one seed.
//!
//! Why: stories show what somebody has thought of. A storm finds what nobody has: the invariants of
//! `levee_sim::watch` are checked at every event, and when crowds have left and faults are healed,
//! every site must be back to normal within a bound that follows from its settings.
//!
//! How: a `Timetable` is drawn from the seed, a `World` plays it. When an invariant breaks, the
//! same seed is played again with its trace written down, and the report says how to repeat it.

mod timetable;

use std::fmt;
use std::time::Duration;

use levee_control::{GateLimits, Parameters};
use levee_vocab::{ByteRate, Random, ServerState, Timestamp};

use levee_sim::site::{SiteSettings, default_parameters};
use levee_sim::trace::Detail;
use levee_sim::watch::{Invariant, Violation};
use levee_sim::{SiteId, World};
use timetable::Timetable;

/// How many storms, from which seed, of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormSettings {
    /// Seed of the first run; each following run has the next one.
    pub seed: u64,
    /// How many runs.
    pub runs: u64,
    /// Sites in each run.
    pub sites: usize,
}

/// What happened in storms, all together: whether they were storms at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormFigures {
    /// Runs.
    pub runs: u64,
    /// Requests of visitors.
    pub requests: u64,
    /// Of these, answered in time.
    pub answered: u64,
    /// Redirects to rescue servers.
    pub redirects: u64,
    /// Rescues that began.
    pub rescues: u64,
    /// Faults that were made.
    pub faults: u64,
}

/// An invariant broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StormFailure {
    /// The seed of the run.
    pub seed: u64,
    /// Sites in it.
    pub sites: usize,
    /// What broke, when, where.
    pub violation: Violation,
    /// What happened before, newest last.
    pub trace: Vec<String>,
}

/// Lines of the trace that a report shows.
const TRACE_LINES: usize = 60;

/// When the last crowd has left and the last fault is healed.
const CALM: Timestamp = Timestamp::from_seconds(120);

/// Plays storms until one breaks an invariant.
pub fn run_storms(settings: StormSettings) -> Result<StormFigures, StormFailure> {
    let mut figures = StormFigures::default();
    for run in 0..settings.runs {
        figures.add(&run_storm(settings.seed.wrapping_add(run), settings.sites)?);
    }
    Ok(figures)
}

/// Plays the storm of one seed.
pub fn run_storm(seed: u64, sites: usize) -> Result<StormFigures, StormFailure> {
    let (world, figures) = play(seed, sites, Detail::Nothing);
    let Some(violation) = world.watch.violations.first().cloned() else {
        return Ok(figures);
    };
    let mut trace = trace_of(seed, sites);
    trace.drain(..trace.len().saturating_sub(TRACE_LINES));
    Err(StormFailure {
        seed,
        sites,
        violation,
        trace,
    })
}

/// The whole trace of the storm of one seed.
pub fn trace_of(seed: u64, sites: usize) -> Vec<String> {
    let (mut world, _) = play(seed, sites, Detail::Decisions);
    world.trace.take_lines()
}

/// `levee-lab storm`: plays storms and prints their figures, or the first failure.
pub fn storm_command(settings: StormSettings) -> Result<(), StormFailure> {
    let figures = run_storms(settings)?;
    println!("{figures}");
    Ok(())
}

/// When every rescue must be over, once the crowds have left and all faults are healed: rescue
/// servers whose origin forgot them wait for `idle_max`, origins for N_low calm intervals, and
/// messages about it and the last visitors take some intervals more.
pub fn time_to_normal(parameters: &Parameters) -> Duration {
    let intervals = parameters.low_intervals + 20;
    parameters.idle_max + parameters.interval * intervals
}

fn play(seed: u64, sites: usize, detail: Detail) -> (World, StormFigures) {
    let mut random = Random::from_seed(seed);
    let mut world = World::new(random.next_bits());
    world.trace.set_detail(detail);
    let mut slowest = Duration::ZERO;
    for number in 0..sites {
        let settings = draw_site(&mut random, SiteId(number));
        slowest = slowest.max(time_to_normal(&settings.parameters));
        world.add_site(settings);
    }
    let timetable = Timetable::draw(&mut random, sites, CALM);
    let mut figures = StormFigures {
        runs: 1,
        faults: timetable.faults,
        ..StormFigures::default()
    };
    for (at, act) in timetable.acts {
        run_watched(&mut world, at);
        if !world.watch.violations.is_empty() {
            break;
        }
        world.trace.note(at, &format!("{act:?}"));
        act.perform(&mut world);
    }
    run_watched(&mut world, CALM + slowest);
    if world.watch.violations.is_empty() {
        check_calm(&mut world);
    }
    figures.count(&world);
    (world, figures)
}

/// Moves the clock, and stops it soon after an invariant broke: the rest would hide the cause.
fn run_watched(world: &mut World, end: Timestamp) {
    while world.now < end && world.watch.violations.is_empty() {
        let step = world.now + Duration::from_millis(100);
        world.run_until(step.min(end));
    }
}

fn check_calm(world: &mut World) {
    let at = world.now;
    for number in 0..world.sites.len() {
        let site = &world.sites[number];
        let view = site.running().map(|running| running.brain.view());
        let state = view.map_or(ServerState::Normal, |view| view.state);
        if state != ServerState::Normal {
            let what = Invariant::NotNormal(state);
            world.watch.report(at, SiteId(number), what);
        }
    }
    let open = world.requests_open();
    if open > 0 {
        let what = Invariant::RequestsLeft(open);
        world.watch.report(at, SiteId(0), what);
    }
}

fn draw_site(random: &mut Random, id: SiteId) -> SiteSettings {
    let label = format!("s{}", id.0);
    // From a DSL line to a small data centre, evenly on a logarithmic scale.
    let link = 50.0 * 40_f64.powf(random.fraction());
    let mut parameters = default_parameters(id, &label, ByteRate::from_kilobytes(link as u64));
    parameters.low_intervals = random.within(3..7) as u32;
    parameters.idle_max = Duration::from_secs(random.within(10..20));
    parameters.object_ttl = Duration::from_secs(random.within(5..60));
    parameters.alias_keep = Duration::from_secs(random.within(60..600));
    if random.chance(0.1) {
        parameters.rescue_port = 0;
    }
    let files = (0..random.within(3..9)).map(|_| random.within(1000..60_000));
    SiteSettings {
        label,
        files: files.collect(),
        redirect_bytes: 227,
        limits: GateLimits::default(),
        parameters: parameters
            .check()
            .expect("storms draw settings within their ranges"),
    }
}

impl StormFigures {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.requests += other.requests;
        self.answered += other.answered;
        self.redirects += other.redirects;
        self.rescues += other.rescues;
        self.faults += other.faults;
    }

    fn count(&mut self, world: &World) {
        for crowd in &world.crowds {
            self.requests += crowd.tally.offered;
            self.answered += crowd.tally.answered;
        }
        self.redirects += world
            .sites
            .iter()
            .map(|site| site.totals.redirects)
            .sum::<u64>();
        self.rescues += world.watch.rescues_begun();
    }
}

impl fmt::Display for StormFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs, {} faults, {} rescues, {} requests, {} redirects, {} answered in time; \
             no invariant was broken",
            self.runs, self.faults, self.rescues, self.requests, self.redirects, self.answered
        )
    }
}

impl fmt::Display for StormFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { at, site, what } = &self.violation;
        for line in &self.trace {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "{at} s{}: {what}", site.0)?;
        write!(
            f,
            "to replay: levee-lab storm --seed {} --runs 1 --sites {}",
            self.seed, self.sites
        )
    }
}
