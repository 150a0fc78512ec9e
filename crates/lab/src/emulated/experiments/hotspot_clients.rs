//! hotspot-avoidance 6.4, Figure 9 (e) and (f): response times while a hundred clients arrive.
//!
//! A client arrives every two seconds until there are a hundred. Each asks for one of five
//! resources, waits for up to a second, and asks again. Alone the source becomes slow as its line
//! fills; with eight mirrors it copies what becomes hot and redirects before that. It goes by
//! resources alone here, as the paper did: how full its line is does not matter.
//!
//! When a resource should have been copied and redirected is worked out from the requests that were
//! made; when it was, from what mirrors have and what visitors met.

mod heat;
mod probe;
mod times;

use std::net::SocketAddr;

use levee_vocab::Random;

use self::probe::{Probe, ProbePlan};
use self::times::Times;
use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{HASTE, LoadPlan, Log, SecondFigures, Step, Wants};
use super::super::network::Network;
use super::super::servers::{Company, Files, Servers, Site, names_of_watch};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};

const TOPOLOGY: &str = include_str!("../../../topologies/hotspot_clients.toml");
const SOURCE: &str = "source";
const MIRRORS: [&str; 8] = [
    "mirror-1", "mirror-2", "mirror-3", "mirror-4", "mirror-5", "mirror-6", "mirror-7", "mirror-8",
];
/// Sizes of the five resources: the smallest and the largest are the paper's.
const RESOURCES: [usize; 5] = [2_639, 8_000, 10_240, 25_000, 51_100];
const CLIENTS: u32 = 100;
/// Seconds between two arrivals, as in the paper.
const EVERY: f64 = 2.0;

/// Plays both cases.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = resources();
    bench.say("alone:");
    let (alone, _) = play(bench, &topology, &files, Company::Alone)?;
    bench.say("with eight mirrors:");
    let (helped, times) = play(bench, &topology, &files, Company::Member)?;
    Ok(findings(&Ramp::of(bench.form), (&alone, &helped), &times))
}

fn resources() -> Files {
    let mut random = Random::from_seed(4);
    RESOURCES
        .iter()
        .map(|bytes| {
            let body: Vec<u8> = (0..*bytes).map(|_| random.next_bits() as u8).collect();
            (path(*bytes), body.into())
        })
        .collect()
}

fn path(bytes: usize) -> String {
    format!("/resource-{bytes}.bin")
}

/// How clients arrive, and how long they stay.
struct Ramp {
    /// Clients that come every [`EVERY`] seconds; the others come eight times as fast.
    slowly: u32,
    /// Requests of each client.
    requests: u32,
    /// Seconds after which it leaves even if it has not asked them all.
    stay_max: f64,
}

impl Ramp {
    const fn of(form: Form) -> Self {
        match form {
            Form::Full => Self {
                slowly: CLIENTS,
                requests: 300,
                stay_max: 300.0,
            },
            // Until after the paper's source redirected as the paper has it, and then in haste.
            Form::Compressed => Self {
                slowly: 10,
                requests: 80,
                stay_max: 28.0,
            },
            Form::Shortest => Self {
                slowly: 0,
                requests: 4,
                stay_max: 3.0,
            },
        }
    }

    /// Seconds until all have come.
    fn lasts(&self, form: Form) -> f64 {
        let gaps = f64::from(self.slowly) + f64::from(self.hasty(form)) / HASTE;
        gaps * EVERY
    }

    fn hasty(&self, form: Form) -> u32 {
        match form {
            Form::Full | Form::Compressed => CLIENTS - self.slowly,
            Form::Shortest => 12,
        }
    }
}

fn play(
    bench: &Bench,
    topology: &Topology,
    files: &Files,
    company: Company,
) -> Result<(Played, Times), LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(company.case());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: SOURCE,
        neighbours: &MIRRORS,
        files,
        company,
        usable: 0.8,
        law: Law::Resources,
    };
    let running = community.start(bench, &mut servers, &network)?;
    let ramp = Ramp::of(bench.form);
    let paths: Vec<String> = files.keys().cloned().collect();
    let step = Step {
        // So that a client comes every so often: each brings that many requests.
        rate: f64::from(ramp.requests) / EVERY,
        seconds: ramp.lasts(bench.form),
        wants: Wants::Client {
            slowly: ramp.slowly,
            fast: ramp.hasty(bench.form),
            paths: paths.clone(),
            requests: ramp.requests,
            pause_max: 1.0,
            stay_max: ramp.stay_max,
        },
    };
    let plan = LoadPlan {
        tell_every: match bench.form {
            Form::Full => 6,
            Form::Compressed | Form::Shortest => 2,
        },
        log: Log::Requests,
        ..plain_load(&network, &folder, SOURCE, vec![step])
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(SOURCE),
    };
    let probe = Probe::start(ProbePlan {
        source: admin_of_source(&running),
        names: names_of_watch(&network),
        paths,
    })?;
    let mut played = bench.play(route, &plan)?;
    let times = Times::of(&played, &probe.stop(), MIRRORS.len());
    // What was wanted of them has been worked out, and they are too many for a file.
    for second in &mut played.seconds {
        second.requests.clear();
    }
    Ok((played, times))
}

/// The source comes last.
fn admin_of_source(running: &[Site]) -> SocketAddr {
    let source = running.last();
    source.expect("a community has a source").admin
}

fn findings(ramp: &Ramp, (alone, helped): (&Played, &Played), times: &Times) -> Findings {
    Findings {
        method: vec![
            format!(
                "A client came every {EVERY:.0} s until there were {}, and then {HASTE:.0} times as \
                 fast; each asked up to {} times, over a connection of its own, paused for up to 1 \
                 s between, and left after {:.0} s.",
                ramp.slowly, ramp.requests, ramp.stay_max
            ),
            "The source copied and redirected by resources alone, with the paper's thresholds: T_C \
             1 s, T_R 0.5 s, weighed by log10(1 + size / 1000). When they were reached is worked out \
             from the requests that were made."
                .to_owned(),
            "A resource counts as copied when the first mirror answers with it, and as redirected \
             when the first visitor was. The longest response is that of requests asked later than \
             all of this. Published are the first and the last of the paper's resources."
                .to_owned(),
        ],
        rows: rows(alone, helped, times),
        plots: vec![
            times_plot("Figure 9 (e): response times, alone", alone),
            times_plot("Figure 9 (f): response times, with eight mirrors", helped),
            rates_plot(alone, helped),
            times.plot(),
        ],
        ..Findings::default()
    }
}

fn rows(alone: &Played, helped: &Played, times: &Times) -> Vec<Row> {
    let longest = response_times(helped).into_iter();
    let longest = longest.filter(|(asked, _)| *asked > times.settled());
    let longest = longest.map(|(_, taken)| taken).fold(0.0, f64::max);
    let rate = |name: &str, played: &Played| Row::told(name, "requests/s", peak(played));
    let mut rows = times.rows();
    rows.extend([
        Row::told("longest response once all are redirected", "s", longest)
            .judged_by(Goal::AtMost(1.0)),
        rate("answered a second at the peak, alone", alone).published(80.0),
        rate("answered a second at the peak, with mirrors", helped)
            .published(200.0)
            .bounded_by(f64::from(CLIENTS) / 0.5),
        Row::told("requests answered, alone", "%", answered(alone)),
        Row::told("requests answered, with mirrors", "%", answered(helped)).bounded_by(100.0),
    ]);
    rows
}

/// Most answers a second over five seconds: one second alone says little.
fn peak(played: &Played) -> f64 {
    let answered = played.seconds.iter().map(|second| second.answered as f64);
    let answered: Vec<f64> = answered.collect();
    let spans = answered
        .windows(5)
        .map(|span| span.iter().sum::<f64>() / 5.0);
    spans.fold(0.0, f64::max)
}

/// Share of the requests that were answered, in percent.
fn answered(played: &Played) -> f64 {
    let steps = played.steps.iter().map(|(step, _)| step.failed_share());
    100.0 - 100.0 * steps.fold(0.0, f64::max)
}

fn response_times(played: &Played) -> Vec<(f64, f64)> {
    let seconds = played.seconds.iter();
    seconds.flat_map(|second| second.told.clone()).collect()
}

fn times_plot(title: &str, played: &Played) -> Plot {
    Plot {
        title: title.to_owned(),
        text: "Single requests, by when they were asked; what took 7 s was given up.".to_owned(),
        across: "seconds".to_owned(),
        up: "seconds".to_owned(),
        ..Plot::default()
    }
    .with("requests", Mark::Dots, response_times(played))
}

fn rates_plot(alone: &Played, helped: &Played) -> Plot {
    let points = |played: &Played, of: fn(&SecondFigures) -> u64| -> Vec<(f64, f64)> {
        let seconds = played.seconds.iter();
        seconds
            .map(|second| (second.at, of(second) as f64))
            .collect()
    };
    Plot {
        title: "Requests answered".to_owned(),
        text: "As clients arrive, and leave again.".to_owned(),
        across: "seconds".to_owned(),
        up: "requests/s".to_owned(),
        ..Plot::default()
    }
    .with("alone", Mark::Line, points(alone, |second| second.answered))
    .with(
        "with mirrors",
        Mark::Line,
        points(helped, |second| second.answered),
    )
    .with(
        "redirected",
        Mark::Line,
        points(helped, |second| second.redirected),
    )
}
