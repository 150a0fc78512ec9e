//! Issue 5 as one play: a closed community with liars in it loses registries and an origin in the
//! middle of a crowd.
//!
//! ```text
//!   visitors ── resolvers ── BIND ◀─ updates ─ news ──┐    three registries: one is killed,
//!      └────────────────────────────────────▶  │      │    one is cut off and mended
//!   customers, by HTTPS ──────────────────▶  shop ────┤
//!                        pebble ── ACME ──────┘       ▼
//!                                     alice, bob, carol, boaster, malory
//! ```
//!
//! Two sites are in need, because one cannot show everything: a site with HTTPS does not put
//! rescue servers into its name (`docs/guide/dns.md`), since they have no certificate for it. So
//! `news` is asked by HTTP, has its name in BIND, and dies; `shop` is asked by HTTPS with a
//! certificate that it got from pebble, and its customers follow redirects to aliases, for which
//! the others have got wildcards from pebble, by records that they put into BIND. Every member is
//! one by the authority's list, the liars too: they have keys, and lie all the same. The figures
//! are drawn from four witnesses: the visitors, who know every byte of each page; the status
//! pages; BIND; and tools of others, which look at all of it while it runs (`tools.rs`).

mod desk;
mod eyes;
mod figures;
mod registrations;
mod tools;
mod town;

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use super::super::LabError;
use super::super::alterer::TRUTH;
use super::super::bench::{Bench, Form, Played, Route};
use super::super::findings::Findings;
use super::super::generator::{AGENT, LoadPlan, Log, ResolverPlan, Step, Until, Wants};
use super::super::network::Network;
use super::super::servers::{Files, SITES, names};
use super::super::topology::Topology;
use crate::crowd::client::{Following, Protocol};
use eyes::{Eyes, Glance};
use tools::{Answers, Tools};
use town::{MEMBERS, Town};

const TOPOLOGY: &str = include_str!("../../../topologies/community.toml");
/// Who is asked by HTTP, and dies.
const NEWS: &str = "news";
/// Who is asked by HTTPS.
const SHOP: &str = "shop";
/// Both, the first one first in all figures.
const IN_NEED: [&str; 2] = [NEWS, SHOP];
/// Who says that its link is thicker than it is.
const BOASTER: &str = "boaster";
/// By so much.
const TIMES_BOASTED: f64 = 10.0;
/// Who alters a page.
const MALORY: &str = "malory";
/// Pages of a site, all asked for equally often, of which one is altered.
const PAGES: usize = 8;
const ALTERED: usize = 3;
const PAGE_BYTES: usize = 8_000;
/// Requests a second: before the crowd, and with it. Alone `news` could answer about nine, and
/// `shop` fourteen.
const BEFORE: f64 = 3.0;
const VISITORS: f64 = 30.0;
/// In the shortest form help comes too late for many: so few that they do not all wait until they
/// give up, when the crowd is over.
const VISITORS_SHORTEST: f64 = 14.0;
/// A crowd grows: at first there is this part of it.
const GROWING: f64 = 0.4;
const CUSTOMERS: f64 = 12.0;
/// Resolvers between the visitors and BIND.
const RESOLVERS: usize = 20;
/// Longest that anything is waited for that comes by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// When what happens, in seconds since the crowd's beginning.
#[derive(Clone, Copy, Debug)]
struct Timetable {
    /// Requests a second of the crowd of `news`.
    visitors: f64,
    /// Before the crowd.
    calm: f64,
    /// While the crowd of `news` grows.
    grow: f64,
    /// The first registry is killed.
    kill: f64,
    /// The third one is cut off.
    cut: f64,
    /// Both are made well again.
    heal: f64,
    /// `news` is killed.
    death: f64,
    /// How long visitors come to a dead site.
    after: f64,
}

impl Timetable {
    const fn of(form: Form) -> Self {
        match form {
            Form::Full => Self {
                visitors: VISITORS,
                calm: 10.0,
                grow: 20.0,
                kill: 20.0,
                cut: 30.0,
                heal: 90.0,
                death: 180.0,
                after: 30.0,
            },
            Form::Compressed => Self {
                visitors: VISITORS,
                calm: 2.0,
                grow: 15.0,
                kill: 5.0,
                cut: 7.0,
                heal: 20.0,
                death: 62.0,
                after: 6.0,
            },
            // As short as it can be, by what was seen on a busy machine. A second or two after the
            // crowd's beginning `news` has malory's help (`Town::helps` says why not another's),
            // and finds malory by 5 to 30 looks in two seconds more. Once the crowd fills its link
            // a look takes a second, so that must happen while the crowd still grows. The
            // registries agree three seconds after they are healed, and two to four later, seldom
            // seven, everybody has the new list. Four seconds of the full crowd are enough for the
            // one who helps instead to get every page; in seven a second one is drafted, which has
            // not got them when `news` dies.
            Form::Shortest => Self {
                visitors: VISITORS_SHORTEST,
                calm: 0.5,
                grow: 6.0,
                kill: 1.0,
                cut: 1.5,
                heal: 2.5,
                death: 10.0,
                after: 2.0,
            },
        }
    }
}

/// All that came of it.
struct Story {
    /// Visitors of `news` while it lived.
    crowd: Played,
    /// Visitors of `news` when it was dead.
    after: Played,
    /// Customers of `shop`.
    customers: Played,
    /// Everything that was seen.
    glances: Vec<Glance>,
    faults: Faults,
    /// Seconds until all certificates were there, and how many.
    certificates: (f64, usize),
    /// Addresses of `news` in BIND that are not its own: when it had died, and at the end.
    records: (usize, usize),
    /// What the tools of others said.
    tools: Vec<Answers>,
}

/// What was done to the registries, and what the authority did.
#[derive(Clone, Copy, Debug)]
struct Faults {
    began: Instant,
    killed: Instant,
    cut: Instant,
    healed: Instant,
    /// All three registries knew the same again.
    agreed: Instant,
    /// When the authority expelled who altered a page, and when all sites knew it; none where
    /// nobody had found out.
    expelled: Option<(Instant, Instant)>,
    /// `news` died.
    died: Instant,
}

/// Plays it.
pub fn run(bench: &Bench) -> Result<Findings, LabError> {
    let topology = Topology::read(TOPOLOGY)?;
    let network = Network::build(&topology)?;
    let mut town = Town::start(bench, &network, &pages())?;
    let eyes = Eyes::open(town.watched())?;
    let ready = wait_for_everybody(&eyes)?;
    let certificates = ready.sites.values().map(|site| site.certificates.len());
    let certificates = certificates.sum();
    let waited = ready.at.saturating_duration_since(town.began);
    bench.say("everybody knows everybody, and all certificates are there:");
    let story = play(bench, &network, &mut town, &eyes)?;
    Ok(figures::findings(
        &network,
        &Story {
            certificates: (waited.as_secs_f64(), certificates),
            ..story
        },
    ))
}

fn pages() -> Files {
    (0..PAGES)
        .map(|number| {
            let mut page = format!("<!doctype html>\n<title>Page {number}</title>\n");
            page.push_str(&tools::script(number));
            if number == ALTERED {
                let _ = writeln!(page, "<p>Believe this one, for {TRUTH}.");
            }
            while page.len() < PAGE_BYTES {
                let _ = writeln!(page, "<p>What is known of {number}, at some length.");
            }
            (path(number), page.into())
        })
        .collect()
}

fn path(number: usize) -> String {
    format!("/page-{number}.html")
}

/// The first glance at which those in need know whom to ask, and everybody has the certificates
/// that it orders.
fn wait_for_everybody(eyes: &Eyes) -> Result<Glance, LabError> {
    let others = MEMBERS.len() - 2;
    let since = (Instant::now(), PATIENCE);
    eyes.until(
        "everybody's registration and a certificate",
        since,
        |glance| {
            let knows_others = |name: &str| {
                let seen = glance.sites.get(name);
                seen.is_some_and(|seen| seen.candidates.len() >= others)
            };
            let certificates = || glance.sites.values().flat_map(|site| &site.certificates);
            let all_valid = certificates().all(|one| one.state == "valid");
            let has_one = glance
                .sites
                .get(SHOP)
                .is_some_and(|shop| !shop.certificates.is_empty());
            knows_others(NEWS) && knows_others(SHOP) && has_one && all_valid
        },
    )
}

fn play(
    bench: &Bench,
    network: &Network,
    town: &mut Town<'_>,
    eyes: &Eyes,
) -> Result<Story, LabError> {
    let times = Timetable::of(bench.form);
    let crowd = by_name(
        network,
        town,
        &[
            (BEFORE, times.calm),
            (GROWING * times.visitors, times.grow),
            (times.visitors, times.death - times.grow),
        ],
    );
    let after = by_name(network, town, &[(times.visitors, times.after)]);
    let length = times.death + times.after;
    let customers = by_https(network, town, &[(BEFORE, times.calm), (CUSTOMERS, length)]);
    let route = |from, source| Route {
        from: network.host(from),
        source: network.host(source),
    };
    let lasts = (bench.form, Duration::from_secs_f64(times.calm + length));
    let tools = Tools::new(network, town, (eyes, bench.folder("tools")), lasts)?;
    let (faults, answers, [crowd, after, customers]) =
        thread::scope(|scope| -> Result<_, LabError> {
            let customers = scope.spawn(|| bench.play(route("customers", SHOP), &customers));
            let crowd = scope.spawn(|| bench.play(route("visitors", NEWS), &crowd));
            let asked = scope.spawn(|| tools.ask());
            let faults = disturb(town, eyes, times);
            let crowd = crowd.join().expect("playing a load does not panic")?;
            bench.say("news is dead:");
            let died = Instant::now();
            town.kill_site(NEWS)?;
            let after = bench.play(route("visitors", NEWS), &after)?;
            let customers = customers.join().expect("playing a load does not panic")?;
            let answers = asked.join().expect("asking tools does not panic")?;
            let faults = Faults { died, ..faults? };
            Ok((faults, answers, [crowd, after, customers]))
        })?;
    let left = strangers_in_the_name(network, town)?;
    bench.say("news is back, and everybody goes home");
    town.revive_site(NEWS)?;
    let cleaned = wait_for_own_name(network, town)?;
    let glances = eyes.glances();
    town.stop_sites();
    let answers = tools.ask_afterwards(answers)?;
    tools::complaints(&answers)
        .iter()
        .for_each(|line| bench.say(line));
    let at_the_end = cleaned.max(strangers_in_the_name(network, town)?);
    Ok(Story {
        crowd,
        after,
        customers,
        glances,
        faults,
        certificates: (0.0, 0),
        records: (left, at_the_end),
        tools: answers,
    })
}

/// What happens to registries while the crowd is there.
fn disturb(town: &mut Town<'_>, eyes: &Eyes, times: Timetable) -> Result<Faults, LabError> {
    let began = Instant::now();
    let wait_until = |seconds: f64| {
        let at = began + Duration::from_secs_f64(times.calm + seconds);
        at.saturating_duration_since(Instant::now())
    };
    let wait = |seconds: f64| {
        thread::sleep(wait_until(seconds));
        Instant::now()
    };
    let killed = wait(times.kill);
    town.kill_registry(0)?;
    let cut = wait(times.cut);
    town.registry_host(2).cut()?;
    let healed = wait(times.heal);
    town.registry_host(2).mend()?;
    town.revive_registry(0)?;
    let agreed = eyes.until(
        "agreement of the registries",
        (healed, PATIENCE),
        |glance| {
            let since = glance.at.saturating_duration_since(healed).as_secs_f64();
            let registries = || glance.registries.values();
            let entries = registries().map(|one| one.entries);
            registries().count() == town::REGISTRIES.len()
                && registries().all(|one| one.agreed_within(since))
                && entries.clone().min() == entries.max()
        },
    )?;
    Ok(Faults {
        began,
        killed,
        cut,
        healed,
        agreed: agreed.at,
        expelled: expel(town, eyes, (began, wait_until(times.death - 2.0)))?,
        died: agreed.at,
    })
}

/// The authority hears of what one of those in need has found out since the crowd began, or finds
/// out within that time, and expels for all.
fn expel(
    town: &Town<'_>,
    eyes: &Eyes,
    heard: (Instant, Duration),
) -> Result<Option<(Instant, Instant)>, LabError> {
    let has_found_out = |glance: &Glance| IN_NEED.iter().any(|site| has_found_out(glance, site));
    let Ok(found) = eyes.until("who alters a page", heard, has_found_out) else {
        return Ok(None);
    };
    let serial = |glance: &Glance, name: &str| {
        let seen = glance.sites.get(name);
        seen.map_or(0, |seen| seen.trust.serial)
    };
    let before = serial(&found, NEWS);
    let issued = Instant::now();
    town.desk
        .expel(&format!("{MALORY}.{SITES}"), "it altered pages")?;
    town.hand_list_to(1)?;
    let known = eyes.until(
        "the new member list at all sites",
        (issued, PATIENCE),
        |glance| {
            let mut members = MEMBERS.iter();
            members.all(|member| serial(glance, member.0) > before)
        },
    )?;
    Ok(Some((issued, known.at)))
}

/// Whether this site has expelled who altered its page.
fn has_found_out(glance: &Glance, site: &str) -> bool {
    let seen = glance.sites.get(site);
    seen.is_some_and(|seen| {
        let mut expelled = seen.integrity.expelled.iter();
        expelled.any(|one| one.member == format!("{MALORY}.{SITES}"))
    })
}

/// Addresses in the name of `news` that are not its own.
fn strangers_in_the_name(network: &Network, town: &Town<'_>) -> Result<usize, LabError> {
    let addresses = town.name_server.addresses(&format!("{NEWS}.{SITES}"))?;
    let own = network.host(NEWS).address;
    let strangers = addresses.iter().filter(|address| **address != own);
    Ok(strangers.count())
}

/// Waits until `news` has taken out of its name what it left there when it died; says how many
/// were not taken out.
fn wait_for_own_name(network: &Network, town: &Town<'_>) -> Result<usize, LabError> {
    const WITHIN: Duration = Duration::from_secs(10);
    let end = Instant::now() + WITHIN;
    loop {
        let strangers = strangers_in_the_name(network, town)?;
        if strangers == 0 || Instant::now() >= end {
            return Ok(strangers);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Visitors of `news`, who ask their resolvers for it.
fn by_name(network: &Network, town: &Town<'_>, steps: &[(f64, f64)]) -> LoadPlan {
    LoadPlan {
        resolvers: Some(ResolverPlan {
            server: town.name_server.address,
            count: RESOLVERS,
        }),
        ..load(network, town, NEWS, steps)
    }
}

/// Customers of `shop`, who come by HTTPS.
fn by_https(network: &Network, town: &Town<'_>, steps: &[(f64, f64)]) -> LoadPlan {
    LoadPlan {
        authorities: town.believed(),
        ..load(network, town, SHOP, steps)
    }
}

fn load(network: &Network, town: &Town<'_>, site: &str, steps: &[(f64, f64)]) -> LoadPlan {
    let steps = steps.iter().map(|(rate, seconds)| Step {
        rate: *rate,
        seconds: *seconds,
        wants: Wants::Files((0..PAGES).map(path).collect()),
    });
    LoadPlan {
        site: format!("{site}.{SITES}"),
        names: names(network),
        resolvers: None,
        files: town.files(site),
        agent: AGENT.to_owned(),
        following: Following::Follows,
        protocol: Protocol::Http1,
        authorities: Vec::new(),
        steps: steps.collect(),
        until: Until::Done,
        tell_every: 4,
        log: Log::Nothing,
    }
}
