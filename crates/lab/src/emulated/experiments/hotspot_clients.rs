//! hotspot-avoidance 6.4, Figure 9 (e) and (f): response times while a hundred clients arrive.
//!
//! A client arrives every two seconds until there are a hundred. Each asks for one of five
//! resources, waits for up to a second, and asks again. Alone the source becomes slow as its line
//! fills; with eight mirrors it redirects before that.

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{AGENT, LoadPlan, SecondFigures, Step, Until, Wants};
use super::super::network::Network;
use super::super::servers::{Company, Files, SITES, Servers, names};
use super::super::topology::Topology;
use super::Community;
use crate::crowd::client::{Following, Protocol};

const TOPOLOGY: &str = include_str!("../../../topologies/hotspot_clients.toml");
const SOURCE: &str = "source";
const MIRRORS: [&str; 8] = [
    "mirror-1", "mirror-2", "mirror-3", "mirror-4", "mirror-5", "mirror-6", "mirror-7", "mirror-8",
];
/// Sizes of the five resources: the smallest and the largest are the paper's.
const RESOURCES: [usize; 5] = [2_639, 8_000, 10_240, 25_000, 51_100];
const CLIENTS: u32 = 100;
/// Time that a source has to settle once it redirects.
const SETTLING: f64 = 3.0;

/// Plays both cases.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = resources();
    bench.say("alone:");
    let alone = play(bench, &topology, &files, Company::Alone)?;
    bench.say("with eight mirrors:");
    let helped = play(bench, &topology, &files, Company::Member)?;
    Ok(findings(&Ramp::of(bench.form), &alone, &helped))
}

fn resources() -> Files {
    let mut random = Random::from_seed(4);
    RESOURCES
        .iter()
        .map(|bytes| {
            let body: Vec<u8> = (0..*bytes).map(|_| random.next_bits() as u8).collect();
            (format!("/resource-{bytes}.bin"), body.into())
        })
        .collect()
}

/// How clients arrive, and how long they stay.
struct Ramp {
    /// Seconds between two arrivals.
    every: f64,
    /// Requests of each client.
    requests: u32,
    /// Seconds after which it leaves even if it has not asked them all.
    stay_max: f64,
}

impl Ramp {
    const fn of(form: Form) -> Self {
        match form {
            Form::Full => Self {
                every: 2.0,
                requests: 300,
                stay_max: 300.0,
            },
            Form::Compressed => Self {
                every: 0.25,
                requests: 80,
                stay_max: 42.0,
            },
            Form::Shortest => Self {
                every: 0.03,
                requests: 4,
                stay_max: 3.0,
            },
        }
    }
}

fn play(
    bench: &Bench,
    topology: &Topology,
    files: &Files,
    company: Company,
) -> Result<Played, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(match company {
        Company::Alone => "alone",
        Company::Member => "helped",
    });
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: SOURCE,
        neighbours: &MIRRORS,
        files,
        company,
        usable: 0.8,
    };
    let _running = community.start(bench, &mut servers, &network)?;
    let ramp = Ramp::of(bench.form);
    let plan = LoadPlan {
        site: format!("{SOURCE}.{SITES}"),
        names: names(&network),
        files: folder.join(SOURCE).join("public"),
        agent: AGENT.to_owned(),
        following: Following::Follows,
        protocol: Protocol::Http1,
        steps: vec![Step {
            // So that a client comes every so often: each brings that many requests.
            rate: f64::from(ramp.requests) / ramp.every,
            seconds: f64::from(CLIENTS) * ramp.every,
            wants: Wants::Client {
                paths: files.keys().cloned().collect(),
                requests: ramp.requests,
                pause_max: 1.0,
                stay_max: ramp.stay_max,
            },
        }],
        until: Until::Done,
        tell_every: match bench.form {
            Form::Full => 6,
            Form::Compressed | Form::Shortest => 2,
        },
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(SOURCE),
    };
    bench.play(route, &plan)
}

fn findings(ramp: &Ramp, alone: &Played, helped: &Played) -> Findings {
    Findings {
        method: vec![
            format!(
                "A client came every {} s until there were {CLIENTS}; each asked up to {} times, \
                 over a connection of its own, paused for up to 1 s between, and left after {} s.",
                ramp.every, ramp.requests, ramp.stay_max
            ),
            format!(
                "The longest response is that of requests asked more than {SETTLING:.0} s after the \
                 first second with a redirect. The paper's clients met redirects after 14 to 21 s, \
                 which is 7 to 10 clients."
            ),
        ],
        rows: rows(ramp, alone, helped),
        plots: vec![
            times_plot("Figure 9 (e): response times, alone", alone),
            times_plot("Figure 9 (f): response times, with eight mirrors", helped),
            rates_plot(alone, helped),
        ],
        ..Findings::default()
    }
}

fn rows(ramp: &Ramp, alone: &Played, helped: &Played) -> Vec<Row> {
    let redirected = |second: &&SecondFigures| second.redirected > 0;
    let began = helped.seconds.iter().find(redirected);
    let began = began.map(|second| second.at);
    let settled = began.map_or(0.0, |began| began + SETTLING);
    let late = times(helped).into_iter();
    let late = late.filter(|(asked, _)| *asked >= settled);
    let longest = late.map(|(_, taken)| taken).fold(0.0, f64::max);
    let rate = |name: &str, played: &Played| Row::told(name, "requests/s", peak(played));
    let mut rows = vec![
        rate("answered a second at the peak, alone", alone).published(80.0),
        rate("answered a second at the peak, with mirrors", helped)
            .published(200.0)
            .bounded_by(f64::from(CLIENTS) / 0.5),
        Row::told("requests answered, alone", "%", answered(alone)),
        Row::told("requests answered, with mirrors", "%", answered(helped)).bounded_by(100.0),
        Row::told("longest response once it redirects", "s", longest).judged_by(Goal::AtMost(1.0)),
    ];
    if let Some(began) = began {
        let clients = began / ramp.every;
        rows.push(Row::told(
            "clients that were there when redirects began",
            "clients",
            clients,
        ));
    }
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

fn times(played: &Played) -> Vec<(f64, f64)> {
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
    .with("requests", Mark::Dots, times(played))
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
