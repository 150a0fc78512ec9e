//! dotslash 6.3.4, Figure 11: one origin server and five that can help, in a LAN.
//!
//! Ten files of 4 KB on average are asked for in turn, each request over a connection of its own,
//! at a rate that grows to 2000 a second and beyond. Every server is looked at once a second: the
//! origin should settle at T_high of its D_out, draft the largest neighbours first, and give each
//! of them its share.

use std::collections::BTreeMap;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route, overhead};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, Wants};
use super::super::network::Network;
use super::super::sampler::{Looks, Sampler, growth, levels};
use super::super::servers::{Company, Servers};
use super::super::topology::Topology;
use super::dotslash_dsl::ten_files;
use super::{Community, Law, plain_load};
use crate::demo::watch::Look;

const TOPOLOGY: &str = include_str!("../../../topologies/dotslash_lan.toml");
/// The origin server, and those that can help, largest first.
const ORIGIN: &str = "bjs";
const NEIGHBOURS: [&str; 5] = ["maglev", "ottawa", "delhi", "beirut", "ankara"];
/// Mean size of the files.
const FILE_BYTES: usize = 4096;
/// T_high of the origin's D_out: where it should stay, in kB/s.
const SETTLES_AT: f64 = 750.0;
/// Request rates at which it should, as in the paper.
const SETTLED_RATES: std::ops::RangeInclusive<f64> = 400.0..=1600.0;

/// Plays all of it.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let link = topology.link_of_source();
    let network = Network::build(&topology)?;
    let folder = bench.folder("servers");
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let files = ten_files(FILE_BYTES);
    let community = Community {
        source: ORIGIN,
        neighbours: &NEIGHBOURS,
        files: &files,
        company: Company::Member,
        usable: 0.8,
        law: Law::Load,
    };
    let sites = community.start(bench, &mut servers, &network)?;
    let plan = LoadPlan {
        until: bench.form.search(),
        ..plain_load(
            &network,
            &folder,
            ORIGIN,
            steps(bench.form, files.keys().cloned().collect()),
        )
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(ORIGIN),
    };
    let sampler = Sampler::start(&sites)?;
    let played = bench.play(route, &plan)?;
    findings(link, &played, &sampler.stop())
}

fn steps(form: Form, paths: Vec<String>) -> Vec<Step> {
    let (rates, seconds): (Vec<f64>, f64) = match form {
        Form::Full => ((1..=20).map(|step| f64::from(step) * 100.0).collect(), 45.0),
        Form::Compressed => ((1..=5).map(|step| f64::from(step) * 400.0).collect(), 12.0),
        Form::Shortest => (vec![800.0, 1600.0], 4.0),
    };
    // Beyond the paper's last rate: the goal, and what more there is.
    let beyond: &[f64] = match form {
        Form::Full => &[2050.0, 2200.0, 2300.0, 2400.0],
        Form::Compressed => &[2050.0, 2300.0, 2400.0],
        Form::Shortest => &[2050.0],
    };
    let rates = rates.into_iter().chain(beyond.iter().copied());
    rates
        .map(|rate| Step {
            rate,
            seconds,
            wants: Wants::Files(paths.clone()),
        })
        .collect()
}

fn findings(link: f64, played: &Played, looks: &Looks) -> Result<Findings, LabError> {
    let (best, sent) = played
        .best()
        .ok_or(LabError::NothingHeld("the first request rate"))?;
    let redirect = best.redirect_size().unwrap_or_default();
    let beside = overhead(best, *sent);
    let drafted = drafted(looks);
    let bound = link / (redirect + beside);
    // In steps of four seconds those who are needed are not drafted before a step is over.
    let held = Row::told("requests held", "requests/s", best.answered_rate)
        .published(2000.0)
        .bounded_by(bound)
        .judged_by(Goal::AtLeast(2030.0))
        .only_in_longer_forms();
    let received = Row::told("received by visitors", "MB/s", played.bytes_max() / 1e6)
        .published(9.2)
        .bounded_by(bound * FILE_BYTES as f64 / 1e6);
    let mut rows = vec![held, received];
    rows.extend(origin_rows(link, played, looks, &drafted));
    Ok(Findings {
        method: vec![
            format!(
                "A redirect was {redirect:.0} bytes long, and its connection cost the origin's link \
                 {beside:.0} bytes more, as counted at the link (the paper: 227 and 358; its bound \
                 of 2137 requests a second is 2030 at 95 %)."
            ),
            format!("Drafted in this order: {}.", drafted.join(", ")),
            "Rates of the servers are their own, once a second; what visitors received is theirs."
                .to_owned(),
        ],
        rows,
        plots: plots(played, looks),
        figures: [
            ("redirect_bytes".to_owned(), redirect),
            ("redirect_overhead_bytes".to_owned(), beside),
        ]
        .into(),
        ..Findings::default()
    })
}

/// What the origin itself shows: its rate, and whom it drafted.
fn origin_rows(link: f64, played: &Played, looks: &Looks, drafted: &[String]) -> [Row; 3] {
    let origin = looks.get(ORIGIN).map_or(&[][..], Vec::as_slice);
    let in_order = NEIGHBOURS.iter().zip(drafted);
    let in_order = in_order.take_while(|(one, other)| one == other).count();
    let peak = origin.iter().map(|look| look.seen.link.peak).max();
    let settled = settled_rate(played, origin);
    [
        Row::told(
            "the origin's data rate from 400 to 1600 requests/s",
            "kB/s",
            settled,
        )
        .published(SETTLES_AT)
        .bounded_by(1000.0)
        .judged_by(Goal::AtMost(SETTLES_AT * 1.05))
        // It has not settled when a step of the shortest form is over.
        .only_in_longer_forms(),
        Row::told(
            "the origin's worst second",
            "kB/s",
            peak.unwrap_or(0) as f64 / 1000.0,
        )
        .bounded_by(link / 1000.0),
        Row::told(
            "rescue servers drafted, largest first",
            "servers",
            in_order as f64,
        )
        .published(5.0)
        .judged_by(Goal::AtLeast(drafted.len().max(1) as f64)),
    ]
}

/// Neighbours in the order in which the origin drafted them.
fn drafted(looks: &Looks) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    for look in looks.get(ORIGIN).into_iter().flatten() {
        for peer in &look.seen.rescue_servers {
            let name = peer.site.split('.').next().unwrap_or_default();
            if !order.iter().any(|known| known == name) {
                order.push(name.to_owned());
            }
        }
    }
    order
}

/// The origin's d_out, in kB/s, while it redirects less than everything. The first third of each
/// step is left out.
fn settled_rate(played: &Played, origin: &[Look]) -> f64 {
    let mut begins = 0.0;
    let mut spans = Vec::new();
    for (number, (step, _)) in played.steps.iter().enumerate() {
        // In the first step neighbours are drafted.
        if number > 0 && SETTLED_RATES.contains(&step.rate) {
            spans.push(begins + step.seconds / 3.0..begins + step.seconds);
        }
        begins += step.lasted;
    }
    let settled = |look: &&Look| {
        spans
            .iter()
            .any(|span| span.contains(&look.at.as_secs_f64()))
    };
    let rates: Vec<u64> = origin
        .iter()
        .filter(settled)
        .map(|look| look.seen.rates.out)
        .collect();
    rates.iter().sum::<u64>() as f64 / (rates.len() as f64).max(1.0) / 1000.0
}

fn plots(played: &Played, looks: &Looks) -> Vec<Plot> {
    let plot = |title: &str, text: &str, up: &str| Plot {
        title: title.to_owned(),
        text: text.to_owned(),
        across: "seconds".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    let of = |host: &str| looks.get(host).map_or(&[][..], Vec::as_slice);
    let offered = played
        .seconds
        .iter()
        .map(|second| (second.at, second.offered as f64));
    let mut requests = plot(
        "Figure 11 (a): requests",
        "Requests that were offered, redirects by the origin, and requests that each rescue server \
         answered for it.",
        "requests/s",
    )
    .with("offered", Mark::Limit, offered.collect())
    .with(
        "bjs redirects",
        Mark::Line,
        growth(of(ORIGIN), |look| look.seen.lifetime.redirects),
    );
    let kilobytes = |look: &Look| look.seen.rates.out as f64 / 1000.0;
    let total = total(looks);
    let mut data = plot(
        "Figure 11 (b): data",
        "What each server sends, as it accounts for it. The origin's rate stays where it is while \
         requests grow.",
        "kB/s",
    )
    .with("all", Mark::Limit, total)
    .with("bjs", Mark::Line, levels(of(ORIGIN), kilobytes));
    for host in NEIGHBOURS {
        let answered = growth(of(host), |look| look.seen.lifetime.rescue_requests);
        requests = requests.with(host, Mark::Line, answered);
        data = data.with(host, Mark::Line, levels(of(host), kilobytes));
    }
    vec![requests, data]
}

/// What all servers send together, by whole seconds.
fn total(looks: &Looks) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for look in looks.values().flatten() {
        *sums.entry(look.at.as_secs()).or_default() += look.seen.rates.out as f64 / 1000.0;
    }
    sums.into_iter()
        .map(|(second, sum)| (second as f64, sum))
        .collect()
}
