//! What the Gate promises about single requests; `tests/closed_loop.rs` shows it under load.

use std::collections::BTreeMap;

use levee_vocab::{ByteRate, LinkId, WebAddress};

use super::*;
use crate::crawlers::RecognisedBy;
use crate::law::Law;
use crate::plan::{CrawlPlan, Target};

const KILOBYTES: fn(u64) -> ByteRate = ByteRate::from_kilobytes;

/// A plan with T_redi * D_out = `direct` of 1000 kB/s and a target for each rate, in kB/s.
fn plan(interval: u64, direct: u64, rates: &[u64]) -> Arc<RoutePlan> {
    let target = |(index, &rate): (usize, &u64)| Target {
        link: LinkId::Outbound(index as u64),
        slot: index as u8,
        alias: WebAddress {
            host: format!("www-vh1.rescue{index}.example").parse().unwrap(),
            port: 80,
        },
        address: [192, 0, 2, index as u8].into(),
        tls: (index % 2 == 1).then_some(443),
        rate: KILOBYTES(rate),
    };
    Arc::new(RoutePlan {
        interval,
        interval_length: Duration::from_secs(1),
        redirect: Some(RedirectPlan {
            redirects: Redirects::On,
            law: Law::Load,
            early: ByteRate::ZERO,
            hot: Arc::default(),
            direct: KILOBYTES(direct),
            direct_ceiling: KILOBYTES(875),
            usable: KILOBYTES(1000),
            usable_share: 0.8,
            connection_overhead: 358,
            large_file: 100_000,
            targets: rates.iter().enumerate().map(target).collect(),
        }),
        ..RoutePlan::default()
    })
}

fn gate(direct: u64, rates: &[u64]) -> Gate {
    let mut gate = Gate::new(GateLimits::default());
    gate.adopt(Timestamp::ZERO, plan(1, direct, rates), 1.0);
    gate
}

fn ask(file_bytes: u64) -> Ask {
    Ask {
        visitor: Visitor::Reader,
        redirectable: Redirectability::Allowed,
        file_bytes,
        redirect_bytes: 227,
        overhead_bytes: 358,
        path_hash: 0,
        resource_hash: 0,
        copies: Copies::NONE,
        backlog: Duration::ZERO,
        waited: Duration::ZERO,
    }
}

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_milliseconds(milliseconds)
}

#[test]
fn without_a_redirect_plan_the_backlog_decides() {
    let mut gate = Gate::new(GateLimits::default());
    let mut page = ask(4096);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
    page.backlog = Duration::from_secs(1);
    assert_eq!(gate.decide(at(0), &page), Verdict::Wait);
    page.waited = Duration::from_secs(5);
    assert_eq!(gate.decide(at(0), &page), Verdict::Refuse);
}

#[test]
fn where_the_operator_wants_no_redirects_the_backlog_decides() {
    let mut off = Arc::unwrap_or_clone(plan(1, 100, &[1000]));
    if let Some(redirect) = &mut off.redirect {
        redirect.redirects = Redirects::Off;
    }
    let mut gate = Gate::new(GateLimits::default());
    gate.adopt(at(0), Arc::new(off), 1.0);
    let mut page = ask(400_000);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
    page.backlog = Duration::from_secs(1);
    assert_eq!(gate.decide(at(0), &page), Verdict::Wait);
}

#[test]
fn what_may_not_be_redirected_is_served_and_uses_up_the_direct_budget() {
    let mut gate = gate(100, &[1000]);
    let mut fetch = ask(25_000);
    fetch.redirectable = Redirectability::Never;
    assert_eq!(gate.decide(at(0), &fetch), Verdict::Serve);
    assert_eq!(gate.decide(at(0), &fetch), Verdict::Serve);
    assert_eq!(
        gate.decide(at(0), &ask(4096)),
        Verdict::Redirect { target: 0 }
    );
}

#[test]
fn visitors_by_https_are_sent_only_where_https_is_spoken() {
    // The second of these speaks it, the first does not.
    let mut both = gate(0, &[1000, 1000]);
    let mut secure = ask(4096);
    secure.redirectable = Redirectability::ByHttps;
    let mut large = ask(100_000);
    large.redirectable = Redirectability::ByHttps;
    for page in [&secure, &secure, &large, &secure] {
        assert_eq!(both.decide(at(0), page), Verdict::Redirect { target: 1 });
    }
    // Where nobody does they are served as if nobody helped.
    let mut alone = gate(0, &[1000]);
    assert_eq!(alone.decide(at(0), &secure), Verdict::Serve);
    assert_eq!(
        alone.decide(at(0), &ask(4096)),
        Verdict::Redirect { target: 0 }
    );
}

#[test]
fn an_answer_no_larger_than_a_redirect_is_served() {
    let mut gate = gate(0, &[1000]);
    assert_eq!(gate.decide(at(0), &ask(227)), Verdict::Serve);
    assert_eq!(
        gate.decide(at(0), &ask(228)),
        Verdict::Redirect { target: 0 }
    );
}

#[test]
fn redirects_are_shared_out_by_rate() {
    let mut gate = gate(0, &[2000, 1000, 500]);
    let mut bytes = [0; 3];
    for millisecond in 0..1000 {
        let size = 1000 + millisecond % 7 * 300;
        let verdict = gate.decide(at(millisecond), &ask(size));
        let Verdict::Redirect { target } = verdict else {
            panic!("{verdict:?}");
        };
        bytes[target] += size;
    }
    let whole: u64 = bytes.iter().sum();
    for (target, part) in [(0, 4.0 / 7.0), (1, 2.0 / 7.0), (2, 1.0 / 7.0)] {
        let share = bytes[target] as f64 / whole as f64;
        assert!((share - part).abs() < 0.01, "{bytes:?}");
    }
}

#[test]
fn a_large_file_stays_where_it_is_cached_while_that_one_has_room() {
    let mut gate = gate(0, &[9000, 9000, 9000]);
    let mut homes: BTreeMap<u64, usize> = BTreeMap::new();
    for number in 0..60 {
        let mut large = ask(100_000);
        large.path_hash = number % 10 * 7919;
        let verdict = gate.decide(at(number * 16), &large);
        let Verdict::Redirect { target } = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(*homes.entry(large.path_hash).or_insert(target), target);
    }
    let used: std::collections::BTreeSet<usize> = homes.values().copied().collect();
    assert_eq!(used.len(), 3, "{homes:?}");
    // One rescue server leaves: only its own files move.
    gate.adopt(at(1000), plan(2, 0, &[9000, 9000]), 1.0);
    for (&path_hash, &home) in homes.iter().filter(|(_, home)| **home < 2) {
        let mut large = ask(100_000);
        large.path_hash = path_hash;
        assert_eq!(
            gate.decide(at(1000), &large),
            Verdict::Redirect { target: home }
        );
    }
}

#[test]
fn when_no_rescue_server_takes_more_the_rest_of_d_out_is_served() {
    let mut gate = gate(0, &[20]);
    let mut verdicts = Vec::new();
    for millisecond in 0..1000 {
        verdicts.push(gate.decide(at(millisecond), &ask(4096)));
    }
    let count = |sought: Verdict| verdicts.iter().filter(|&&v| v == sought).count();
    assert_eq!(count(Verdict::Redirect { target: 0 }), 4);
    let served = count(Verdict::Serve) as u64 * 4096;
    assert!((900_000..=1_000_000).contains(&served), "{served}");
    assert!(count(Verdict::Wait) > 0);
}

#[test]
fn a_file_larger_than_an_interval_goes_once_and_is_paid_off() {
    let mut gate = gate(0, &[40]);
    let mut redirects = 0;
    for second in 0..10 {
        gate.adopt(at(second * 1000), plan(second, 0, &[40]), 1.0);
        let verdict = gate.decide(at(second * 1000), &ask(99_000));
        redirects += u64::from(matches!(verdict, Verdict::Redirect { .. }));
    }
    assert!(
        (3..=5).contains(&redirects),
        "{redirects} of 99 kB in 10 s at 40 kB/s"
    );
}

#[test]
fn the_rate_of_a_rescue_server_may_change_within_an_interval() {
    let mut gate = gate(0, &[100]);
    for _ in 0..6 {
        assert_eq!(
            gate.decide(at(100), &ask(4096)),
            Verdict::Redirect { target: 0 }
        );
    }
    gate.adopt(at(100), plan(1, 0, &[20]), 1.0);
    let verdict = gate.decide(at(900), &ask(4096));
    assert!(!matches!(verdict, Verdict::Redirect { .. }));
}

#[test]
fn a_page_larger_than_a_head_start_is_served_while_the_load_is_below_t_redi() {
    let mut gate = gate(600, &[1000]);
    let mut verdicts = Vec::new();
    for second in 0..6 {
        gate.adopt(at(second * 1000), plan(second, 600, &[1000]), 1.0);
        verdicts.push(gate.decide(at(second * 1000), &ask(500_000)));
    }
    // Nothing is left over from before the rescue.
    assert_eq!(verdicts[0], Verdict::Redirect { target: 0 });
    assert_eq!(verdicts[1..], [Verdict::Serve; 5]);
    // Twice as much is above T_redi * D_out: half of it is redirected, as ever.
    let mut served = 0;
    for second in 6..26 {
        gate.adopt(at(second * 1000), plan(second, 600, &[1000]), 1.0);
        for half in [0, 500] {
            let verdict = gate.decide(at(second * 1000 + half), &ask(500_000));
            served += u64::from(verdict == Verdict::Serve);
        }
    }
    assert!((20..=25).contains(&served), "{served} of 40 at 600 kB/s");
}

/// A gate whose crawlers get 10 kB/s for pages and 1 kB/s for being put off.
fn gate_with_ration(redirect: Option<RedirectPlan>) -> Gate {
    let mut gate = Gate::new(GateLimits::default());
    let plan = RoutePlan {
        interval_length: Duration::from_secs(1),
        redirect,
        crawl: Some(CrawlPlan {
            pages: KILOBYTES(10),
            refusals: KILOBYTES(1),
        }),
        ..RoutePlan::default()
    };
    gate.adopt(Timestamp::ZERO, Arc::new(plan), 1.0);
    gate
}

#[test]
fn crawlers_get_their_ration_and_are_never_redirected_and_never_wait() {
    let redirect = plan(1, 0, &[1000]).redirect.clone();
    for redirect in [None, redirect] {
        let mut gate = gate_with_ration(redirect);
        let mut crawl = ask(1000);
        crawl.visitor = Visitor::Crawler(RecognisedBy::Name);
        let verdicts = (0..10_000).map(|millisecond| gate.decide(at(millisecond), &crawl));
        let mut served = 0;
        for verdict in verdicts {
            match verdict {
                Verdict::Serve => served += 1,
                Verdict::PutOff => {}
                Verdict::Redirect { .. } | Verdict::Wait | Verdict::Refuse | Verdict::Withhold => {
                    panic!("{verdict:?}")
                }
            }
        }
        assert!((100..=121).contains(&served), "{served}");
    }
}

#[test]
fn crawlers_make_way_long_before_readers_wait() {
    let mut gate = gate_with_ration(None);
    let mut page = ask(1000);
    page.backlog = Duration::from_millis(300);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
    page.visitor = Visitor::Crawler(RecognisedBy::Behaviour);
    assert_eq!(gate.decide(at(0), &page), Verdict::PutOff);
    page.backlog = Duration::from_millis(200);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
}

#[test]
fn a_flood_of_crawlers_is_told_so_only_as_far_as_its_share_lasts() {
    let mut gate = gate_with_ration(None);
    let told = (0..10_000).filter(|&ms| gate.put_off(at(ms), 500) == PuttingOff::Told);
    let told = told.count();
    assert!((20..=25).contains(&told), "{told}");
}

/// A plan with so much early budget and two rescue servers under this law.
fn hot_gate(law: Law, early: u64, direct: u64) -> Gate {
    let mut plan = (*plan(1, direct, &[1000, 1000])).clone();
    if let Some(redirect) = &mut plan.redirect {
        redirect.law = law;
        redirect.early = KILOBYTES(early);
    }
    let mut gate = Gate::new(GateLimits::default());
    gate.adopt(Timestamp::ZERO, Arc::new(plan), 1.0);
    gate
}

/// An ask for what the targets of these bits hold.
fn hot(file_bytes: u64, holders: u64, heat: Heat) -> Ask {
    Ask {
        copies: Copies { holders, heat },
        ..ask(file_bytes)
    }
}

#[test]
fn what_is_hot_and_copied_is_redirected_before_the_rest() {
    let mut gate = hot_gate(Law::Combined, 100, 750);
    let page = hot(20_000, 0b10, Heat::Redirected);
    assert_eq!(gate.decide(at(0), &page), Verdict::Serve);
    let redirected = Verdict::Redirect { target: 1 };
    assert_eq!(gate.decide(at(0), &page), redirected);
    // What is cold has the room that this leaves, and so has what is only warm.
    assert_eq!(gate.decide(at(0), &ask(20_000)), Verdict::Serve);
    let warm = hot(20_000, 0b10, Heat::Warm);
    assert_eq!(gate.decide(at(0), &warm), Verdict::Serve);
    assert_eq!(gate.decide(at(0), &page), redirected);
}

#[test]
fn each_interval_begins_with_its_early_budget_whatever_the_last_one_was_like() {
    let mut gate = hot_gate(Law::Combined, 100, 750);
    for millisecond in 0..1000 {
        gate.decide(at(millisecond), &ask(700));
    }
    let page = hot(20_000, 0b10, Heat::Redirected);
    assert_eq!(gate.decide(at(999), &page), Verdict::Redirect { target: 1 });
    let mut next = (**gate.plan()).clone();
    next.interval = 2;
    gate.adopt(at(1000), Arc::new(next), 1.0);
    assert_eq!(gate.decide(at(1000), &page), Verdict::Serve);
}

#[test]
fn hot_resources_that_no_holder_has_room_for_are_served_like_any_other() {
    let mut gate = hot_gate(Law::Combined, 0, 750);
    let page = hot(100_000, 0b01, Heat::Redirected);
    let mut served = 0;
    for millisecond in 0..1000 {
        match gate.decide(at(millisecond), &page) {
            Verdict::Serve => served += 1,
            Verdict::Redirect { target: 0 } => {}
            // There is no room left here either.
            Verdict::Redirect { .. }
            | Verdict::Wait
            | Verdict::Refuse
            | Verdict::Withhold
            | Verdict::PutOff => break,
        }
    }
    assert!(served > 0, "{served}");
}

#[test]
fn above_the_direct_budget_those_that_hold_it_come_first_and_then_any() {
    let mut gate = hot_gate(Law::Combined, 0, 0);
    let warm = hot(4000, 0b01, Heat::Warm);
    let mut targets = [0; 2];
    for millisecond in 0..1000 {
        if let Verdict::Redirect { target } = gate.decide(at(millisecond), &warm) {
            targets[target] += 1;
        }
    }
    assert_eq!(targets[0], 250, "all of its budget");
    assert!(targets[1] > 200, "{targets:?}");
}

#[test]
fn by_resource_alone_only_what_is_hot_is_redirected_and_only_to_those_that_hold_it() {
    let mut gate = hot_gate(Law::Resources, 0, 1000);
    let mut targets = [0; 2];
    for millisecond in 0..100 {
        let page = hot(4000, 0b11, Heat::Redirected);
        let Verdict::Redirect { target } = gate.decide(at(millisecond), &page) else {
            panic!("redirected whatever the load");
        };
        targets[target] += 1;
    }
    assert_eq!(targets, [50, 50]);
    for ask in [ask(900_000), hot(900_000, 0b11, Heat::Warm)] {
        assert_eq!(gate.decide(at(100), &ask), Verdict::Wait);
    }
}
