//! R5 and R10: what redirects can do ends at the source's link, what its name does not.
//!
//! ```text
//!   visitors ──▶ a hundred caching resolvers ──▶ BIND ◀── updates ── the source
//!      └──▶ the source (53.9 kB/s usable) ──302──▶ up to six neighbours ◀── by its name
//! ```
//!
//! The site of dotslash figure 10 asks for help three times: with redirects alone, with its name
//! alone, and with both. With redirects alone nothing passes B / (n + o), because every visitor
//! comes to the source first. By its name visitors come to everybody in equal parts, the source
//! with its small link among them. With both, what comes to the source is redirected, and its part
//! of the crowd is one of seven.

use std::time::Duration;

use super::super::LabError;
use super::super::bench::{Bench, Form, Played, Route, overhead};
use super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::generator::{LoadPlan, ResolverPlan, Step, Wants};
use super::super::name_server::NameServer;
use super::super::network::Network;
use super::super::servers::{Company, Files, SITES, Servers, Site, SitePlan};
use super::super::topology::Topology;
use super::dotslash_dsl::ten_files;
use super::{nothing, plain_load};

const TOPOLOGY: &str = include_str!("../../../topologies/dns_round_robin.toml");
const SOURCE: &str = "gtidsl1";
const NEIGHBOURS: [&str; 6] = [
    "neighbour1",
    "neighbour2",
    "neighbour3",
    "neighbour4",
    "neighbour5",
    "neighbour6",
];
/// U, as in figure 10.
const USABLE: f64 = 0.95;
/// Mean size of the files, as in figure 10.
const FILE_BYTES: usize = 6144;
/// Resolvers between the visitors and the name server.
const RESOLVERS: usize = 100;

/// How visitors come to rescue servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Redirects,
    Name,
    Both,
}

impl Way {
    const ALL: [Self; 3] = [Self::Redirects, Self::Name, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::Redirects => "redirects alone",
            Self::Name => "DNS alone",
            Self::Both => "both",
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Redirects => "redirects",
            Self::Name => "name",
            Self::Both => "both",
        }
    }

    const fn is_named(self) -> bool {
        match self {
            Self::Redirects => false,
            Self::Name | Self::Both => true,
        }
    }

    /// Rates, and seconds for each. The first one only brings the rescue servers: a name needs some
    /// seconds to lead to them, and a crowd that outruns it is behind before they are there.
    fn steps(self, form: Form) -> (Vec<f64>, f64) {
        let rates = |rates: &[u32]| rates.iter().copied().map(f64::from).collect();
        match (form, self) {
            (Form::Full, Self::Redirects) => ((1..=12).map(|n| f64::from(n * 12)).collect(), 60.0),
            (Form::Full, Self::Name) => ((1..=16).map(|n| f64::from(n * 6)).collect(), 120.0),
            (Form::Full, Self::Both) => ((1..=14).map(|n| f64::from(n * 44)).collect(), 120.0),
            (Form::Compressed, Self::Redirects) => (rates(&[20, 88, 132]), 6.0),
            (Form::Compressed, Self::Name) => (rates(&[6, 16, 36, 56]), 10.0),
            (Form::Compressed, Self::Both) => (rates(&[20, 88, 264, 440, 528]), 6.0),
            (Form::Shortest, Self::Redirects) => (rates(&[20, 90]), 3.0),
            (Form::Shortest, Self::Name) => (rates(&[6, 14]), 3.0),
            (Form::Shortest, Self::Both) => (rates(&[20, 90]), 3.0),
        }
    }

    /// How long resolvers remember: shorter than a step, so that each is played with what it needs.
    const fn ttl(form: Form) -> Duration {
        match form {
            Form::Full => Duration::from_secs(30),
            Form::Compressed | Form::Shortest => Duration::from_secs(1),
        }
    }
}

/// Plays all three.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let files = ten_files(FILE_BYTES);
    let mut played = Vec::new();
    for way in Way::ALL {
        bench.say(&format!("{}:", way.name()));
        played.push((way, play(bench, &topology, &files, way)?));
    }
    let link = topology.link_of_source();
    findings(link, &played)
}

fn play(bench: &Bench, topology: &Topology, files: &Files, way: Way) -> Result<Played, LabError> {
    let network = Network::build(topology)?;
    let folder = bench.folder(way.folder());
    let mut servers = Servers::new(&network, &bench.levee, &folder, bench.ground.owner);
    let site = format!("{SOURCE}.{SITES}");
    let name_server = NameServer::start(
        network.host("nameserver"),
        &folder.join("nameserver"),
        (SITES, &[(site.clone(), network.host(SOURCE))]),
        &[],
    )?;
    let mut more = format!(
        "[rescue]\nregistry_period = \"1 s\"\nobject_ttl = \"2 h\"\nredirects = {}\n\n\
         [hot_spots]\nlaw = \"load\"\n\n",
        way != Way::Name
    );
    if way.is_named() {
        let key = folder.join("levee.key");
        more += &name_server.settings(&key, Way::ttl(bench.form))?;
    }
    let _running = start(bench, &mut servers, &network, (files, &more))?;
    let (rates, seconds) = way.steps(bench.form);
    let wants = Wants::Files(files.keys().cloned().collect());
    let steps = rates.into_iter().map(|rate| Step {
        rate,
        seconds,
        wants: wants.clone(),
    });
    let plan = LoadPlan {
        resolvers: Some(ResolverPlan {
            server: name_server.address,
            count: RESOLVERS,
        }),
        until: bench.form.search(),
        ..plain_load(&network, &folder, SOURCE, steps.collect())
    };
    let route = Route {
        from: network.host("visitors"),
        source: network.host(SOURCE),
    };
    bench.play(route, &plan)
}

fn start(
    bench: &Bench,
    servers: &mut Servers<'_>,
    network: &Network,
    (files, more): (&Files, &str),
) -> Result<Vec<Site>, LabError> {
    let nothing = nothing();
    let plan = |host, files, more| SitePlan {
        host,
        files,
        link: network.host(host).plan.link,
        usable: USABLE,
        company: Company::Member,
        more,
    };
    servers.start_registry()?;
    let mut sites = Vec::new();
    for host in NEIGHBOURS {
        sites.push(servers.start(&plan(host, &nothing, super::MORE))?);
    }
    let source = servers.start(&plan(SOURCE, files, more))?;
    bench.wait_for_candidates(&source, NEIGHBOURS.len())?;
    sites.push(source);
    Ok(sites)
}

fn findings(link: f64, played: &[(Way, Played)]) -> Result<Findings, LabError> {
    let best = |way: Way| {
        let of_way = played.iter().find(|(one, _)| *one == way);
        let best = of_way.and_then(|(_, played)| played.best().cloned());
        best.ok_or(LabError::NothingHeld("the first request rate"))
    };
    let (redirected, sent) = best(Way::Redirects)?;
    let redirect = redirected.redirect_size().unwrap_or_default();
    let bound = link / (redirect + overhead(&redirected, sent));
    // By its name the source gets its part of the crowd, and answers it with files.
    let everybody = (NEIGHBOURS.len() + 1) as f64;
    let page = FILE_BYTES as f64 + redirect + overhead(&redirected, sent);
    let by_name = everybody * link / page;
    let rows = Way::ALL.map(|way| {
        let answered = best(way).map(|(step, _)| step.answered_rate)?;
        let name = format!("R_max, {}", way.name());
        let row = Row::told(&name, "requests/s", answered);
        Ok(match way {
            // The rates of the shortest form end below both goals.
            Way::Redirects => row
                .bounded_by(bound)
                .judged_by(Goal::OfBound(0.95))
                .only_in_longer_forms(),
            Way::Name => row.bounded_by(by_name),
            Way::Both => row
                .bounded_by(everybody * bound)
                .judged_by(Goal::AtLeast(2.0 * bound))
                .only_in_longer_forms(),
        })
    });
    let rows: Result<Vec<Row>, LabError> = rows.into_iter().collect();
    let figures = [
        ("link_bytes_per_second", link),
        ("redirect_bytes", redirect),
        ("redirect_overhead_bytes", overhead(&redirected, sent)),
        ("bound_of_redirects", bound),
    ];
    Ok(Findings {
        method: method(bound),
        rows: rows?,
        plots: vec![plot(bound, played)],
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Findings::default()
    })
}

fn method(bound: f64) -> Vec<String> {
    vec![
        format!(
            "Redirects alone end at {bound:.1} requests a second: B / (n + o), with a redirect and \
             its connection as measured. The goal for both is twice that."
        ),
        format!(
            "{RESOLVERS} resolvers stand between the visitors and BIND; each remembers an answer \
             for its TTL and gives its addresses in turn."
        ),
        "With DNS alone every server gets an equal part, so the smallest link is full first: the \
         source's own. Its bound is seven times what the source can answer by itself."
            .to_owned(),
    ]
}

fn plot(bound: f64, played: &[(Way, Played)]) -> Plot {
    let widest = played.iter().max_by_key(|(_, one)| one.steps.len());
    let limit = widest.map(|(_, one)| one.by_rate(|_, _| bound));
    let plot = Plot {
        title: "Answered requests".to_owned(),
        text: "Dashed: the most that redirects alone can carry over the source's link.".to_owned(),
        across: "requests a second, offered".to_owned(),
        up: "requests/s".to_owned(),
        ..Plot::default()
    };
    let plot = plot.with("D_out / A_redi", Mark::Limit, limit.unwrap_or_default());
    played.iter().fold(plot, |plot, (way, one)| {
        let points = one.by_rate(|step, _| step.answered_rate);
        plot.with(way.name(), Mark::Line, points)
    })
}
