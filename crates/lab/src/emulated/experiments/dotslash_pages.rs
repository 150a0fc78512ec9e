//! dotslash 6.3.3 with pages instead of files: what a page embeds does not come back to the source.
//!
//! Each visitor wants a page and its nine images. The page names them by relative addresses, so
//! whoever was redirected asks the rescue server for them: one redirect of the source for ten
//! requests. What the source can do at most is 10 B / (n + o).

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route, overhead};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, StepFigures, Until, Wants};
use super::super::network::{Network, Sent};
use super::super::servers::{Company, Files, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};
use crate::crowd::client::Protocol;

const TOPOLOGY: &str = include_str!("../../../topologies/dotslash_pages.toml");
/// A page and its images.
const REQUESTS_PER_PAGE: u32 = 10;
/// Size of each of them.
const FILE_BYTES: usize = 6144;
const PAGE: &str = "/story/index.html";
/// U, as in the paper's experiment.
const USABLE: f64 = 0.95;
/// What visitors who speak HTTP/2 ask for, of what was held by HTTP/1.1.
const HTTP2_SHARE: f64 = 0.9;
/// For so long.
const HTTP2_SECONDS: f64 = 10.0;
/// What the paper's source could do at most with files, its bound for ours to be far beyond.
const FILES_BOUND: f64 = 97.0;

/// Plays it.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let link = topology.link_of_source();
    let network = Network::build(&topology)?;
    let folder = bench.folder("servers");
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let files = page_with_images();
    let community = Community {
        source: "gtidsl1",
        neighbours: &["maglev"],
        files: &files,
        company: Company::Member,
        usable: USABLE,
        law: Law::Combined,
    };
    let _running = community.start(bench, &mut servers, &network)?;
    let plan = LoadPlan {
        until: bench.form.search(),
        ..plain_load(&network, &folder, "gtidsl1", steps(bench.form))
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host("gtidsl1"),
    };
    let played = bench.play(route, &plan)?;
    let (best, sent) = played
        .best()
        .ok_or(LabError::NothingHeld("the first request rate"))?;
    // The rescue goes on and caches are warm: so many visitors come once more, by HTTP/2.
    let again = LoadPlan {
        protocol: Protocol::Http2,
        until: Until::Done,
        steps: vec![step(HTTP2_SHARE * best.answered_rate, HTTP2_SECONDS)],
        ..plan
    };
    let by_http2 = bench.play(route, &again)?;
    Ok(findings(link, (best, *sent), (&played, &by_http2)))
}

fn page_with_images() -> Files {
    let mut random = Random::from_seed(10);
    let mut noise =
        |bytes: usize| -> Vec<u8> { (0..bytes).map(|_| random.next_bits() as u8).collect() };
    let mut page = "<!doctype html>\n<title>A story</title>\n".to_owned();
    let mut files = Files::new();
    for number in 1..REQUESTS_PER_PAGE {
        // Relative, so that they are asked for where the page came from.
        page.push_str(&format!("<img src=\"images/{number}.png\">\n"));
        let path = format!("/story/images/{number}.png");
        files.insert(path, noise(FILE_BYTES).into());
    }
    while page.len() < FILE_BYTES {
        page.push_str("<p>And so on, for as long as a page of its kind is.\n");
    }
    files.insert(PAGE.to_owned(), page.into());
    files
}

fn steps(form: Form) -> Vec<Step> {
    let (rates, seconds): (Vec<f64>, f64) = match form {
        Form::Full => ((1..=40).map(|step| f64::from(step) * 50.0).collect(), 60.0),
        Form::Compressed => (vec![100.0, 500.0, 1000.0, 1100.0, 1200.0, 1300.0], 8.0),
        Form::Shortest => (vec![200.0, 1000.0], 4.0),
    };
    rates.into_iter().map(|rate| step(rate, seconds)).collect()
}

fn step(rate: f64, seconds: f64) -> Step {
    Step {
        rate,
        seconds,
        wants: Wants::Page {
            path: PAGE.to_owned(),
            requests: REQUESTS_PER_PAGE,
        },
    }
}

fn findings(
    link: f64,
    (best, sent): (&StepFigures, Sent),
    (played, by_http2): (&Played, &Played),
) -> Findings {
    // A page is one request of ten, and the only one that comes to the source.
    let pages = best.offered as f64 / f64::from(REQUESTS_PER_PAGE);
    let redirect = best.redirect_size().unwrap_or_default();
    let beside = overhead(best, sent) * best.offered as f64 / pages;
    let bound = f64::from(REQUESTS_PER_PAGE) * link / (redirect + beside);
    let rows = vec![
        Row::told(
            "R_max of pages with their images",
            "requests/s",
            best.answered_rate,
        )
        .bounded_by(bound)
        .judged_by(Goal::AtLeast(5.0 * FILES_BOUND)),
        Row::told(
            "D_max of pages with their images",
            "kB/s",
            played.bytes_max() / 1000.0,
        )
        .bounded_by(bound * FILE_BYTES as f64 / 1000.0),
        Row::told(
            "answered by HTTP/2, at nine tenths of that",
            "%",
            100.0 * by_http2.answered_share(),
        )
        .bounded_by(100.0)
        .judged_by(Goal::AtLeast(90.0)),
    ];
    Findings {
        method: vec![
            format!(
                "A page of {FILE_BYTES} bytes names nine images of the same size by relative \
                 addresses. A redirect was {redirect:.0} bytes long and cost the source's link \
                 {beside:.0} bytes more."
            ),
            format!(
                "The paper's bound for single files was {FILES_BOUND:.0} requests a second; the goal \
                 is five times that."
            ),
        ],
        rows,
        plots: plots(link, played),
        figures: [
            ("redirect_bytes".to_owned(), redirect),
            ("redirect_overhead_bytes".to_owned(), beside),
        ]
        .into(),
        ..Findings::default()
    }
}

fn plots(link: f64, played: &Played) -> Vec<Plot> {
    let up = |title: &str, up: &str| Plot {
        title: title.to_owned(),
        text: "By what was offered. One request in ten is a page and comes to the source."
            .to_owned(),
        across: "requests a second, offered".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    vec![
        up("Requests", "requests/s")
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
            ),
        up("Data", "kB/s")
            .with(
                "the source's link, at most",
                Mark::Limit,
                played.by_rate(|_, _| link / 1000.0),
            )
            .with(
                "received",
                Mark::Line,
                played.by_rate(|step, _| step.bytes_rate / 1000.0),
            )
            .with(
                "the source's link",
                Mark::Line,
                played.by_rate(|step, sent| sent.bytes as f64 / step.lasted / 1000.0),
            ),
    ]
}
