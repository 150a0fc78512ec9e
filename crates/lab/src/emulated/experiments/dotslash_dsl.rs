//! dotslash 6.3.3, Figure 10: a site behind a DSL line, alone and with one rescue server.
//!
//! ```text
//!   visitors ──▶ gtidsl1 (53.9 kB/s usable) ──302──▶ maglev (2000 kB/s usable)
//! ```
//!
//! Ten files of 6 KB on average are asked for in turn, each request over a connection of its own,
//! at a rate that grows step by step until more than a tenth of the requests are not answered
//! within 7 s. What the source can do at most with redirects is B / (n + o): n the bytes of a
//! redirect and o what a connection costs beside it, both as they were measured.

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route, overhead};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, Wants};
use super::super::network::Network;
use super::super::servers::{Company, Files, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};

const TOPOLOGY: &str = include_str!("../../../topologies/dotslash_dsl.toml");
/// U of the paper's source: 6394 of 6394 + 358 bytes.
const USABLE: f64 = 0.95;
/// Mean size of the files.
const FILE_BYTES: usize = 6144;

/// Plays both cases.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = ten_files(FILE_BYTES);
    bench.say("alone:");
    let alone = play(bench, &topology, &files, Company::Alone)?;
    bench.say("with one rescue server:");
    let helped = play(bench, &topology, &files, Company::Member)?;
    let link = topology.link_of_source();
    findings(link, &alone, &helped)
}

/// Ten files of different sizes, `mean` bytes on average, that no server can compress.
pub fn ten_files(mean: usize) -> Files {
    let mut random = Random::from_seed(6);
    (0..10)
        .map(|number| {
            let bytes = mean - 900 + 200 * number;
            let body: Vec<u8> = (0..bytes).map(|_| random.next_bits() as u8).collect();
            (format!("/file-{number}.bin"), body.into())
        })
        .collect()
}

fn steps(form: Form, company: Company, paths: &[String]) -> Vec<Step> {
    let every = |rates: std::ops::RangeInclusive<u32>, by: u32| -> Vec<f64> {
        rates.step_by(by as usize).map(f64::from).collect()
    };
    let (rates, seconds) = match (form, company) {
        (Form::Full, Company::Alone) => (every(1..=20, 1), 60.0),
        (Form::Full, Company::Member) => (every(4..=200, 4), 60.0),
        (Form::Compressed, Company::Alone) => (every(8..=20, 1), 15.0),
        (Form::Compressed, Company::Member) => (vec![32.0, 88.0, 100.0, 104.0, 108.0, 116.0], 9.0),
        (Form::Shortest, Company::Alone) => (vec![8.0], 4.0),
        (Form::Shortest, Company::Member) => (vec![20.0, 110.0], 4.0),
    };
    rates
        .into_iter()
        .map(|rate| Step {
            rate,
            seconds,
            wants: Wants::Files(paths.to_vec()),
        })
        .collect()
}

fn play(
    bench: &Bench,
    topology: &Topology,
    files: &Files,
    company: Company,
) -> Result<Played, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(company.case());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: "gtidsl1",
        neighbours: &["maglev"],
        files,
        company,
        usable: USABLE,
        law: Law::Load,
    };
    let _running = community.start(bench, &mut servers, &network)?;
    let paths: Vec<String> = files.keys().cloned().collect();
    let plan = LoadPlan {
        until: bench.form.search(),
        ..plain_load(
            &network,
            &folder,
            "gtidsl1",
            steps(bench.form, company, &paths),
        )
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host("gtidsl1"),
    };
    bench.play(route, &plan)
}

/// What was measured, and what it allows.
struct Sums {
    link: f64,
    /// Answered requests a second: alone, and with help.
    answered: [f64; 2],
    /// Bytes of a response of the source alone, of a redirect with help.
    responses: [f64; 2],
    /// What a connection cost beside it.
    overheads: [f64; 2],
    /// Most bytes a second that visitors received.
    bytes_max: [f64; 2],
}

impl Sums {
    fn of(link: f64, alone: &Played, helped: &Played) -> Result<Self, LabError> {
        let held = |played: &Played| {
            let best = played.best().cloned();
            best.ok_or(LabError::NothingHeld("the first request rate"))
        };
        let (own, own_sent) = held(alone)?;
        let (best, sent) = held(helped)?;
        let response = own.own_bytes as f64 / (own.answered as f64).max(1.0);
        Ok(Self {
            link,
            answered: [own.answered_rate, best.answered_rate],
            responses: [response, best.redirect_size().unwrap_or_default()],
            overheads: [overhead(&own, own_sent), overhead(&best, sent)],
            bytes_max: [alone.bytes_max(), helped.bytes_max()],
        })
    }

    /// Responses a second that fit through the link.
    fn bounds(&self) -> [f64; 2] {
        std::array::from_fn(|case| self.link / (self.responses[case] + self.overheads[case]))
    }

    fn rows(&self) -> Vec<Row> {
        let bounds = self.bounds();
        let row = |name: &str, unit: &str, ours: f64, published: f64, bound: f64| {
            Row::told(name, unit, ours)
                .published(published)
                .bounded_by(bound)
        };
        let [alone, helped] = self.answered;
        let bytes = bounds.map(|bound| bound * FILE_BYTES as f64 / 1000.0);
        let received = self.bytes_max.map(|bytes| bytes / 1000.0);
        vec![
            row("R_max alone", "requests/s", alone, 9.0, bounds[0]).judged_by(Goal::OfBound(0.95)),
            row(
                "R_max with one rescue server",
                "requests/s",
                helped,
                88.0,
                bounds[1],
            )
            .judged_by(Goal::OfBound(0.95)),
            row(
                "R_max, that with help to that alone",
                "times",
                helped / alone,
                9.78,
                bounds[1] / bounds[0],
            )
            .judged_by(Goal::AtLeast(9.78)),
            row("D_max alone", "kB/s", received[0], 53.9, bytes[0]),
            row(
                "D_max with one rescue server",
                "kB/s",
                received[1],
                544.1,
                bytes[1],
            )
            .judged_by(Goal::AtLeast(544.1)),
        ]
    }

    fn method(&self) -> Vec<String> {
        vec![
            format!(
                "The source's link lets {:.1} kB/s out, Ethernet heads and all; 95 % of it are usable.",
                self.link / 1000.0
            ),
            format!(
                "A redirect was {:.0} bytes long, and its connection cost the link {:.0} bytes more, \
                 as counted at the link (the paper: 227 and 358).",
                self.responses[1], self.overheads[1]
            ),
            "R_max is the most that was answered a second at any rate below the first at which more \
             than a tenth of the requests were not answered within 7 s."
                .to_owned(),
        ]
    }
}

fn findings(link: f64, alone: &Played, helped: &Played) -> Result<Findings, LabError> {
    let sums = Sums::of(link, alone, helped)?;
    let figures = [
        ("link_bytes_per_second", link),
        ("redirect_bytes", sums.responses[1]),
        ("redirect_overhead_bytes", sums.overheads[1]),
        ("response_bytes", sums.responses[0]),
        ("response_overhead_bytes", sums.overheads[0]),
    ];
    Ok(Findings {
        method: sums.method(),
        rows: sums.rows(),
        plots: plots(link, alone, helped),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Findings::default()
    })
}

fn plots(link: f64, alone: &Played, helped: &Played) -> Vec<Plot> {
    let one = |title: &str, text: &str, played: &Played| {
        Plot {
            title: title.to_owned(),
            text: text.to_owned(),
            across: "requests a second, offered".to_owned(),
            up: "requests/s".to_owned(),
            ..Plot::default()
        }
        .with("offered", Mark::Limit, played.by_rate(|step, _| step.rate))
        .with(
            "redirected",
            Mark::Line,
            played.by_rate(|step, _| step.redirected_rate),
        )
        .with(
            "answered",
            Mark::Line,
            played.by_rate(|step, _| step.answered_rate),
        )
    };
    let rates =
        |played: &Played| -> Vec<(f64, f64)> { played.by_rate(|step, _| step.bytes_rate / 1000.0) };
    let data = Plot {
        title: "Data rate".to_owned(),
        text:
            "What visitors received, from whomever, and what left the source's own link. Dashed: \
               what its link can carry."
                .to_owned(),
        across: "requests a second, offered".to_owned(),
        up: "kB/s".to_owned(),
        ..Plot::default()
    }
    .with(
        "the source's link, at most",
        Mark::Limit,
        helped.by_rate(|_, _| link / 1000.0),
    )
    .with("received, alone", Mark::Line, rates(alone))
    .with("received, with help", Mark::Line, rates(helped))
    .with(
        "the source's link, with help",
        Mark::Line,
        helped.by_rate(|step, sent| sent.bytes as f64 / step.lasted / 1000.0),
    );
    vec![
        one(
            "Figure 10 (a): alone",
            "Requests are answered as they come until the link is full.",
            alone,
        ),
        one(
            "Figure 10 (b): with one rescue server",
            "From some load on the source redirects, at last everything, until its link is full of \
             redirects.",
            helped,
        ),
        data,
    ]
}
