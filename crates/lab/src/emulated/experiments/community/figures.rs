//! What the play came to: rows with goals, plots, and how it was played, in sentences.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::super::super::bench::Played;
use super::super::super::findings::{Findings, Goal, Mark, Plot, Row};
use super::super::super::generator::{ServerFigures, StepFigures};
use super::super::super::network::Network;
use super::super::super::servers::SITES;
use super::eyes::Glance;
use super::registrations;
use super::tools;
use super::town::{MEMBERS, Member, REGISTRIES};
use super::{BOASTER, Faults, IN_NEED, MALORY, PAGES, SHOP, Story, TIMES_BOASTED, has_found_out};

/// Longest until a silent link between registries is opened anew (10 s), and until both sides of a
/// new one have compared all (12 s, `docs/registry.md`): what the goal for their agreement is.
const AGREEMENT: f64 = 12.0;
/// A registry looks at its list every two seconds, others and sites fetch it from there a second or
/// two later.
const LIST_TRAVELS: f64 = 10.0;

/// Rows, plots and sentences.
pub fn findings(network: &Network, story: &Story) -> Findings {
    let mut rows = crowd_rows(network, story);
    rows.extend(liar_rows(network, story));
    rows.extend(registry_rows(story));
    rows.extend(death_rows(story));
    rows.extend(tools::rows(&story.tools));
    Findings {
        method: [method(story), tools::sentences(&story.tools)].concat(),
        rows,
        plots: plots(story),
        ..Findings::default()
    }
}

fn steps<'a>(played: &'a [&Played]) -> impl Iterator<Item = &'a StepFigures> {
    played
        .iter()
        .flat_map(|one| &one.steps)
        .map(|(step, _)| step)
}

fn offered(played: &[&Played]) -> u64 {
    steps(played).map(|step| step.offered).sum()
}

fn answered(played: &[&Played]) -> u64 {
    steps(played).map(|step| step.answered).sum()
}

/// What came of the requests that ended at the servers of which `is_meant` is true.
fn at(played: &[&Played], is_meant: impl Fn(&IpAddr) -> bool) -> ServerFigures {
    let servers = steps(played).flat_map(|step| &step.servers);
    let meant = servers.filter(|(server, _)| is_meant(server));
    meant.fold(ServerFigures::default(), |sum, (_, one)| ServerFigures {
        answered: sum.answered + one.answered,
        wrong: sum.wrong + one.wrong,
        failed: sum.failed + one.failed,
    })
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / (whole as f64).max(1.0)
}

fn crowd_rows(network: &Network, story: &Story) -> Vec<Row> {
    let (crowd, customers) = (&[&story.crowd][..], &[&story.customers][..]);
    let answered_share = |name: &str, played: &[&Played]| {
        let share = percent(answered(played), offered(played));
        Row::told(name, "%", share)
            .bounded_by(100.0)
            .judged_by(Goal::AtLeast(95.0))
    };
    let shop = IpAddr::V4(network.host(SHOP).address);
    let under_alias = at(customers, |server| *server != shop).answered;
    let (seconds, certificates) = story.certificates;
    vec![
        answered_share("visitors answered, by HTTP and DNS", crowd),
        answered_share("customers answered, by HTTPS", customers),
        Row::told(
            "answered by HTTPS under an alias",
            "requests",
            under_alias as f64,
        )
        .judged_by(Goal::AtLeast(1.0)),
        Row::told(
            "the same, of all customers",
            "%",
            percent(under_alias, offered(customers)),
        ),
        Row::told(
            "certificates from pebble",
            "certificates",
            certificates as f64,
        )
        .judged_by(Goal::AtLeast(1.0)),
        Row::told("all certificates were there after", "s", seconds),
    ]
}

fn liar_rows(network: &Network, story: &Story) -> Vec<Row> {
    let address = |name: &str| IpAddr::V4(network.host(name).address);
    let all = [&story.crowd, &story.customers];
    let boaster = at(&all, |server| *server == address(BOASTER));
    let visitors = offered(&all[..1]);
    let wrong = at(&all[..1], |_| true).wrong;
    let mut rows = vec![
        Row::told(
            "failed because of who boasts",
            "%",
            percent(boaster.failed, offered(&all)),
        )
        .judged_by(Goal::AtMost(failed_until_found(&story.crowd))),
        Row::told(
            "answered by who boasts",
            "requests",
            boaster.answered as f64,
        ),
        Row::told(
            "who boasts was parted from after",
            "s",
            helped(&story.glances, BOASTER),
        ),
        Row::told("saw an altered page", "%", percent(wrong, visitors))
            .judged_by(Goal::AtMost(100.0 / PAGES as f64 / 2.0)),
    ];
    if let Some(search) = Search::of(&story.glances) {
        let goal = looks_for_99_percent() * search.helpers as f64;
        let row = Row::told(
            "looks until who alters was found",
            "looks",
            search.looks as f64,
        );
        rows.push(row.judged_by(Goal::AtMost(goal)));
        let row = Row::told(
            "who alters was parted from after",
            "s",
            search.lasted.as_secs_f64(),
        );
        rows.push(row);
    }
    let expelled = story.faults.expelled;
    rows.push(
        Row::told(
            "expelled by the authority",
            "members",
            f64::from(u8::from(expelled.is_some())),
        )
        .judged_by(Goal::AtLeast(1.0)),
    );
    if let Some((issued, known)) = expelled {
        let travelled = known.saturating_duration_since(issued).as_secs_f64();
        let row = Row::told("all sites knew it after", "s", travelled);
        rows.push(row.judged_by(Goal::AtMost(LIST_TRAVELS)));
    }
    rows
}

/// Longest until who boasts is parted from: some seconds until its link is so full that visitors
/// wait, then two looks that each wait for three seconds, and those at others before them.
const BOASTER_FOUND: f64 = 15.0;
/// Who boasts is never alone: `news` itself and one more have their parts of the visitors.
const BOASTERS_PART: f64 = 1.0 / 3.0;

/// Visitors in a hundred who may fail until who boasts is found: all of its part, for so long.
fn failed_until_found(crowd: &Played) -> f64 {
    let lasted: f64 = steps(&[crowd]).map(|step| step.seconds).sum();
    (BOASTER_FOUND * BOASTERS_PART / lasted.max(BOASTER_FOUND)) * 100.0
}

/// Seconds for which `name` helped one of those in need, from its first help there to the last that
/// was seen: the longer time of both.
fn helped(glances: &[Glance], name: &str) -> f64 {
    let of = |site| helped_at(site, glances, name);
    IN_NEED.into_iter().map(of).fold(0.0, f64::max)
}

fn helped_at(in_need: &str, glances: &[Glance], name: &str) -> f64 {
    let site = format!("{name}.{SITES}");
    let helps = |glance: &&Glance| {
        let seen = glance.sites.get(in_need);
        let mut helpers = seen.into_iter().flat_map(|seen| &seen.rescue_servers);
        helpers.any(|one| one.site.starts_with(&site))
    };
    let mut helping = glances.iter().filter(helps);
    let first = helping.next();
    let last = helping.next_back().or(first);
    let between = |(first, last): (&Glance, &Glance)| last.at.saturating_duration_since(first.at);
    first
        .zip(last)
        .map_or(0.0, |ends| between(ends).as_secs_f64())
}

/// Looks at one member by which one altered page of all is found with a probability of 99 %:
/// 1 - (1 - a)^n, as `docs/guide/integrity.md` has it.
fn looks_for_99_percent() -> f64 {
    let honest = 1.0 - 1.0 / PAGES as f64;
    (0.01_f64.ln() / honest.ln()).ceil()
}

/// From the first help by who alters a page to its end, at the site that found out first.
struct Search {
    looks: u64,
    /// Most rescue servers at a time, among whom looks are divided.
    helpers: usize,
    lasted: Duration,
}

impl Search {
    fn of(glances: &[Glance]) -> Option<Self> {
        let found_by = |glance| IN_NEED.into_iter().find(|site| has_found_out(glance, site));
        let found = glances.iter().find_map(found_by)?;
        Self::by(found, glances)
    }

    fn by(site: &str, glances: &[Glance]) -> Option<Self> {
        let helpers = |glance: &Glance| {
            let seen = glance.sites.get(site);
            seen.map_or(&[][..], |seen| &seen.rescue_servers).to_vec()
        };
        let malory = format!("{MALORY}.{SITES}");
        let is_asked = |glance: &&Glance| {
            let mut helpers = helpers(glance).into_iter();
            helpers.any(|one| one.site.starts_with(&malory))
        };
        let begun = glances.iter().position(|glance| is_asked(&glance))?;
        let found = glances.iter().position(|one| has_found_out(one, site))?;
        let found = found.max(begun);
        let looks = |glance: &Glance| -> u64 {
            let seen = glance.sites.get(site);
            seen.map_or(0, |seen| seen.integrity.looks.values().sum())
        };
        let (first, last) = (&glances[begun.saturating_sub(1)], &glances[found]);
        let window = glances[begun..=found].iter();
        Some(Self {
            looks: looks(last).saturating_sub(looks(first)),
            helpers: window
                .map(|glance| helpers(glance).len())
                .max()
                .unwrap_or(1),
            lasted: last.at.saturating_duration_since(glances[begun].at),
        })
    }
}

fn registry_rows(story: &Story) -> Vec<Row> {
    let Faults { healed, agreed, .. } = story.faults;
    let agreed = agreed.saturating_duration_since(healed).as_secs_f64();
    let losses = registrations::losses(&story.glances, story.faults);
    let unheard = registrations::unheard(&story.glances, story.faults);
    let mut rows = vec![
        Row::told(
            &registrations::row_name(&losses),
            "registrations",
            losses.len() as f64,
        )
        .judged_by(Goal::AtMost(0.0)),
        Row::told("the registries agreed after", "s", agreed).judged_by(Goal::AtMost(AGREEMENT)),
    ];
    rows.extend(unheard.into_iter().map(|(name, seconds)| {
        let told = format!("not counted as lost: {name} reached no registry for");
        Row::told(&told, "s", seconds)
    }));
    rows
}

fn death_rows(story: &Story) -> Vec<Row> {
    let after = [&story.after];
    let (when_dead, at_the_end) = story.records;
    vec![
        Row::told(
            "answered after the origin's death",
            "%",
            percent(answered(&after), offered(&after)),
        )
        .bounded_by(100.0)
        .judged_by(Goal::AtLeast(95.0)),
        Row::told(
            "rescue servers in its name then",
            "records",
            when_dead as f64,
        ),
        Row::told(
            "records left in BIND at the end",
            "records",
            at_the_end as f64,
        )
        .judged_by(Goal::AtMost(0.0)),
    ]
}

fn method(story: &Story) -> Vec<String> {
    let looks = looks_for_99_percent();
    let failures = |played: &Played| {
        let causes = steps(&[played])
            .flat_map(|step| step.failures.clone())
            .collect::<Vec<_>>();
        let told: Vec<String> = causes
            .iter()
            .map(|(cause, count)| format!("{count} {cause}"))
            .collect();
        match told.is_empty() {
            true => "none".to_owned(),
            false => told.join(", "),
        }
    };
    vec![
        "A closed community, made with levee community: an authority, three registries in a mesh, \
         two sites in need and five that help. One registry is killed in the middle of the crowd, \
         another is cut off; later the one is started again and the other mended. \
         A registration is lost where a registry that stands does not know it for a second, while \
         its site answers and reaches a registry; a site whose link is full of visitors reaches none."
            .to_owned(),
        "news is asked by HTTP through 20 resolvers and BIND, which takes its updates; it is killed, \
         and later started again. shop is asked by HTTPS, with a certificate that it got from pebble \
         by ACME; a site with HTTPS is not put into DNS, so its customers follow redirects to aliases. \
         Those who help have wildcard certificates for them from pebble, by dns-01 through BIND, and \
         customers verify each."
            .to_owned(),
        format!(
            "Both liars are members by the authority's list. boaster says that its link is \
             {TIMES_BOASTED} times as thick as it is. malory alters one page of {PAGES} on its way \
             out and leaves all else as it is; {looks:.0} looks at one member find that with a \
             probability of 99 %, and looks are divided among all rescue servers."
        ),
        "The goal for who boasts is what fails if a third of the visitors come to it and all of them \
         fail for 15 s: its link must be full before anybody can know, and then looks find it. \
         That for altered pages is half of what would be seen if all visitors went to malory and \
         nobody looked."
            .to_owned(),
        format!(
            "Visitors of news failed by: {}. Customers of shop: {}. After the death of news: {}.",
            failures(&story.crowd),
            failures(&story.customers),
            failures(&story.after)
        ),
    ]
}

fn plots(story: &Story) -> Vec<Plot> {
    let plot = |title: &str, text: &str, up: &str| Plot {
        title: title.to_owned(),
        text: text.to_owned(),
        across: "seconds".to_owned(),
        up: up.to_owned(),
        ..Plot::default()
    };
    let began = story.faults.began;
    let seconds = |at: Instant| at.saturating_duration_since(began).as_secs_f64();
    let glances = || {
        story
            .glances
            .iter()
            .filter(move |glance| glance.at >= began)
    };
    let mut data = plot(
        "Who sends how much",
        "As each server accounts for it: boaster sends less than it believes.",
        "kB/s",
    );
    for Member(name, _) in MEMBERS {
        let points = glances().filter_map(|glance| {
            let out = glance.sites.get(name)?.rates.out as f64 / 1000.0;
            Some((seconds(glance.at), out))
        });
        data = data.with(name, Mark::Line, points.collect());
    }
    let mut known = plot(
        "Sites that each registry knows",
        "A registry that is dead says nothing; one that is cut off forgets who cannot reach it.",
        "sites",
    );
    for name in REGISTRIES {
        let points = glances().filter_map(|glance| {
            let entries = glance.registries.get(name)?.entries;
            Some((seconds(glance.at), entries as f64))
        });
        known = known.with(name, Mark::Line, points.collect());
    }
    let times = |played: &Played| {
        let later = played.began.map_or(0.0, seconds);
        let told = played.seconds.iter().flat_map(|second| second.told.clone());
        told.map(|(asked, taken)| (asked + later, taken)).collect()
    };
    let waits = plot(
        "How long visitors waited",
        "One request in four, by when it was meant to be asked, with what was given up after 7 s.",
        "seconds",
    );
    let waits = waits
        .with("customers of shop", Mark::Dots, times(&story.customers))
        .with("visitors of news", Mark::Dots, times(&story.crowd))
        .with("when news is dead", Mark::Dots, times(&story.after));
    vec![waits, data, known]
}

#[cfg(test)]
mod tests {
    use super::super::NEWS;
    use super::super::eyes::{ExpelledSeen, SiteSeen};
    use super::*;
    use crate::demo::watch::PeerSeen;

    /// What a site in need shows that `helper` helps, after so many looks.
    fn rescued(helper: &str, looks: u64, found: &[&str]) -> SiteSeen {
        let mut seen = SiteSeen::default();
        seen.rescue_servers.push(PeerSeen {
            site: format!("{helper}.{SITES}:80"),
            ..PeerSeen::default()
        });
        seen.integrity.looks.insert("authentic".to_owned(), looks);
        let expelled = found.iter().map(|name| ExpelledSeen {
            member: format!("{name}.{SITES}"),
        });
        seen.integrity.expelled.extend(expelled);
        seen
    }

    #[test]
    fn the_search_is_that_of_the_site_that_found_out_first() {
        let began = Instant::now();
        let later = |seconds| began + Duration::from_secs(seconds);
        let glance = |seconds, news: SiteSeen, shop: SiteSeen| Glance {
            at: later(seconds),
            registries: [].into(),
            sites: [(NEWS.to_owned(), news), (SHOP.to_owned(), shop)].into(),
        };
        let glances = [
            glance(1, rescued(BOASTER, 1, &[]), rescued("alice", 2, &[])),
            glance(2, rescued(BOASTER, 1, &[]), rescued(MALORY, 2, &[])),
            glance(4, rescued(MALORY, 1, &[]), rescued(MALORY, 9, &[])),
            glance(5, rescued(MALORY, 3, &[]), rescued("bob", 11, &[MALORY])),
            glance(
                9,
                rescued("bob", 40, &[MALORY]),
                rescued("bob", 20, &[MALORY]),
            ),
        ];
        let search = Search::of(&glances).unwrap();
        assert_eq!((search.looks, search.helpers), (9, 1));
        assert_eq!(search.lasted, Duration::from_secs(3));
        assert!(Search::of(&glances[..3]).is_none());
        assert_eq!(helped(&glances, MALORY), 2.0);
        assert_eq!(helped(&glances, BOASTER), 1.0);
        assert_eq!(helped(&glances, "nobody"), 0.0);
    }
}
