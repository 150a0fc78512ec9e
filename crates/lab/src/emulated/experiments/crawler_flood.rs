//! A crawler flood: programs that fetch every page of a site, faster than its line can carry.
//!
//! It is the commonest overload of today, and no reason to call for help: neighbours would carry
//! the crawlers' traffic, and fetch every page once for it. So no mutual aid may be spent on it,
//! and readers must still be served. It is played twice: with crawlers that say who they are, as
//! the large ones do, and with one that claims to be a browser.

use std::fmt::Write as _;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, Wants};
use super::super::network::Network;
use super::super::sampler::{Looks, Sampler, levels};
use super::super::servers::{Company, Files, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load};

const TOPOLOGY: &str = include_str!("../../../topologies/crawler_flood.toml");
const SOURCE: &str = "wiki";
const NEIGHBOURS: [&str; 2] = ["alice", "bob"];
/// Pages of the site, of 10 KB each: more than crawlers fetch while it is played.
const PAGES: usize = 6000;
const PAGE_BYTES: usize = 10_000;
/// Pages that readers want.
const FRONT_PAGES: usize = 10;
/// Requests a second: of crawlers twice what the line carries, of readers a tenth of it.
const CRAWLERS: f64 = 90.0;
const READERS: f64 = 5.0;
const DECLARED: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; \
                       +https://openai.com/gptbot)";
const READER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Who crawls, in the words of the report, with the name that is given.
const CASES: [(&str, &str); 2] = [("declared", DECLARED), ("undeclared", READER)];

/// Plays it with both kinds of crawlers.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let mut findings = Findings {
        method: vec![format!(
            "Crawlers ask for {CRAWLERS:.0} different pages a second, twice what the line can carry; \
             readers for {READERS:.0} of ten front pages. Declared crawlers say who they are; \
             undeclared ones are one address with the name of a browser."
        )],
        ..Findings::default()
    };
    for (kind, agent) in CASES {
        bench.say(&format!("{kind} crawlers:"));
        let case = play(bench, &topology, (kind, agent))?;
        findings.rows.extend(rows(kind, &case));
        findings.plots.extend(plots(kind, &case));
    }
    Ok(findings)
}

/// One kind of crawlers, as it went.
struct Case {
    crawlers: Played,
    readers: Played,
    looks: Looks,
}

fn play(bench: &Bench, topology: &Topology, (kind, agent): (&str, &str)) -> Result<Case, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(kind);
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let files = pages();
    let community = Community {
        source: SOURCE,
        neighbours: &NEIGHBOURS,
        files: &files,
        company: Company::Member,
        usable: 0.8,
        law: Law::Combined,
    };
    let sites = community.start(bench, &mut servers, &network)?;
    let seconds = match bench.form {
        Form::Full => 60.0,
        Form::Compressed => 25.0,
        Form::Shortest => 3.0,
    };
    let load = |agent: &str, rate: f64, paths: Vec<String>| {
        let step = Step {
            rate,
            seconds,
            wants: Wants::Files(paths),
        };
        LoadPlan {
            agent: agent.to_owned(),
            tell_every: 4,
            ..plain_load(&network, &folder, SOURCE, vec![step])
        }
    };
    let all: Vec<String> = files.keys().cloned().collect();
    let front = all[..FRONT_PAGES].to_vec();
    let crawlers = load(agent, CRAWLERS, all);
    let readers = load(READER, READERS, front);
    let from = |host| Route {
        from: network.host(host),
        source: network.host(SOURCE),
    };
    let sampler = Sampler::start(&sites)?;
    let [crawlers, readers] =
        bench.play_both([(from("crawlers"), &crawlers), (from("readers"), &readers)])?;
    Ok(Case {
        crawlers,
        readers,
        looks: sampler.stop(),
    })
}

fn pages() -> Files {
    (0..PAGES)
        .map(|number| {
            let mut page = format!("<!doctype html>\n<title>Article {number}</title>\n");
            while page.len() < PAGE_BYTES {
                let _ = writeln!(page, "<p>What is known of {number}, at some length.");
            }
            (format!("/article-{number:04}.html"), page.into())
        })
        .collect()
}

fn rows(kind: &str, case: &Case) -> Vec<Row> {
    let answered = |played: &Played| {
        let steps = || played.steps.iter().map(|(step, _)| step);
        let answered: u64 = steps().map(|step| step.answered).sum();
        let offered: u64 = steps().map(|step| step.offered).sum();
        answered as f64 * 100.0 / (offered as f64).max(1.0)
    };
    let steps = case.crawlers.steps.iter();
    let redirected: u64 = steps.map(|(step, _)| step.redirected).sum();
    let source = case.looks.get(SOURCE).into_iter().flatten();
    let drafted = source.map(|look| look.seen.rescue_servers.len()).max();
    let row = |what: &str, unit, ours| Row::told(&format!("{kind}: {what}"), unit, ours);
    vec![
        row(
            "rescue servers drafted",
            "servers",
            drafted.unwrap_or(0) as f64,
        )
        .judged_by(Goal::AtMost(0.0)),
        row(
            "crawlers' requests redirected to neighbours",
            "requests",
            redirected as f64,
        )
        .judged_by(Goal::AtMost(0.0)),
        row("readers answered", "%", answered(&case.readers))
            .bounded_by(100.0)
            .judged_by(Goal::AtLeast(95.0)),
        row("crawlers answered", "%", answered(&case.crawlers)),
    ]
}

fn plots(kind: &str, case: &Case) -> Vec<Plot> {
    let mut data = Plot {
        title: format!("Who sends how much, with {kind} crawlers"),
        text: "As each server accounts for it. What neighbours send is aid.".to_owned(),
        across: "seconds".to_owned(),
        up: "kB/s".to_owned(),
        ..Plot::default()
    };
    for host in [SOURCE].iter().chain(&NEIGHBOURS) {
        let looks = case.looks.get(*host).map_or(&[][..], Vec::as_slice);
        let points = levels(looks, |look| look.seen.rates.out as f64 / 1000.0);
        data = data.with(host, Mark::Line, points);
    }
    let times = |played: &Played| {
        let seconds = played.seconds.iter();
        seconds.flat_map(|second| second.told.clone()).collect()
    };
    let waits = Plot {
        title: format!("How long they waited, with {kind} crawlers"),
        text: "One request in four, by when it was meant to be asked.".to_owned(),
        across: "seconds".to_owned(),
        up: "seconds".to_owned(),
        ..Plot::default()
    };
    let waits = waits
        .with("crawlers", Mark::Dots, times(&case.crawlers))
        .with("readers", Mark::Dots, times(&case.readers));
    vec![data, waits]
}
