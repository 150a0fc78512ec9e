//! Every experiment that the lab can play, as one table. Each has a file of its own.

mod cold_tail;
mod community;
mod crawler_flood;
mod dns_round_robin;
mod dotslash_dsl;
mod dotslash_lan;
mod dotslash_pages;
mod embedded_pages;
mod fediverse_stampede;
mod hotspot_clients;
mod hotspot_redirects;
mod nasa_day;

use std::path::Path;

use levee_vocab::WebAddress;

use super::LabError;
use super::bench::Bench;
use super::findings::Findings;
use super::generator::{AGENT, LoadPlan, Log, Step, Until};
use super::network::Network;
use super::servers::{Company, Files, SITES, Servers, Site, SitePlan, names};
use crate::crowd::client::{Following, Protocol};

/// One experiment.
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Which figure of which paper it plays again.
    pub source: &'static str,
    /// Minutes that it takes in full and compressed, about.
    pub minutes: [f64; 2],
    /// Plays it.
    pub run: fn(&Bench) -> Result<Findings, LabError>,
}

/// All of them, in the order in which they are best read.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "dotslash-dsl",
        title: "A site behind a DSL line, with one rescue server",
        source: "dotslash 6.3.3, figure 10",
        minutes: [45.0, 7.0],
        run: dotslash_dsl::run,
    },
    Experiment {
        name: "dotslash-pages",
        title: "The same site with pages, whose images do not come back to it",
        source: "dotslash 6.3.3, with another load",
        minutes: [25.0, 5.0],
        run: dotslash_pages::run,
    },
    Experiment {
        name: "embedded-pages",
        title: "Pages with twenty images, whose links are absolute",
        source: "hotspot-avoidance 4; dotslash 6.3.3, with another load",
        minutes: [20.0, 2.5],
        run: embedded_pages::run,
    },
    Experiment {
        name: "dotslash-lan",
        title: "One origin server and five that can help",
        source: "dotslash 6.3.4, figure 11",
        minutes: [20.0, 5.0],
        run: dotslash_lan::run,
    },
    Experiment {
        name: "dns-round-robin",
        title: "The same site with its name at its neighbours as well",
        source: "dotslash 4.2 and 4.3, with DNS",
        minutes: [60.0, 2.0],
        run: dns_round_robin::run,
    },
    Experiment {
        name: "hotspot-redirects",
        title: "Pages and redirects of a source behind 10 Mb/s",
        source: "hotspot-avoidance 6.2 and 6.3, figure 9 a to d",
        minutes: [45.0, 6.0],
        run: hotspot_redirects::run,
    },
    Experiment {
        name: "hotspot-clients",
        title: "A hundred clients arrive, with and without eight mirrors",
        source: "hotspot-avoidance 6.4, figure 9 e and f",
        minutes: [13.0, 3.0],
        run: hotspot_clients::run,
    },
    Experiment {
        name: "cold-tail",
        title: "An ordinary crowd, by its load alone and with what is hot seen before",
        source: "hotspot-avoidance 3, the shape of its log",
        minutes: [6.0, 1.5],
        run: cold_tail::run,
    },
    Experiment {
        name: "fediverse-stampede",
        title: "A post of a small site goes around the fediverse",
        source: "mastodon/mastodon#4486",
        minutes: [3.0, 3.0],
        run: fediverse_stampede::run,
    },
    Experiment {
        name: "nasa-day",
        title: "A day of NASA's web server with a Slashdot crowd over it",
        source: "the trace of 1 August 1995; hotspot-avoidance 3",
        minutes: [37.0, 2.5],
        run: nasa_day::run,
    },
    Experiment {
        name: "crawler-flood",
        title: "Crawlers fetch every page of a site",
        source: "the commonest overload of today",
        minutes: [2.0, 2.0],
        run: crawler_flood::run,
    },
    Experiment {
        name: "community",
        title: "A closed community with liars in it loses registries and an origin in a crowd",
        source: "dotslash 4.1, 4.5 and 5.3.4; the issue on the community",
        minutes: [5.0, 1.5],
        run: community::run,
    },
];

/// A site of nothing but a first page, as rescue servers have here.
fn nothing() -> Files {
    let page = "<!doctype html><title>A neighbour</title><p>A site of its own.";
    [("/index.html".to_owned(), page.into())].into()
}

/// A site and its neighbours, as most experiments have them.
struct Community<'a> {
    /// Host of the site that is asked.
    source: &'static str,
    /// Hosts of the others; nobody starts them for a site that stands alone.
    neighbours: &'a [&'static str],
    /// What the site has.
    files: &'a Files,
    /// Whether there are neighbours.
    company: Company,
    /// U of all of them.
    usable: f64,
    /// By which law they help.
    law: Law,
}

/// What a site goes by when it drafts, copies and redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// What its settings say where they say nothing: load and hot resources together.
    Combined,
    /// The load of the server alone, as dotslash.
    Load,
    /// Each resource by itself, as the paper on hot spots.
    Resources,
    /// As [`Law::Combined`], but nothing is done about what a page embeds.
    PagesAlone,
    /// As [`Law::Combined`], and links of copied pages are rewritten.
    Rewriting,
}

/// Where visitors ask for the site at the host `source`.
fn web_address(source: &str) -> WebAddress {
    let name = format!("{source}.{SITES}").parse();
    WebAddress {
        host: name.expect("hosts have short names of letters, digits and hyphens"),
        port: 80,
    }
}

/// Visitors of the site at the host `source`, whose files lie below `folder`: they come by
/// HTTP/1.1, know every name, and follow redirects. All the steps are played, and no request is
/// told.
fn plain_load(network: &Network, folder: &Path, source: &str, steps: Vec<Step>) -> LoadPlan {
    LoadPlan {
        site: format!("{source}.{SITES}"),
        names: names(network),
        resolvers: None,
        files: folder.join(source).join("public"),
        agent: AGENT.to_owned(),
        following: Following::Follows,
        protocol: Protocol::Http1,
        authorities: Vec::new(),
        steps,
        until: Until::Done,
        tell_every: 0,
        log: Log::Nothing,
    }
}

impl Law {
    /// Its name, for people and for the settings.
    const fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Load => "load",
            Self::Resources => "resources",
            Self::PagesAlone => "pages-alone",
            Self::Rewriting => "rewriting",
        }
    }

    /// The settings of a site that goes by it.
    fn settings(self) -> String {
        match self {
            Self::Combined => MORE.to_owned(),
            Self::Load | Self::Resources => {
                format!("{MORE}\n[hot_spots]\nlaw = \"{}\"\n", self.name())
            }
            Self::PagesAlone => format!("{MORE}\n[hot_spots]\nembedded = false\n"),
            Self::Rewriting => format!("{MORE}\n[hot_spots]\nrewriting = true\n"),
        }
    }
}

/// Settings of everybody: neighbours find each other soon, and keep what they have fetched longer
/// than any experiment lasts.
const MORE: &str = "[rescue]\nregistry_period = \"1 s\"\nobject_ttl = \"2 h\"\n";

impl Community<'_> {
    /// Starts everybody, and waits until the site knows its neighbours. The site comes last.
    fn start(
        &self,
        bench: &Bench,
        servers: &mut Servers<'_>,
        network: &Network,
    ) -> Result<Vec<Site>, LabError> {
        let nothing = nothing();
        let more = self.law.settings();
        let plan = |host, files| SitePlan {
            host,
            files,
            link: network.host(host).plan.link,
            usable: self.usable,
            company: self.company,
            more: &more,
        };
        let mut sites = Vec::new();
        let neighbours = match self.company {
            Company::Alone => &[],
            Company::Member => self.neighbours,
        };
        if !neighbours.is_empty() {
            servers.start_registry()?;
        }
        for host in neighbours {
            sites.push(servers.start(&plan(host, &nothing))?);
        }
        let source = servers.start(&plan(self.source, self.files))?;
        bench.wait_for_candidates(&source, neighbours.len())?;
        sites.push(source);
        Ok(sites)
    }
}
