//! Members look for one another: at what others deliver for an origin that we help as well.
//!
//! Whoever alters pages may spare the address of the origin itself; those of all members it would
//! have to spare as well. We look only where we know the origin's key, and compare with nothing but
//! its signature: a page that is signed and something else is reported, once and once more when the
//! origin has had the time to have it taken back. What comes of it is the origin's to decide.
//! By HTTP or by HTTPS, where the other's alias answers by both: which of them the origin's
//! visitors take nobody tells, so chance decides.

use std::sync::Arc;
use std::time::Duration;

use levee_proxy::{Fetcher, Space, Standing};
use levee_vocab::Random;
use levee_wire::{REPORT_TARGET_MAX, Report};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::inspector::target_of;
use super::look::{self, Guise};
use super::scene::{Neighbour, Scene};
use crate::rescue_link::{LinkCharge, RescueWord};
use crate::way::{Authorities, Place, Scheme};

/// Says a report to the origin of a link.
pub type ReportLine = RescueWord;

/// Between a report and the look that confirms it. A purge takes two seconds at most.
const CONFIRM_AFTER: Duration = Duration::from_secs(5);

/// Looks until the server stops: every `every`, at one page of one neighbour.
///
/// Cancel safety: it may be dropped at any point.
pub async fn watch_neighbours(
    scene: watch::Receiver<Arc<Scene>>,
    (fetcher, line): (Fetcher, ReportLine),
    charge: LinkCharge,
    (every, seed): (Duration, u64),
) {
    if every.is_zero() {
        return;
    }
    let authorities = Authorities::any();
    let eyes = (&fetcher, &authorities);
    let mut random = Random::from_seed(seed);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = Arc::clone(&scene.borrow());
        let Some((neighbour, target)) = choose(&now, &mut random) else {
            continue;
        };
        let guise = Guise(random.within(0..64) as usize);
        let scheme = way(&neighbour, &mut random);
        let looking = || look(eyes, (&neighbour, scheme), (&target, guise));
        charge(look::look_bytes(scheme));
        let Some(report) = looking().await else {
            continue;
        };
        line.report(neighbour.link, report);
        sleep(CONFIRM_AFTER).await;
        charge(look::look_bytes(scheme));
        if let Some(report) = looking().await {
            line.report(neighbour.link, report);
        }
    }
}

/// A neighbour, and a page of the origin that visitors ask us for.
fn choose(scene: &Scene, random: &mut Random) -> Option<(Neighbour, String)> {
    let count = scene.neighbours.len() as u64;
    let place = (count > 0).then(|| random.within(0..count))?;
    let neighbour = scene.neighbours.get(place as usize)?;
    let names = [neighbour.own_alias.as_str(), neighbour.origin.host.as_str()];
    let is_theirs = |url: &&String| {
        let host = url.split(['/', ':']).next().unwrap_or_default();
        names.contains(&host)
    };
    let urls: Vec<&String> = scene.urls.iter().filter(is_theirs).collect();
    let place = (!urls.is_empty()).then(|| random.within(0..urls.len() as u64))?;
    let target = target_of(urls.get(place as usize)?)?;
    let fits = target.len() <= REPORT_TARGET_MAX;
    fits.then(|| (neighbour.clone(), target.to_owned()))
}

/// By which way we look.
fn way(neighbour: &Neighbour, random: &mut Random) -> Scheme {
    match neighbour.tls.is_some() && random.within(0..2) == 1 {
        true => Scheme::Https,
        false => Scheme::Http,
    }
}

/// What is to be reported, if anything.
async fn look(
    (fetcher, authorities): (&Fetcher, &Authorities),
    (neighbour, scheme): (&Neighbour, Scheme),
    (target, guise): (&str, Guise),
) -> Option<Report> {
    let origin = &neighbour.origin;
    let key = fetcher.origin_key(&Space::Origin(origin.host.clone(), origin.port))?;
    let (alias, address) = neighbour.door(scheme);
    let place = Place {
        scheme,
        address,
        host: &scheme.authority(&alias),
    };
    let (page, _) = look::delivered(authorities, place, (target, guise)).await;
    // Where the origin redirects as well, only the origin knows.
    let page = page.filter(|page| page.status.is_success())?;
    match look::standing(&page, &key, origin, target) {
        Standing::Forged => Some(Report {
            alias: neighbour.alias.clone(),
            target: target.to_owned(),
            seen: page.digest,
            by_https: scheme == Scheme::Https,
        }),
        Standing::Authentic | Standing::Unsigned => None,
    }
}
