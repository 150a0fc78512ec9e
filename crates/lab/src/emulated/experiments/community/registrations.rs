//! Which registrations were lost, of the sites that lived and could say so.
//!
//! A registration is lost where a registry that stands and can be reached does not know it for a
//! second, while its site answers and has just reached a registry. One that was killed or cut off
//! counts again when it has agreed with the others, and a member that was expelled counts no more.
//! A site that reaches no registry cannot be known to any: that of who boasts is so for as long as
//! its own link is full of visitors. How long each was not counted is told beside.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::super::servers::SITES;
use super::eyes::{Glance, SiteSeen};
use super::town::{MEMBERS, Member, REGISTRIES};
use super::{Faults, MALORY};

/// A live site that a registry did not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    site: &'static str,
    registry: &'static str,
    lasted: Duration,
}

/// What is shorter is a glance at two of them, one after the other.
const LOST_AFTER: Duration = Duration::from_secs(1);

/// Each loss, in the order of the registries.
pub fn losses(glances: &[Glance], faults: Faults) -> Vec<Loss> {
    let mut losses = Vec::new();
    for (number, registry) in REGISTRIES.into_iter().enumerate() {
        for Member(site, _) in MEMBERS {
            let is_lost = |glance: &Glance| {
                stands(faults, number, glance.at)
                    && is_live(faults, glance, site)
                    && glance
                        .registries
                        .get(registry)
                        .is_some_and(|seen| !seen.knows(&format!("{site}.{SITES}")))
            };
            let lasted = longest(judged(glances, faults), is_lost);
            if lasted >= LOST_AFTER {
                losses.push(Loss {
                    site,
                    registry,
                    lasted,
                });
            }
        }
    }
    losses
}

/// Members that lived and reached no registry, and for how many seconds.
pub fn unheard(glances: &[Glance], faults: Faults) -> BTreeMap<&'static str, f64> {
    let mut unheard = BTreeMap::new();
    for Member(site, _) in MEMBERS {
        let is_unheard = |glance: &&Glance| {
            let seen = glance.sites.get(site);
            is_member(faults, glance.at, site) && seen.is_some_and(|seen| !is_heard(seen))
        };
        let glances: Vec<&Glance> = judged(glances, faults).collect();
        let pairs = glances.windows(2).filter(|pair| is_unheard(&pair[0]));
        let lasted = pairs.map(|pair| pair[1].at.saturating_duration_since(pair[0].at));
        let seconds = lasted.sum::<Duration>().as_secs_f64();
        if seconds > 0.0 {
            unheard.insert(site, seconds);
        }
    }
    unheard
}

/// The row's name, which says who was lost where.
pub fn row_name(losses: &[Loss]) -> String {
    let named = losses.iter().map(|loss| {
        let seconds = loss.lasted.as_secs_f64();
        format!("{} at {} for {seconds:.1} s", loss.site, loss.registry)
    });
    match losses.is_empty() {
        true => "live registrations lost".to_owned(),
        false => format!(
            "live registrations lost: {}",
            named.collect::<Vec<_>>().join(", ")
        ),
    }
}

/// What was seen from the crowd's beginning to the death of `news`.
fn judged(glances: &[Glance], faults: Faults) -> impl Iterator<Item = &Glance> {
    let glances = glances.iter();
    glances.filter(move |glance| glance.at > faults.began && glance.at < faults.died)
}

fn stands(faults: Faults, number: usize, at: Instant) -> bool {
    match number {
        0 => at < faults.killed || at > faults.agreed,
        2 => at < faults.cut || at > faults.agreed,
        _ => true,
    }
}

fn is_live(faults: Faults, glance: &Glance, site: &str) -> bool {
    is_member(faults, glance.at, site) && glance.sites.get(site).is_some_and(is_heard)
}

fn is_member(faults: Faults, at: Instant, site: &str) -> bool {
    let is_out = faults.expelled.is_some_and(|(issued, _)| at >= issued);
    site != MALORY || !is_out
}

fn is_heard(seen: &SiteSeen) -> bool {
    seen.registry.connected
}

/// The longest time for which it was so at each glance.
fn longest<'a>(
    glances: impl Iterator<Item = &'a Glance>,
    is_so: impl Fn(&Glance) -> bool,
) -> Duration {
    let (mut since, mut longest) = (None, Duration::ZERO);
    for glance in glances {
        since = is_so(glance).then(|| since.unwrap_or(glance.at));
        let lasted = since.map_or(Duration::ZERO, |since| {
            glance.at.saturating_duration_since(since)
        });
        longest = longest.max(lasted);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::super::eyes::{ConnectionSeen, RegisteredSeen, RegistrySeen};
    use super::*;

    /// Twenty glances, five a second, at the second registry and at two sites.
    fn glances(began: Instant, known: impl Fn(u32) -> &'static str, hears: bool) -> Vec<Glance> {
        let seen = |site: &str| {
            let connected = site != "bob" || hears;
            let registry = ConnectionSeen { connected };
            let seen = SiteSeen {
                registry,
                ..SiteSeen::default()
            };
            (site.to_owned(), seen)
        };
        let glance = |number: u32| {
            let sites = known(number).split(' ').map(|site| RegisteredSeen {
                site: format!("{site}.{SITES}"),
            });
            let registry = RegistrySeen {
                sites: sites.collect(),
                ..RegistrySeen::default()
            };
            Glance {
                at: began + Duration::from_millis(200) * (number + 1),
                registries: [("registry2".to_owned(), registry)].into(),
                sites: [seen("alice"), seen("bob")].into(),
            }
        };
        (0..20).map(glance).collect()
    }

    fn faults(began: Instant) -> Faults {
        let later = |seconds| began + Duration::from_secs(seconds);
        Faults {
            began,
            killed: began,
            cut: began,
            healed: began,
            agreed: later(60),
            expelled: None,
            died: later(60),
        }
    }

    fn check(known: impl Fn(u32) -> &'static str, hears: bool, expected: &str) {
        let began = Instant::now();
        let glances = glances(began, known, hears);
        let losses = losses(&glances, faults(began));
        assert_eq!(
            row_name(&losses),
            format!("live registrations lost{expected}")
        );
        let unheard = unheard(&glances, faults(began));
        assert_eq!(unheard.contains_key("bob"), !hears);
        assert!(!unheard.contains_key("alice"));
    }

    #[test]
    fn a_site_that_is_not_known_for_a_second_is_lost_and_named() {
        let known = |number| {
            if (5..12).contains(&number) {
                "alice"
            } else {
                "alice bob"
            }
        };
        check(known, true, ": bob at registry2 for 1.2 s");
    }

    #[test]
    fn what_a_glance_misses_now_and_then_is_not_lost() {
        let known = |number| {
            if number % 3 == 0 {
                "alice bob"
            } else {
                "alice"
            }
        };
        check(known, true, "");
    }

    #[test]
    fn who_reaches_no_registry_is_told_and_not_lost() {
        check(|_| "alice", false, "");
    }
}
