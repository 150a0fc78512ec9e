//! A day of NASA's web server, and a crowd from Slashdot over it.
//!
//! The day is the thirteen hours that there are of 1 August 1995, hour by hour, squeezed; of a site
//! ten times as busy, so that something is to be seen. The crowd comes for one page with its
//! images: it is there within a quarter of an hour, stays at its height for an hour, and halves
//! each hour from then on.

use levee_vocab::Random;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{Step, Wants};
use super::super::network::Network;
use super::super::sampler::{Looks, Sampler, levels};
use super::super::servers::{Company, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load, web_address};
use crate::popularity::Popularity;
use crate::site::Site as Weblog;

const TOPOLOGY: &str = include_str!("../../../topologies/nasa_day.toml");
const SOURCE: &str = "centre";
const NEIGHBOURS: [&str; 3] = ["alice", "bob", "carol"];
/// How much busier the site is than NASA's was.
const BUSIER: f64 = 10.0;
/// Visits of the crowd a second at its height: several times what the line carries.
const HEIGHT: f64 = 80.0;
/// Quarter of an hour in which the crowd begins to come.
const BEGINS: usize = 16;
const QUARTER_SECONDS: f64 = 900.0;

/// Plays the day alone and with neighbours.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let weblog = Weblog::generate(6, &web_address(SOURCE));
    bench.say("alone:");
    let alone = play(bench, &topology, &weblog, Company::Alone)?;
    bench.say("with three neighbours:");
    let helped = play(bench, &topology, &weblog, Company::Member)?;
    Ok(findings(&alone, &helped))
}

/// One of the two cases.
struct Day {
    everyday: Played,
    crowd: Played,
    looks: Looks,
}

fn play(
    bench: &Bench,
    topology: &Topology,
    weblog: &Weblog,
    company: Company,
) -> Result<Day, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(company.case());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let community = Community {
        source: SOURCE,
        neighbours: &NEIGHBOURS,
        files: &weblog.objects,
        company,
        usable: 0.8,
        law: Law::Combined,
    };
    let sites = community.start(bench, &mut servers, &network)?;
    let load = |steps| plain_load(&network, &folder, SOURCE, steps);
    let (everyday, crowd) = steps(bench.form, weblog);
    let (everyday, crowd) = (load(everyday), load(crowd));
    let from = |host| Route {
        from: network.host(host),
        source: network.host(SOURCE),
    };
    let sampler = Sampler::start(&sites)?;
    let [everyday, crowd] =
        bench.play_both([(from("everyday"), &everyday), (from("crowd"), &crowd)])?;
    Ok(Day {
        everyday,
        crowd,
        looks: sampler.stop(),
    })
}

/// The day as one step for each hour, and the crowd as one for each quarter of an hour.
fn steps(form: Form, weblog: &Weblog) -> (Vec<Step>, Vec<Step>) {
    const QUARTERS_A_STEP: usize = 4;
    let quarter = match form {
        Form::Full => 20.0,
        Form::Compressed => 0.75,
        Form::Shortest => 0.06,
    };
    let day = Popularity::of_nasa().quarter_hours;
    let wants = Wants::Files(readers(weblog));
    let everyday = day.chunks(QUARTERS_A_STEP).map(|quarters| {
        let requests: u64 = quarters.iter().sum();
        let seconds = QUARTER_SECONDS * quarters.len() as f64;
        Step {
            rate: requests as f64 / seconds * BUSIER,
            seconds: quarter * quarters.len() as f64,
            wants: wants.clone(),
        }
    });
    let post = weblog.post();
    let requests = 1 + post.images.len() as u32;
    // Nobody, then half, then all for an hour, then half as many each hour.
    let waiting = [(0.0, BEGINS), (0.5, 1), (1.0, 4)];
    let leaving = (1..=5).map(|hours| (0.5_f64.powi(hours), 4));
    let crowd = waiting.into_iter().chain(leaving);
    let crowd = crowd.map(|(share, quarters)| Step {
        // A rate of nothing would make a visit wait for ever; less than one in a step is none.
        rate: (share * HEIGHT * f64::from(requests)).max(1e-6),
        seconds: quarter * quarters as f64,
        wants: Wants::Page {
            path: post.path.clone(),
            requests,
        },
    });
    (everyday.collect(), crowd.collect())
}

/// What a thousand readers ask for, one request after the other.
fn readers(weblog: &Weblog) -> Vec<String> {
    let mut random = Random::from_seed(1995);
    let mut paths = Vec::new();
    for _ in 0..1000 {
        let mut left = random.fraction();
        let page = weblog.pages.iter().find(|page| {
            left -= page.share;
            left < 0.0
        });
        let page = page.unwrap_or_else(|| weblog.post());
        paths.push(page.path.clone());
        paths.extend(page.images.iter().cloned());
    }
    paths
}

/// Share of a load that was answered, in percent.
fn answered(played: &Played) -> f64 {
    let steps = || played.steps.iter().map(|(step, _)| step);
    let answered: u64 = steps().map(|step| step.answered).sum();
    let offered: u64 = steps().map(|step| step.offered).sum();
    answered as f64 * 100.0 / (offered as f64).max(1.0)
}

fn findings(alone: &Day, helped: &Day) -> Findings {
    let share =
        |name: &str, played: &Played| Row::told(name, "%", answered(played)).bounded_by(100.0);
    Findings {
        method: vec![
            format!(
                "The day's rates times {BUSIER:.0}, in steps of an hour; a quarter of an hour \
                 lasts less than its time, with the same number of requests a second."
            ),
            format!(
                "The crowd comes after four hours, {HEIGHT:.0} visits a second at its height, for one page \
                 with its images; it halves each hour."
            ),
        ],
        rows: vec![
            share("everyday visitors answered, alone", &alone.everyday),
            share("the crowd answered, alone", &alone.crowd),
            share(
                "everyday visitors answered, with neighbours",
                &helped.everyday,
            )
            .judged_by(Goal::AtLeast(95.0)),
            share("the crowd answered, with neighbours", &helped.crowd)
                .judged_by(Goal::AtLeast(90.0)),
        ],
        plots: plots(alone, helped),
        ..Findings::default()
    }
}

fn plots(alone: &Day, helped: &Day) -> Vec<Plot> {
    let plot = |title: &str, text: &str, up: &str| Plot {
        title: title.to_owned(),
        text: text.to_owned(),
        across: "seconds".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    let both = |day: &Day, of: fn(u64, u64) -> u64| -> Vec<(f64, f64)> {
        let pairs = day.everyday.seconds.iter().zip(&day.crowd.seconds);
        pairs
            .map(|(one, other)| {
                let sum = of(one.offered, one.answered) + of(other.offered, other.answered);
                (one.at, sum as f64)
            })
            .collect()
    };
    let requests = plot(
        "Requests",
        "Of the day and of the crowd together.",
        "requests/s",
    )
    .with("offered", Mark::Limit, both(helped, |offered, _| offered))
    .with(
        "answered with neighbours",
        Mark::Line,
        both(helped, |_, answered| answered),
    )
    .with(
        "answered alone",
        Mark::Line,
        both(alone, |_, answered| answered),
    );
    let mut data = plot(
        "Who sends how much, with neighbours",
        "As each server accounts for it.",
        "kB/s",
    );
    for host in [SOURCE].iter().chain(&NEIGHBOURS) {
        let looks = helped.looks.get(*host).map_or(&[][..], Vec::as_slice);
        let points = levels(looks, |look| look.seen.rates.out as f64 / 1000.0);
        data = data.with(host, Mark::Line, points);
    }
    vec![requests, data]
}
