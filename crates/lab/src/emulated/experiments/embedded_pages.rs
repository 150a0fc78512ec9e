//! Pages with twenty images behind a DSL line: how many requests of a page come to the source.
//!
//! The links are absolute, as those of many sites are. So a visitor who got the page from a rescue
//! server comes back for every image, and is redirected again; and each rescue server fetches every
//! image. Where embedded objects are copied with their page and its links are rewritten, only the
//! page itself is asked of the source.

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, StepFigures, Wants};
use super::super::network::Network;
use super::super::sampler::Sampler;
use super::super::servers::{Company, Files, SITES, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};

const TOPOLOGY: &str = include_str!("../../../topologies/dotslash_pages.toml");
const SOURCE: &str = "gtidsl1";
/// A page and its images: those of the paper had over twenty.
const REQUESTS_PER_PAGE: u32 = 21;
const FILE_BYTES: usize = 6144;
const PAGE: &str = "/story/index.html";
const USABLE: f64 = 0.95;

/// Plays it without and with copies of embedded objects.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = page_with_images();
    bench.say("pages alone, links as they are:");
    let bare = play(bench, &topology, &files, Law::PagesAlone)?;
    bench.say("with what is embedded, links rewritten:");
    let whole = play(bench, &topology, &files, Law::Rewriting)?;
    findings(&bare, &whole)
}

fn page_with_images() -> Files {
    let mut random = Random::from_seed(11);
    let mut noise =
        |bytes: usize| -> Vec<u8> { (0..bytes).map(|_| random.next_bits() as u8).collect() };
    let mut page = "<!doctype html>\n<title>A story</title>\n".to_owned();
    let mut files = Files::new();
    for number in 1..REQUESTS_PER_PAGE {
        let path = format!("/story/images/{number}.png");
        page.push_str(&format!("<img src=\"http://{SOURCE}.{SITES}{path}\">\n"));
        files.insert(path, noise(FILE_BYTES).into());
    }
    while page.len() < FILE_BYTES {
        page.push_str("<p>And so on, for as long as a page of its kind is.\n");
    }
    files.insert(PAGE.to_owned(), page.into());
    files
}

/// One of the two cases.
struct Case {
    played: Played,
    /// What rescue servers fetched of the source.
    fetches: u64,
}

fn play(bench: &Bench, topology: &Topology, files: &Files, law: Law) -> Result<Case, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(law.name());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: SOURCE,
        neighbours: &["maglev"],
        files,
        company: Company::Member,
        usable: USABLE,
        law,
    };
    let sites = community.start(bench, &mut servers, &network)?;
    let plan = LoadPlan {
        until: bench.form.search(),
        ..plain_load(&network, &folder, SOURCE, steps(bench.form, law))
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(SOURCE),
    };
    let sampler = Sampler::start(&sites)?;
    let played = bench.play(route, &plan)?;
    let looks = sampler.stop();
    let last = looks.get(SOURCE).and_then(|looks| looks.last());
    Ok(Case {
        played,
        fetches: last.map_or(0, |look| look.seen.lifetime.fetches_served),
    })
}

fn steps(form: Form, law: Law) -> Vec<Step> {
    // Slowly first, until copies are where they belong. A site that is asked for each image stops
    // an order earlier.
    let warm: &[f64] = &[20.0, 60.0, 150.0];
    let further: &[f64] = match (law, form) {
        (Law::Rewriting, Form::Full) => &[450.0, 750.0, 1050.0, 1350.0, 1650.0],
        (Law::Rewriting, Form::Compressed | Form::Shortest) => &[450.0, 1050.0, 1650.0],
        (Law::PagesAlone | Law::Combined | Law::Load | Law::Resources, _) => &[200.0, 250.0, 300.0],
    };
    let (rates, seconds): (Vec<f64>, f64) = match form {
        Form::Full => ([warm, further].concat(), 60.0),
        Form::Compressed => ([warm, further].concat(), 7.0),
        Form::Shortest => (vec![20.0], 4.0),
    };
    rates
        .into_iter()
        .map(|rate| Step {
            rate,
            seconds,
            wants: Wants::Page {
                path: PAGE.to_owned(),
                requests: REQUESTS_PER_PAGE,
            },
        })
        .collect()
}

fn findings(bare: &Case, whole: &Case) -> Result<Findings, LabError> {
    let best = |case: &Case| -> Result<StepFigures, LabError> {
        let best = case.played.best();
        let (best, _) = best.ok_or(LabError::NothingHeld("the first request rate"))?;
        Ok(best.clone())
    };
    let (bare_best, whole_best) = (best(bare)?, best(whole)?);
    // The shortest form plays the first rate alone, and ends before copies are where they belong.
    let rows = vec![
        Row::told(
            "requests of a page at the source, page alone",
            "requests",
            at_source(&bare_best),
        )
        .bounded_by(f64::from(REQUESTS_PER_PAGE)),
        Row::told(
            "requests of a page at the source, rewritten",
            "requests",
            at_source(&whole_best),
        )
        .bounded_by(1.0)
        .judged_by(Goal::AtMost(f64::from(REQUESTS_PER_PAGE) / 10.0))
        .only_in_longer_forms(),
        Row::told(
            "fetches of the source, page alone",
            "requests",
            bare.fetches as f64,
        ),
        Row::told(
            "fetches of the source, rewritten",
            "requests",
            whole.fetches as f64,
        ),
        Row::told("R_max, page alone", "requests/s", bare_best.answered_rate),
        Row::told("R_max, rewritten", "requests/s", whole_best.answered_rate)
            .judged_by(Goal::AtLeast(5.0 * bare_best.answered_rate))
            .only_in_longer_forms(),
    ];
    Ok(Findings {
        method: vec![
            format!(
                "A page of {FILE_BYTES} bytes names {} images of the same size by absolute links to \
                 the source.",
                REQUESTS_PER_PAGE - 1
            ),
            "Counted are the requests that visitors asked the source first, for each page, at the \
             rate with the most answers. The paper has an order of magnitude fewer of them with \
             embedded objects copied and links rewritten, which is the goal."
                .to_owned(),
        ],
        rows,
        plots: vec![plot(bare, whole)],
        ..Findings::default()
    })
}

/// Requests that came to the source for each page.
fn at_source(step: &StepFigures) -> f64 {
    let pages = step.offered as f64 / f64::from(REQUESTS_PER_PAGE);
    step.at_source as f64 / pages.max(1.0)
}

fn plot(bare: &Case, whole: &Case) -> Plot {
    let asked = |case: &Case| case.played.by_rate(|step, _| at_source(step));
    Plot {
        title: "Requests of a page at the source".to_owned(),
        text: "By what was offered. A page and its images are twenty-one requests.".to_owned(),
        across: "requests a second, offered".to_owned(),
        up: "requests".to_owned(),
        ..Plot::default()
    }
    .with("page alone", Mark::Line, asked(bare))
    .with(
        "with what is embedded, links rewritten",
        Mark::Line,
        asked(whole),
    )
}
