//! hotspot-avoidance 6.2 and 6.3, Figure 9 (a) to (d): how many pages, and how many redirects, a
//! source behind 10 Mb/s can give.
//!
//! As in the paper, a connection carries ten requests, one after the other. Pages of 10, 50 and 100
//! KB are asked of a source that stands alone; then of one whose mirror takes everything. Visitors
//! do not follow the redirects: what is measured is the source. The paper switched its source to
//! redirecting beforehand; here a first load does that, which is not measured.
//!
//! Then wrk asks a source without a link limit for as many redirects as one core can give.

mod one_core;

use levee_vocab::{ByteRate, Random};

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route, overhead};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{AGENT, LoadPlan, Log, Step, Until, Wants};
use super::super::network::Network;
use super::super::servers::{self, Company, Files, SITES, Servers, Site, SitePlan, names};
use super::super::topology::Topology;
use super::{MORE, nothing};
use crate::crowd::client::{Following, Protocol};

const TOPOLOGY: &str = include_str!("../../../topologies/hotspot_redirects.toml");
/// Sizes of the pages in kB, and requests a second that the paper's server gave of each.
const PAGES: [(usize, f64); 3] = [(10, 90.0), (50, 20.0), (100, 10.0)];
/// Requests a second that the paper's server redirected.
const PUBLISHED_REDIRECTS: f64 = 900.0;
const REQUESTS_PER_CONNECTION: u32 = 10;

/// Plays all of it.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let link = topology.link_of_source();
    let files = pages();
    servers::write(&bench.folder("files"), &files)?;
    let ground = Ground {
        bench,
        topology,
        files,
        link,
    };
    let mut plain = Vec::new();
    let sizes = match bench.form {
        Form::Full | Form::Compressed => PAGES.len(),
        Form::Shortest => 1,
    };
    for (kilobytes, _) in PAGES.into_iter().take(sizes) {
        bench.say(&format!("pages of {kilobytes} KB, alone:"));
        plain.push(ground.plain(kilobytes)?);
    }
    bench.say("redirects over ten-request connections:");
    let redirecting = ground.redirecting()?;
    bench.say("redirects on one core, without a limit:");
    let core = one_core::run(&ground)?;
    findings(link, &plain, &redirecting, &core)
}

/// What all parts share.
struct Ground<'a> {
    bench: &'a Bench,
    topology: Topology,
    files: Files,
    link: f64,
}

fn pages() -> Files {
    let mut random = Random::from_seed(9);
    PAGES
        .iter()
        .map(|(kilobytes, _)| {
            let bytes = kilobytes * 1024;
            let body: Vec<u8> = (0..bytes).map(|_| random.next_bits() as u8).collect();
            (path(*kilobytes), body.into())
        })
        .collect()
}

fn path(kilobytes: usize) -> String {
    format!("/page-{kilobytes}k.bin")
}

impl Ground<'_> {
    /// Pages of a source that stands alone, at rates around what its link can carry.
    fn plain(&self, kilobytes: usize) -> Result<Played, LabError> {
        let network = Network::build(&self.topology)?;
        let folder = self.bench.folder(&format!("plain-{kilobytes}"));
        let owner = self.bench.ground.owner;
        let servers = Servers::new(&network, &self.bench.levee, &folder, owner);
        let link = network.host("source").plan.link;
        let _source = servers.start(&self.source("source", link, Company::Alone))?;
        // Heads of frames are about a twentieth of a page.
        let full = self.link / (kilobytes as f64 * 1024.0 * 1.05);
        let (shares, seconds): (&[f64], f64) = match self.bench.form {
            Form::Full => (
                &[0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.1, 1.5, 2.0, 4.0, 8.0],
                30.0,
            ),
            // What is still on its way when a step ends counts for more where pages are large.
            Form::Compressed if kilobytes >= 100 => (&[0.98, 1.5], 20.0),
            Form::Compressed => (&[0.98, 1.5], 12.0),
            Form::Shortest => (&[0.98], 4.0),
        };
        let rates = shares.iter().map(|share| share * full);
        let plan = self.load(&network, "source", kilobytes, (rates.collect(), seconds));
        self.bench.play(self.route(&network), &plan)
    }

    /// Redirects of a source whose mirror takes everything.
    fn redirecting(&self) -> Result<Played, LabError> {
        let network = Network::build(&self.topology)?;
        let folder = self.bench.folder("redirecting");
        let owner = self.bench.ground.owner;
        let mut servers = Servers::new(&network, &self.bench.levee, &folder, owner);
        let link = network.host("source").plan.link;
        let _running = self.start_with_mirror(&mut servers, "source", link)?;
        self.warm_up(&network, "source")?;
        let (rates, seconds): (Vec<f64>, f64) = match self.bench.form {
            Form::Full => ((1..=60).map(|step| f64::from(step) * 100.0).collect(), 20.0),
            Form::Compressed => (vec![2500.0, 4700.0, 4800.0, 5000.0], 7.0),
            Form::Shortest => (vec![1500.0, 4400.0], 3.0),
        };
        let mut plan = self.load(&network, "source", 10, (rates, seconds));
        plan.until = self.bench.form.search();
        self.bench.play(self.route(&network), &plan)
    }

    /// Starts a source with its mirror, and waits until it knows it.
    fn start_with_mirror(
        &self,
        servers: &mut Servers<'_>,
        source: &'static str,
        link: Option<ByteRate>,
    ) -> Result<Vec<Site>, LabError> {
        servers.start_registry()?;
        let nothing = nothing();
        let mirror = servers.start(&SitePlan {
            files: &nothing,
            ..self.source("mirror", Some(MIRROR_LINK), Company::Member)
        })?;
        let source = servers.start(&self.source(source, link, Company::Member))?;
        self.bench.wait_for_candidates(&source, 1)?;
        Ok(vec![source, mirror])
    }

    /// Asks until the source redirects. What comes of it is not measured.
    fn warm_up(&self, network: &Network, source: &str) -> Result<(), LabError> {
        let mut plan = self.load(network, source, 10, (vec![400.0], 3.0));
        plan.following = Following::Stays;
        self.bench.say("warm-up, not measured:");
        self.bench.play(self.route(network), &plan).map(drop)
    }

    fn source(&self, host: &'static str, link: Option<ByteRate>, company: Company) -> SitePlan<'_> {
        SitePlan {
            host,
            files: &self.files,
            link,
            usable: 0.8,
            company,
            more: MORE,
        }
    }

    fn load(
        &self,
        network: &Network,
        source: &str,
        kilobytes: usize,
        (rates, seconds): (Vec<f64>, f64),
    ) -> LoadPlan {
        let steps = rates.into_iter().map(|rate| Step {
            rate,
            seconds,
            wants: Wants::Session {
                path: path(kilobytes),
                requests: REQUESTS_PER_CONNECTION,
            },
        });
        LoadPlan {
            site: format!("{source}.{SITES}"),
            names: names(network),
            resolvers: None,
            files: self.bench.folder("files"),
            agent: AGENT.to_owned(),
            following: Following::Stays,
            protocol: Protocol::Http1,
            steps: steps.collect(),
            until: Until::Done,
            tell_every: 0,
            authorities: Vec::new(),
            log: Log::Nothing,
        }
    }

    fn route<'n>(&self, network: &'n Network) -> Route<'n> {
        Route {
            from: network.host("visitors"),
            source: network.host("source"),
        }
    }
}

/// The mirror's link as its settings tell it: it must never be what bounds the source.
const MIRROR_LINK: ByteRate = ByteRate::from_kilobytes(10_000_000);

fn findings(
    link: f64,
    plain: &[Played],
    redirecting: &Played,
    core: &one_core::OneCore,
) -> Result<Findings, LabError> {
    let mut rows = Vec::new();
    for (played, (kilobytes, published)) in plain.iter().zip(PAGES) {
        let (best, sent) = played
            .best()
            .ok_or(LabError::NothingHeld("the first rate"))?;
        let page = best.own_bytes as f64 / (best.answered as f64).max(1.0);
        let bound = link / (page + overhead(best, *sent));
        let name = format!("pages of {kilobytes} KB");
        let row = Row::told(&name, "requests/s", best.answered_rate)
            .published(published)
            .bounded_by(bound);
        rows.push(row.judged_by(Goal::OfBound(0.95)));
    }
    let (best, sent) = redirecting
        .best()
        .ok_or(LabError::NothingHeld("the first rate"))?;
    let size = best.redirect_size().unwrap_or_default();
    let beside = overhead(best, *sent);
    rows.push(
        Row::told("redirects at 10 Mb/s", "requests/s", best.redirected_rate)
            .published(PUBLISHED_REDIRECTS)
            .bounded_by(link / (size + beside))
            .judged_by(Goal::OfBound(0.95))
            // Its last rate is below that.
            .only_in_longer_forms(),
    );
    rows.extend(core.rows());
    Ok(Findings {
        method: vec![
            format!(
                "A redirect was {size:.0} bytes long and cost the link {beside:.0} bytes more, a \
                 tenth of its connection among them, as counted at the link."
            ),
            "Told is the most that was answered a second at any rate below the first at which more \
             than a tenth of the requests failed."
                .to_owned(),
            core.in_words(),
        ],
        rows,
        plots: plots(link, plain, redirecting),
        figures: [
            ("redirect_bytes".to_owned(), size),
            ("redirect_overhead_bytes".to_owned(), beside),
            (
                "redirects_per_cpu_second".to_owned(),
                core.per_processor_second(),
            ),
        ]
        .into(),
        ..Findings::default()
    })
}

fn plots(link: f64, plain: &[Played], redirecting: &Played) -> Vec<Plot> {
    let draw = |title: &str, text: &str, up: &str, of: &dyn Fn(&Played) -> Vec<(f64, f64)>| {
        let mut plot = Plot {
            title: title.to_owned(),
            text: text.to_owned(),
            across: "requests a second, demanded".to_owned(),
            up: up.to_owned(),
            ..Plot::default()
        };
        for (played, (kilobytes, _)) in plain.iter().zip(PAGES) {
            plot = plot.with(&format!("{kilobytes} KB"), Mark::Line, of(played));
        }
        plot.with("redirects", Mark::Line, of(redirecting))
    };
    let throughput = draw(
        "Figure 9 (b): network throughput",
        "What left the source's link, with all heads. Dashed: what it can carry.",
        "kB/s",
        &|played| played.by_rate(|step, sent| sent.bytes as f64 / step.lasted / 1000.0),
    );
    let ends = redirecting.by_rate(|_, _| link / 1000.0);
    vec![
        draw(
            "Figure 9 (a): response rate",
            "Answered requests a second; the source of the redirects gives those.",
            "requests/s",
            &|played| played.by_rate(|step, _| step.answered_rate),
        ),
        throughput.with("the link, at most", Mark::Limit, ends),
        draw(
            "Figure 9 (c): response time",
            "Median over all requests; one that failed counts as 7 s.",
            "seconds",
            &|played| played.by_rate(|step, _| step.p50),
        ),
        draw(
            "Figure 9 (d): errors",
            "Requests that were refused or not answered within 7 s.",
            "%",
            &|played| played.by_rate(|step, _| step.failed_share() * 100.0),
        ),
    ]
}
