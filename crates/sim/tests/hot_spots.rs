//! Closed loops about hot spots: what is copied early, and what that is worth when a crowd wants a
//! few pages and a long tail of things that hardly anybody else wants.

#![allow(clippy::unwrap_used)]

use std::fmt;
use std::time::Duration;

use levee_control::{Copies, GateLimits, Heat, Law, Redirectability};
use levee_sim::crowd::{Arrivals, CrowdSettings, Tally, Wants};
use levee_sim::request::CrowdId;
use levee_sim::site::{SiteSettings, default_parameters};
use levee_sim::trace::Detail;
use levee_sim::visitors::Logged;
use levee_sim::{SiteId, World};
use levee_vocab::{ByteRate, Random, Timestamp};

const HOT: usize = 30;

/// An origin of 1000 kB/s, and four who can help.
const LARGE: [u64; 5] = [1000, 2000, 2000, 2000, 2000];
/// An origin of 240 kB/s.
const SMALL: [u64; 5] = [240, 800, 800, 800, 800];

/// An origin under this law, and four who can help: what each may send, in kB/s.
fn community(law: Law, usable: [u64; 5]) -> (World, CrowdId) {
    let mut world = World::new(7);
    world.trace.set_detail(Detail::Nothing);
    world.network.delay = Duration::from_millis(5);
    for (number, usable) in usable.into_iter().enumerate() {
        let label = format!("site{number}");
        let link = ByteRate::from_kilobytes(usable).times(1.25);
        let mut parameters = default_parameters(world.next_site(), &label, link);
        parameters.hot_spots.law = law;
        parameters.object_ttl = Duration::from_secs(3600);
        world.add_site(SiteSettings {
            label,
            parameters,
            files: vec![9000; HOT],
            redirect_bytes: 227,
            limits: GateLimits::default(),
        });
    }
    world.run_until(Timestamp::from_seconds(15));
    let crowd = world.add_crowd(CrowdSettings {
        name: "crowd".to_owned(),
        site: SiteId(0),
        arrivals: Arrivals::Constant { rate: 0.0 },
        wants: Wants::FilesInTurn,
        until: None,
    });
    (world, crowd)
}

/// What came of a crowd.
#[derive(Debug)]
struct Outcome {
    tally: Tally,
    fetches: u64,
    redirects: u64,
    /// Seconds after it began to grow.
    first_redirect: Option<u64>,
}

/// What visitors want, and of whom.
struct Wishes {
    usable: [u64; 5],
    /// So many pages of 9 kB are wanted by most.
    hot: usize,
    /// Share of the visits that are for one of these; the others want something of 6 kB that nobody
    /// else wants.
    hot_share: f64,
}

/// A crowd that grows for ten seconds to `rate` visits a second and stays for fifty.
fn growing(law: Law, rate: f64, hot_share: f64) -> Outcome {
    let rates = (0..60).map(|second| rate * (f64::from(second + 1) / 10.0).min(1.0));
    let wishes = Wishes {
        usable: LARGE,
        hot: HOT,
        hot_share,
    };
    crowd(law, rates, &wishes)
}

/// A crowd of so many visits a second: `rates` has them second by second.
fn crowd(law: Law, rates: impl Iterator<Item = f64>, wishes: &Wishes) -> Outcome {
    let (mut world, crowd) = community(law, wishes.usable);
    let mut random = Random::from_seed(3);
    let mut cold = HOT;
    let mut first_redirect = None;
    for (second, rate) in (0_u64..).zip(rates) {
        let visits = rate as u64;
        for visit in 0..visits {
            let nanoseconds = visit * 1_000_000_000 / visits;
            let at = Timestamp::from_seconds(15 + second) + Duration::from_nanos(nanoseconds);
            world.run_until(at);
            let file = if random.fraction() < wishes.hot_share {
                random.within(0..wishes.hot as u64) as usize
            } else {
                cold += 1;
                cold
            };
            world.visit_as_logged(
                crowd,
                Logged {
                    file,
                    bytes: if file < HOT { 9000 } else { 6000 },
                    redirectability: Redirectability::Allowed,
                },
            );
        }
        if world.sites[0].totals.redirects > 0 && first_redirect.is_none() {
            first_redirect = Some(second);
        }
    }
    let end = world.now + Duration::from_secs(15);
    world.run_until(end);
    assert_eq!(world.watch.violations, []);
    let totals = world.sites[0].totals;
    Outcome {
        tally: world.crowds[crowd.0].tally.clone(),
        fetches: totals.fetches,
        redirects: totals.redirects,
        first_redirect,
    }
}

#[test]
fn what_is_hot_makes_room_so_that_the_cold_tail_stays_where_it_costs_least() {
    for (rate, share) in [(250.0, 0.7), (400.0, 0.9)] {
        let [combined, load] = [Law::Combined, Law::Load].map(|law| {
            let outcome = growing(law, rate, share);
            println!("{rate} a second, {share} of them for few pages, {law:?}: {outcome}");
            outcome
        });
        for outcome in [&combined, &load] {
            assert_eq!(outcome.tally.answered, outcome.tally.offered, "{outcome}");
        }
        // Each fetch of something that nobody else wants costs the origin as much as to serve it,
        // and the redirect besides.
        assert!(combined.fetches * 5 < load.fetches, "{combined}; {load}");
        assert!(
            combined.first_redirect <= load.first_redirect,
            "{combined}; {load}"
        );
    }
}

#[test]
fn fetches_of_the_cold_tail_do_not_keep_themselves_alive() {
    // Everything cold has room here below T_high, if what is held elsewhere leaves it. Each fetch
    // takes as much of that room as the page that it is for.
    let rates = || (0..60).map(|second| if second < 15 { 15.0 } else { 80.0 });
    let wishes = Wishes {
        usable: SMALL,
        hot: 5,
        hot_share: 0.76,
    };
    let [combined, load] = [Law::Combined, Law::Load].map(|law| {
        let outcome = crowd(law, rates(), &wishes);
        println!("80 a second at once, {law:?}: {outcome}");
        outcome
    });
    assert!(combined.fetches * 8 < load.fetches, "{combined}; {load}");
}

#[test]
fn a_page_is_copied_within_two_seconds_of_t_c_and_redirected_within_one_of_t_r() {
    let (mut world, crowd) = community(Law::Resources, LARGE);
    let mut exact = Exact::default();
    let (mut copied, mut redirected) = (None, None);
    let mut at = Timestamp::from_seconds(15);
    while at < Timestamp::from_seconds(60) {
        let elapsed = at.since(Timestamp::from_seconds(15)).as_secs_f64();
        at = at + Duration::from_secs_f64(1.0 / (0.5 + elapsed / 4.0));
        world.run_until(at);
        exact.note(at);
        let (file, bytes) = (0, 9000);
        let redirectability = Redirectability::Allowed;
        world.visit_as_logged(
            crowd,
            Logged {
                file,
                bytes,
                redirectability,
            },
        );
        let running = world.sites[0].running().unwrap();
        let copies = running.hot.get(&0).copied().unwrap_or(Copies::NONE);
        let is_held = copies.holders != 0;
        copied = copied.or(is_held.then_some(at));
        let is_redirected = is_held && copies.heat == Heat::Redirected;
        redirected = redirected.or(is_redirected.then_some(at));
    }
    let late = |known: Option<Timestamp>, exact: Option<Timestamp>| {
        known.unwrap().since(exact.unwrap()).as_secs_f64()
    };
    let (copy, redirect) = (late(copied, exact.copy), late(redirected, exact.redirect));
    println!("held {copy:.2} s after T_C, redirected {redirect:.2} s after T_R");
    assert!(copy < 2.0, "{copy}");
    assert!(redirect < 1.0, "{redirect}");
}

/// The moving average of the paper, request by request.
#[derive(Default)]
struct Exact {
    average: f64,
    last: Option<Timestamp>,
    copy: Option<Timestamp>,
    redirect: Option<Timestamp>,
}

impl Exact {
    fn note(&mut self, at: Timestamp) {
        match self.last {
            Some(last) => self.average += 0.125 * (at.since(last).as_secs_f64() - self.average),
            None => self.average = 10.0,
        }
        self.last = Some(at);
        if self.average <= 1.0 {
            self.copy.get_or_insert(at);
        }
        if self.average <= 0.5 {
            self.redirect.get_or_insert(at);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            offered,
            answered,
            refused,
            failed,
            ..
        } = self.tally;
        let first = self.first_redirect;
        write!(
            f,
            "{offered} visits, {answered} answered, {refused} refused, {failed} failed; \
             {} redirects, {} fetches, first redirect in second {}",
            self.redirects,
            self.fetches,
            first.map_or("none".to_owned(), |second| second.to_string())
        )
    }
}
