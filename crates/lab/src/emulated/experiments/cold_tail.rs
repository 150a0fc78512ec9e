//! An ordinary crowd: most of it wants a few pages, and some of it pages that nobody else wants.
//!
//! By its load alone a site redirects whatever comes when its line is full, so rescue servers must
//! fetch pages for one visitor each. With the combined law it has had the hot pages copied before,
//! redirects those first, and has room for the cold ones itself.

use std::fmt::Write as _;

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, SecondFigures, Step, Wants};
use super::super::network::Network;
use super::super::sampler::{Looks, Sampler, growth};
use super::super::servers::{Company, Files, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};
use crate::demo::watch::Look;

const TOPOLOGY: &str = include_str!("../../../topologies/cold_tail.toml");
const SOURCE: &str = "shop";
const NEIGHBOURS: [&str; 3] = ["alice", "bob", "carol"];
/// Hot pages, and what share of the requests they get: in the log of hotspot-avoidance 3 thirty of
/// 6,705 resources took 84 % at the spike.
const HOT: usize = 5;
const HOT_SHARE: f64 = 0.84;
/// Cold pages: more than anybody asks for.
const COLD: usize = 3000;
const PAGE_BYTES: usize = 8_000;
/// Requests a second before the crowd, and with it: half of what the line carries, and three times
/// as much. Redirects of the hot pages and the cold pages themselves still fit below T_high.
const BEFORE: f64 = 15.0;
const CROWD: f64 = 80.0;

/// Plays it by both laws.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = pages();
    let play = |law: Law| {
        bench.say(&format!("law = {}:", law.name()));
        play(bench, &topology, &files, law)
    };
    let (load, combined) = (play(Law::Load)?, play(Law::Combined)?);
    Ok(findings(&load, &combined))
}

fn pages() -> Files {
    let hot = (0..HOT).map(hot);
    let all = hot.chain((0..COLD).map(cold));
    all.map(|path| {
        let mut page = format!("<!doctype html>\n<title>{path}</title>\n");
        while page.len() < PAGE_BYTES {
            let _ = writeln!(page, "<p>All there is to know of {path}, and some more.");
        }
        (path, page.into())
    })
    .collect()
}

fn hot(number: usize) -> String {
    format!("/offer-{number}.html")
}

fn cold(number: usize) -> String {
    format!("/article-{number:04}.html")
}

/// One of the two cases.
struct Case {
    played: Played,
    looks: Looks,
    /// Seconds before the crowd came.
    calm: f64,
}

fn play(bench: &Bench, topology: &Topology, files: &Files, law: Law) -> Result<Case, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(law.name());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: SOURCE,
        neighbours: &NEIGHBOURS,
        files,
        company: Company::Member,
        usable: 0.8,
        law,
    };
    let sites = community.start(bench, &mut servers, &network)?;
    let (calm, crowd) = match bench.form {
        Form::Full => (30.0, 120.0),
        Form::Compressed => (16.0, 20.0),
        Form::Shortest => (1.0, 3.0),
    };
    let mut random = Random::from_seed(8);
    let mut step = |rate: f64, seconds: f64| Step {
        rate,
        seconds,
        wants: Wants::Files(drawn(&mut random, (rate * seconds).round() as usize)),
    };
    let plan = LoadPlan {
        tell_every: 4,
        ..plain_load(
            &network,
            &folder,
            SOURCE,
            vec![step(BEFORE, calm), step(CROWD, crowd)],
        )
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(SOURCE),
    };
    let sampler = Sampler::start(&sites)?;
    let played = bench.play(route, &plan)?;
    Ok(Case {
        calm: played.steps.first().map_or(0.0, |(step, _)| step.lasted),
        played,
        looks: sampler.stop(),
    })
}

/// What so many visitors want, one after the other. A cold page is wanted once.
fn drawn(random: &mut Random, visitors: usize) -> Vec<String> {
    let mut next = random.within(0..COLD as u64) as usize;
    let one = |_| {
        if random.chance(HOT_SHARE) {
            return hot(random.within(0..HOT as u64) as usize);
        }
        next = (next + 1) % COLD;
        cold(next)
    };
    (0..visitors).map(one).collect()
}

impl Case {
    /// Share of the crowd's requests that failed, in percent.
    fn failed(&self) -> f64 {
        let crowd = self.played.steps.last();
        crowd.map_or(0.0, |(step, _)| step.failed_share() * 100.0)
    }

    /// What all but the slowest hundredth of the crowd waited at most, in seconds.
    fn waited(&self) -> f64 {
        self.played.steps.last().map_or(0.0, |(step, _)| step.p99)
    }

    fn source(&self) -> &[Look] {
        self.looks.get(SOURCE).map_or(&[], Vec::as_slice)
    }

    /// What rescue servers fetched of the source.
    fn fetches(&self) -> f64 {
        let last = self.source().last();
        last.map_or(0.0, |look| look.seen.lifetime.fetches_served as f64)
    }

    /// Seconds from the crowd's beginning to the end of the second with the first redirect; 0 for
    /// one that redirected before.
    fn first_redirect(&self) -> Option<f64> {
        let redirected = |second: &&SecondFigures| second.redirected > 0;
        let first = self.played.seconds.iter().find(redirected);
        first.map(|second| (second.at - self.calm).max(0.0))
    }

    fn times(&self) -> Vec<(f64, f64)> {
        let seconds = self.played.seconds.iter();
        seconds.flat_map(|second| second.told.clone()).collect()
    }

    fn fetched(&self) -> Vec<(f64, f64)> {
        growth(self.source(), |look| look.seen.lifetime.fetches_served)
    }
}

fn findings(load: &Case, combined: &Case) -> Findings {
    Findings {
        method: vec![
            format!(
                "{BEFORE:.0} requests a second, and then at once {CROWD:.0}. {:.0} % of them want one \
                 of {HOT} pages, each of the others a page of its own.",
                HOT_SHARE * 100.0
            ),
            "The goals of the combined law are what came of the other: it must not fail more, nor \
             redirect later, and rescue servers must fetch a quarter of it at most."
                .to_owned(),
        ],
        rows: rows(load, combined),
        plots: plots(load, combined),
        ..Findings::default()
    }
}

/// A second of calm, as in the shortest form, shows nobody what is hot; and its crowd of three
/// seconds is over when copies are there.
fn rows(load: &Case, combined: &Case) -> Vec<Row> {
    let mut rows = vec![
        Row::told("the crowd's failed requests, load", "%", load.failed()),
        Row::told(
            "the crowd's failed requests, combined",
            "%",
            combined.failed(),
        )
        .judged_by(Goal::AtMost(load.failed().max(0.5))),
        Row::told("99 % of the crowd waited at most, load", "s", load.waited()),
        Row::told(
            "99 % of the crowd waited at most, combined",
            "s",
            combined.waited(),
        ),
        Row::told("fetches of the source, load", "requests", load.fetches()),
        Row::told(
            "fetches of the source, combined",
            "requests",
            combined.fetches(),
        )
        .judged_by(Goal::AtMost(load.fetches() / 4.0))
        .only_in_longer_forms(),
    ];
    let first = |name: &str, case: &Case| {
        let seconds = case.first_redirect();
        seconds.map(|seconds| {
            Row::told(
                &format!("first redirect of the crowd, {name}"),
                "s",
                seconds,
            )
        })
    };
    rows.extend(first("load", load));
    let at_most = load.first_redirect().unwrap_or(f64::MAX);
    rows.extend(
        first("combined", combined)
            .map(|row| row.judged_by(Goal::AtMost(at_most)).only_in_longer_forms()),
    );
    rows
}

fn plots(load: &Case, combined: &Case) -> Vec<Plot> {
    let plot = |title: &str, text: &str, up: &str| Plot {
        title: title.to_owned(),
        text: text.to_owned(),
        across: "seconds".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    vec![
        plot(
            "How long visitors waited",
            "One request in four, by when it was meant to be asked.",
            "seconds",
        )
        .with("load", Mark::Dots, load.times())
        .with("combined", Mark::Dots, combined.times()),
        plot(
            "What rescue servers fetch of the source",
            "Each fetch costs the source as much as the page that it saves.",
            "requests/s",
        )
        .with("load", Mark::Line, load.fetched())
        .with("combined", Mark::Line, combined.fetched()),
    ]
}
