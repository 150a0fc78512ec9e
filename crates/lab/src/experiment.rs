//! The paper's experiment in a LAN (dotslash 6.3.4), under the virtual clock.
//!
//! One origin server of D_out 1000 kB/s, five that can help with 10000, 5000, 4000, 3000 and 2000
//! kB/s, ten files of 4 KB on average, redirects of 227 bytes, and a request rate that steps up to
//! 2000 a second. The paper's Figure 11 shows what each server sends meanwhile; this gives the same
//! curves as rows of a table.

use std::fmt::Write as _;
use std::time::Duration;

use levee_control::{GateLimits, Law};
use levee_vocab::{ByteRate, LinkId, Timestamp};

use levee_sim::crowd::{Arrivals, CrowdSettings, Wants};
use levee_sim::site::{SiteSettings, Totals, default_parameters};
use levee_sim::trace::Detail;
use levee_sim::{SiteId, World};

/// The machines of the paper and their D_out in kB/s; the first is the origin server.
pub const MACHINES: [(&str, u64); 6] = [
    ("bjs", 1000),
    ("maglev", 10_000),
    ("ottawa", 5000),
    ("delhi", 4000),
    ("beirut", 3000),
    ("ankara", 2000),
];

/// n of the paper's redirects.
const REDIRECT_BYTES: u64 = 227;

/// Response heads of the ten files, beside their 4 KB. With it the clients of the paper got 9.2
/// MB/s at 2000 requests a second: (9.2 MB/s - 2000/s * 227 B) / 2000/s = 4373 B for each file.
const HEAD_BYTES: u64 = 277;

/// How fast and how long.
#[derive(Clone, Debug, PartialEq)]
pub struct LanSettings {
    /// Request rates, one after the other.
    pub rates: Vec<f64>,
    /// How long each of them lasts.
    pub each: Duration,
    /// At the start of each rate, this time is not measured.
    pub settle: Duration,
    /// The seed.
    pub seed: u64,
}

impl LanSettings {
    /// Fifteen minutes of virtual time, as in the paper: 100 requests a second more each 45
    /// seconds.
    pub fn full() -> Self {
        Self {
            rates: (1..=20).map(|step| f64::from(step) * 100.0).collect(),
            each: Duration::from_secs(45),
            settle: Duration::from_secs(10),
            seed: 1,
        }
    }
}

/// What was measured at one request rate. Rates are bytes a second as accounted, by machine.
#[derive(Clone, Debug, PartialEq)]
pub struct LanRow {
    /// Requests offered a second.
    pub offered: f64,
    /// d_out of each machine.
    pub out: [ByteRate; 6],
    /// Requests a second that the origin redirected.
    pub redirects: f64,
    /// Requests a second that the origin refused.
    pub refused: f64,
    /// Requests a second that each rescue server answered for the origin.
    pub rescued: [f64; 5],
    /// Requests a second that were answered in time.
    pub answered: f64,
    /// Most accounted bytes that the origin sent in one control interval.
    pub origin_peak: ByteRate,
}

/// The whole experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct LanFigures {
    /// A row for each request rate.
    pub rows: Vec<LanRow>,
    /// Machines in the order in which they were drafted, and when.
    pub drafted: Vec<(&'static str, Timestamp)>,
}

/// Plays the experiment.
pub fn run_lan(settings: &LanSettings) -> LanFigures {
    let mut world = build(settings.seed);
    let mut figures = LanFigures {
        rows: Vec::new(),
        drafted: Vec::new(),
    };
    // Everybody has registered and searched once.
    let start = Timestamp::from_seconds(15);
    world.run_until(start);
    world.add_crowd(CrowdSettings {
        name: "httperf".to_owned(),
        site: SiteId(0),
        arrivals: Arrivals::Steps {
            rates: settings.rates.clone(),
            each: settings.each,
        },
        wants: Wants::FilesInTurn,
        until: None,
    });
    let mut begin = start;
    for &offered in &settings.rates {
        let end = begin + settings.each;
        let measured = begin + settings.settle;
        step_until(&mut world, measured, &mut figures);
        let before = Sample::of(&world);
        let peak = step_until(&mut world, end, &mut figures);
        let after = Sample::of(&world);
        let time = end.since(measured);
        figures
            .rows
            .push(LanRow::between(offered, &before, &after, time, peak));
        begin = end;
    }
    figures
}

fn build(seed: u64) -> World {
    let mut world = World::new(seed);
    world.trace.set_detail(Detail::Nothing);
    world.network.delay = Duration::from_micros(200);
    for (label, usable) in MACHINES {
        // B = D_out / U.
        let link = ByteRate::from_kilobytes(usable).times(1.25);
        let mut parameters = default_parameters(world.next_site(), label, link);
        // The paper's rule: the load alone decides.
        parameters.hot_spots.law = Law::Load;
        // The paper's ten files stay in the caches of its rescue servers.
        parameters.object_ttl = Duration::from_secs(3600);
        // Ten files of different sizes, 4 KB (4096 bytes) on average.
        let files = (0..10).map(|file| 4096 - 900 + 200 * file + HEAD_BYTES);
        world.add_site(SiteSettings {
            label: label.to_owned(),
            files: files.collect(),
            redirect_bytes: REDIRECT_BYTES,
            limits: GateLimits::default(),
            parameters,
        });
    }
    world
}

/// Steps on by seconds; notes who is drafted, and gives the origin's largest interval.
fn step_until(world: &mut World, end: Timestamp, figures: &mut LanFigures) -> ByteRate {
    let mut peak = ByteRate::ZERO;
    while world.now < end {
        let second = world.now + Duration::from_secs(1);
        world.run_until(second.min(end));
        if let Some(origin) = world.sites[0].running() {
            let sample = &origin.last_sample;
            peak = peak.max(ByteRate::of(sample.bytes_out(), sample.elapsed));
            let view = origin.brain.view();
            for rescue in &view.rescue_servers {
                let machine = machine_of(world, rescue.link);
                let known = figures.drafted.iter().any(|(name, _)| *name == machine);
                if !known {
                    figures.drafted.push((machine, rescue.since));
                }
            }
        }
    }
    peak
}

fn machine_of(world: &World, link: LinkId) -> &'static str {
    let peer = world.sites[0].running().and_then(|origin| {
        let view = origin.brain.view();
        let mut rescues = view.rescue_servers.into_iter();
        rescues.find(|rescue| rescue.link == link)
    });
    let host = peer.map(|rescue| rescue.peer.host);
    let is_host = |site: &levee_sim::site::Site| Some(site.name()) == host.as_ref();
    let position = world.sites.iter().position(is_host);
    position.map_or("?", |position| MACHINES[position].0)
}

/// Counters at one moment.
struct Sample {
    totals: Vec<Totals>,
    answered: u64,
}

impl Sample {
    fn of(world: &World) -> Self {
        let answered = world.crowds.iter().map(|crowd| crowd.tally.answered);
        Self {
            totals: world.sites.iter().map(|site| site.totals).collect(),
            answered: answered.sum(),
        }
    }
}

impl LanRow {
    fn between(
        offered: f64,
        before: &Sample,
        after: &Sample,
        time: Duration,
        origin_peak: ByteRate,
    ) -> Self {
        let seconds = time.as_secs_f64();
        let per_second = |count: fn(&Totals) -> u64, site: usize| {
            (count(&after.totals[site]) - count(&before.totals[site])) as f64 / seconds
        };
        let out = |site| ByteRate::from_bytes(per_second(|t| t.out_bytes, site).round() as u64);
        Self {
            offered,
            out: std::array::from_fn(out),
            redirects: per_second(|totals| totals.redirects, 0),
            refused: per_second(|totals| totals.refused, 0),
            rescued: std::array::from_fn(|site| {
                per_second(|totals| totals.rescue_requests, site + 1)
            }),
            answered: (after.answered - before.answered) as f64 / seconds,
            origin_peak,
        }
    }

    /// What all machines send together.
    pub fn total_out(&self) -> ByteRate {
        self.out
            .iter()
            .fold(ByteRate::ZERO, |sum, &rate| sum.plus(rate))
    }
}

impl LanFigures {
    /// The figures as lines of comma-separated values, with a head line.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("requests,answered,redirects,refused,origin_peak,total");
        for (machine, _) in MACHINES {
            let _ = write!(text, ",{machine}_out");
        }
        for (machine, _) in &MACHINES[1..] {
            let _ = write!(text, ",{machine}_rescued");
        }
        text.push('\n');
        for row in &self.rows {
            let _ = write!(
                text,
                "{:.0},{:.1},{:.1},{:.1},{},{}",
                row.offered,
                row.answered,
                row.redirects,
                row.refused,
                row.origin_peak.as_bytes(),
                row.total_out().as_bytes()
            );
            for rate in row.out {
                let _ = write!(text, ",{}", rate.as_bytes());
            }
            for rate in row.rescued {
                let _ = write!(text, ",{rate:.1}");
            }
            text.push('\n');
        }
        text
    }

    /// The figures as a table for people, rates in kB/s.
    pub fn to_table(&self) -> String {
        let mut text = String::from("requests/s answered redirected refused |  d_out kB/s:");
        for (machine, _) in MACHINES {
            let _ = write!(text, "{machine:>8}");
        }
        text.push_str("    total | origin's peak\n");
        for row in &self.rows {
            let _ = write!(
                text,
                "{:>10.0} {:>8.0} {:>10.0} {:>7.0} |             ",
                row.offered, row.answered, row.redirects, row.refused
            );
            for rate in row.out {
                let _ = write!(text, "{:>8.0}", rate.as_bytes() as f64 / 1000.0);
            }
            let total = row.total_out().as_bytes() as f64 / 1000.0;
            let peak = row.origin_peak.as_bytes() as f64 / 1000.0;
            let _ = writeln!(text, " {total:>8.0} | {peak:>8.0}");
        }
        for (machine, at) in &self.drafted {
            let _ = writeln!(text, "{at} drafted {machine}");
        }
        text
    }
}

/// How `levee-lab experiment lan` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// For plots.
    Csv,
}

/// `levee-lab experiment lan`: plays all fifteen minutes and prints them.
pub fn lan_command(seed: u64, form: Form) {
    let settings = LanSettings {
        seed,
        ..LanSettings::full()
    };
    let figures = run_lan(&settings);
    match form {
        Form::Table => print!("{}", figures.to_table()),
        Form::Csv => print!("{}", figures.to_csv()),
    }
}
