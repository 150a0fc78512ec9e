//! The fediverse stampede: somebody with many followers links a page of a small site.
//!
//! 740 servers ask for the page within a minute, each by HEAD and GET, and then for the image of
//! its preview, every request over a connection of its own (mastodon/mastodon#4486). Readers come
//! beside them: they load the page with its images. The preview's image has an absolute address, so
//! its visitors come back to the source; the images of readers do not.

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, Step, Wants};
use super::super::network::Network;
use super::super::sampler::{Looks, Sampler, levels};
use super::super::servers::{Company, Servers};
use super::super::topology::Topology;
use super::{Community, Law, plain_load, web_address};
use crate::site::{Page, Site as Weblog};

const TOPOLOGY: &str = include_str!("../../../topologies/fediverse_stampede.toml");
const SOURCE: &str = "news";
const NEIGHBOURS: [&str; 4] = ["alice", "bob", "carol", "dave"];
/// Servers that make a preview, a second; and requests of each.
const PREVIEWS: f64 = 740.0 / 60.0;
const REQUESTS_PER_PREVIEW: u32 = 3;
/// Readers a second.
const READERS: f64 = 18.0;

/// Plays it alone and with the community.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let link = topology.link_of_source();
    let weblog = Weblog::generate(5, &web_address(SOURCE));
    let mut cases = Vec::new();
    for company in [Company::Alone, Company::Member] {
        bench.say(match company {
            Company::Alone => "alone:",
            Company::Member => "with four neighbours:",
        });
        cases.push(play(bench, &topology, &weblog, company)?);
    }
    Ok(findings(link, &cases[0], &cases[1]))
}

/// One of the two cases.
struct Case {
    previews: Played,
    readers: Played,
    looks: Looks,
}

fn play(
    bench: &Bench,
    topology: &Topology,
    weblog: &Weblog,
    company: Company,
) -> Result<Case, LabError> {
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
    let seconds = match bench.form {
        Form::Full => 60.0,
        Form::Compressed => 20.0,
        Form::Shortest => 3.0,
    };
    let post = weblog.post();
    let load = |rate: f64, wants: Wants| {
        let step = Step {
            rate,
            seconds,
            wants,
        };
        LoadPlan {
            tell_every: 4,
            ..plain_load(&network, &folder, SOURCE, vec![step])
        }
    };
    let previews = load(
        PREVIEWS * f64::from(REQUESTS_PER_PREVIEW),
        Wants::Preview {
            path: post.path.clone(),
        },
    );
    let readers = load(READERS * f64::from(requests_of(post)), reader_of(post));
    let from = |host| Route {
        from: network.host(host),
        source: network.host(SOURCE),
    };
    let sampler = Sampler::start(&sites)?;
    let [previews, readers] =
        bench.play_both([(from("fediverse"), &previews), (from("readers"), &readers)])?;
    Ok(Case {
        previews,
        readers,
        looks: sampler.stop(),
    })
}

fn reader_of(post: &Page) -> Wants {
    Wants::Page {
        path: post.path.clone(),
        requests: requests_of(post),
    }
}

fn requests_of(post: &Page) -> u32 {
    1 + post.images.len() as u32
}

impl Case {
    /// Share of all requests that were answered, in percent.
    fn answered(&self) -> f64 {
        let steps = || self.previews.steps.iter().chain(&self.readers.steps);
        let offered: u64 = steps().map(|(step, _)| step.offered).sum();
        let answered: u64 = steps().map(|(step, _)| step.answered).sum();
        answered as f64 * 100.0 / (offered as f64).max(1.0)
    }

    /// Seconds until visitors were redirected.
    fn first_redirect(&self) -> Option<f64> {
        let seconds = self.previews.seconds.iter().chain(&self.readers.seconds);
        let redirected = seconds.filter(|second| second.redirected > 0);
        redirected.map(|second| second.at).reduce(f64::min)
    }

    /// What left the source's link while it was played, as a share of what fits.
    fn used(&self, link: f64) -> f64 {
        let steps = self.readers.steps.iter();
        let shares = steps.map(|(step, sent)| sent.bytes as f64 / step.lasted / link * 100.0);
        shares.fold(0.0, f64::max)
    }

    fn times(&self) -> Vec<(f64, f64)> {
        let seconds = self.previews.seconds.iter().chain(&self.readers.seconds);
        seconds.flat_map(|second| second.told.clone()).collect()
    }
}

fn findings(link: f64, alone: &Case, helped: &Case) -> Findings {
    let mut rows = vec![
        Row::told("answered alone", "%", alone.answered()),
        Row::told("answered with four neighbours", "%", helped.answered())
            .bounded_by(100.0)
            .judged_by(Goal::AtLeast(90.0)),
    ];
    if let Some(first) = helped.first_redirect() {
        let row = Row::told(
            "until the second with the first redirect was over",
            "s",
            first,
        );
        rows.push(row.judged_by(Goal::AtMost(3.0)));
    }
    rows.push(
        Row::told("the source's link, used", "%", helped.used(link))
            .bounded_by(100.0)
            .judged_by(Goal::AtMost(100.0)),
    );
    Findings {
        method: vec![
            format!(
                "740 servers a minute make a preview, {REQUESTS_PER_PREVIEW} requests each over \
                 connections of their own, and {READERS:.0} readers a second load the page with its \
                 images."
            ),
            "A request is answered when every byte of it is right within 7 s, redirects included; \
             an image of a page that never came is one that was not."
                .to_owned(),
        ],
        rows,
        plots: plots(alone, helped),
        ..Findings::default()
    }
}

fn plots(alone: &Case, helped: &Case) -> Vec<Plot> {
    let plot = |title: &str, text: &str, up: &str| Plot {
        title: title.to_owned(),
        text: text.to_owned(),
        across: "seconds".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    let mut data = plot(
        "Who sends how much, with four neighbours",
        "As each server accounts for it.",
        "kB/s",
    );
    for host in [SOURCE].iter().chain(&NEIGHBOURS) {
        let looks = helped.looks.get(*host).map_or(&[][..], Vec::as_slice);
        let points = levels(looks, |look| look.seen.rates.out as f64 / 1000.0);
        data = data.with(host, Mark::Line, points);
    }
    vec![
        plot(
            "How long visitors waited",
            "One request in four, by when it was meant to be asked, with what was given up after 7 s.",
            "seconds",
        )
        .with("with four neighbours", Mark::Dots, helped.times())
        .with("alone", Mark::Dots, alone.times()),
        data,
    ]
}
