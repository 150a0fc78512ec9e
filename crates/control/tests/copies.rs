//! Copies of hot resources (H3 to H5), through the whole Brain: who is asked for help when a
//! resource becomes hot, what is copied where, and what the cores are told.

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::BTreeSet;
use std::time::Duration;

use fixtures::{accepted, at, called, candidate, own, parameters};
use levee_control::{
    Brain, CopyMeans, CopyOrder, CopyOutcome, Embedded, Heat, HotRoute, HotSpotOutput, HotSpotStep,
    Input, Law, Output, PhaseName, Replication,
};
use levee_vocab::{LinkId, Misses};

const PAGE: &str = "www.own.example/page";

/// A site under this law, with many candidates that it knows.
fn brain(law: Law, replication: Replication) -> Brain {
    let mut parameters = parameters("www.own.example");
    parameters.hot_spots.law = law;
    parameters.hot_spots.replication = replication;
    let mut brain = Brain::new(parameters, 1, Vec::new());
    let found = (1..=9).map(|number| candidate(&format!("www.rescue{number}.example"), 5000));
    brain.handle(at(0), Input::CandidatesFound(found.collect()));
    brain
}

fn stepped(url: &str, steps: &[HotSpotStep]) -> Input {
    let step = |&step: &HotSpotStep| HotSpotOutput {
        url: url.to_owned(),
        step,
        gap: Duration::from_millis(400),
    };
    Input::ResourcesStepped(steps.iter().map(step).collect())
}

fn hot(url: &str) -> Input {
    stepped(url, &[HotSpotStep::Copy, HotSpotStep::Redirect])
}

fn warm(url: &str) -> Input {
    stepped(url, &[HotSpotStep::Copy])
}

fn ended(link: LinkId, url: &str, outcome: CopyOutcome) -> Input {
    let url = url.to_owned();
    Input::CopyEnded { link, url, outcome }
}

fn orders(outputs: &[Output]) -> Vec<CopyOrder> {
    let mut orders = Vec::new();
    for output in outputs {
        if let Output::Copy(order) = output {
            orders.push(order.clone());
        }
    }
    orders
}

/// Draws in so many rescue servers by load; gives their links.
fn draft(brain: &mut Brain, count: usize) -> Vec<LinkId> {
    let mut links = Vec::new();
    for second in 1..=count as u64 {
        let mut sample = own(900);
        for &link in &links {
            sample = fixtures::with_redirects(sample, link, 400);
        }
        let outputs = brain.handle(at(second), Input::IntervalEnded(sample));
        let link = called(&outputs).unwrap();
        brain.handle(at(second), accepted(link, 400, false));
        links.push(link);
    }
    links
}

/// The routes in the plan: holders and heat of each URL.
fn routes(brain: &Brain) -> Vec<HotRoute> {
    let plan = brain.plan();
    plan.redirect.as_ref().unwrap().hot.to_vec()
}

#[test]
fn a_hot_resource_drafts_a_rescue_server_before_the_load_does() {
    let mut brain = brain(Law::Combined, Replication::Home);
    assert_eq!(
        called(&brain.handle(at(1), Input::IntervalEnded(own(200)))),
        None
    );
    let outputs = brain.handle(at(1), warm(PAGE));
    let reasons: Vec<String> = outputs.iter().filter_map(reason).collect();
    assert_eq!(
        reasons[0],
        "asking for help early: www.own.example/page is asked for every 0.4 s"
    );
    let link = called(&outputs).unwrap();
    let outputs = brain.handle(at(1), accepted(link, 400, true));
    let [order] = &orders(&outputs)[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!((order.link, order.url.as_str()), (link, PAGE));
    assert_eq!(
        (order.means, order.embedded),
        (CopyMeans::Push, Embedded::With)
    );
    let text = "copying www.own.example/page to one rescue server: asked for every 0.4 s";
    assert!(
        outputs
            .iter()
            .filter_map(reason)
            .any(|reason| reason == text)
    );
}

fn reason(output: &Output) -> Option<String> {
    if let Output::Explain(reason) = output {
        return Some(reason.to_string());
    }
    None
}

#[test]
fn a_site_with_hardly_any_load_asks_nobody_for_what_is_hot() {
    let mut brain = brain(Law::Combined, Replication::Home);
    brain.handle(at(1), Input::IntervalEnded(own(50)));
    assert_eq!(called(&brain.handle(at(1), hot(PAGE))), None);
    let outputs = brain.handle(at(2), Input::IntervalEnded(own(50)));
    assert_eq!(called(&outputs), None);
    // The load follows: the page is still becoming hotter.
    let outputs = brain.handle(at(3), Input::IntervalEnded(own(150)));
    assert!(called(&outputs).is_some());
}

#[test]
fn a_site_that_stands_alone_does_not_say_that_it_asks_for_help() {
    let mut parameters = parameters("www.own.example");
    parameters.rescue_port = 0;
    let mut brain = Brain::new(parameters, 1, Vec::new());
    brain.handle(at(1), Input::IntervalEnded(own(200)));
    assert_eq!(brain.handle(at(1), hot(PAGE)), []);
}

#[test]
fn what_has_been_hot_for_long_drafts_nobody() {
    let mut brain = brain(Law::Combined, Replication::Home);
    brain.handle(at(1), Input::IntervalEnded(own(50)));
    brain.handle(at(1), hot(PAGE));
    let outputs = brain.handle(at(40), Input::IntervalEnded(own(200)));
    assert_eq!(called(&outputs), None);
}

#[test]
fn by_load_alone_nothing_is_copied() {
    let mut brain = brain(Law::Load, Replication::Home);
    draft(&mut brain, 1);
    assert_eq!(orders(&brain.handle(at(2), hot(PAGE))), []);
    assert_eq!(brain.view().hot, []);
}

#[test]
fn the_home_gets_it_first_and_the_others_pull_it_from_there() {
    let mut brain = brain(Law::Combined, Replication::Home);
    let links = draft(&mut brain, 3);
    let first = orders(&brain.handle(at(4), warm(PAGE)));
    let [home] = &first[..] else {
        panic!("{first:?}");
    };
    assert_eq!(home.means, CopyMeans::Push);
    let outputs = brain.handle(at(4), ended(home.link, PAGE, CopyOutcome::Held));
    let others = orders(&outputs);
    assert_eq!(others.len(), 2);
    for order in &others {
        assert_eq!(
            (order.means, order.embedded),
            (CopyMeans::Pull, Embedded::Without)
        );
        assert!(links.contains(&order.link) && order.link != home.link);
    }
    assert!(outputs.contains(&Output::SwapPlan));
    let bit = links.iter().position(|&link| link == home.link).unwrap();
    assert_eq!(
        routes(&brain),
        [HotRoute {
            url: PAGE.to_owned(),
            holders: 1 << bit,
            heat: Heat::Warm,
        }]
    );
}

#[test]
fn a_home_that_refuses_is_passed_over_and_not_asked_again_at_once() {
    let mut brain = brain(Law::Combined, Replication::Home);
    let links = draft(&mut brain, 2);
    let mut busy = own(600);
    for link in links {
        busy = fixtures::with_redirects(busy, link, 200);
    }
    let first = orders(&brain.handle(at(3), hot(PAGE)));
    let outputs = brain.handle(at(3), ended(first[0].link, PAGE, CopyOutcome::Refused));
    let next = orders(&outputs);
    assert_eq!(next.len(), 1);
    assert_ne!(next[0].link, first[0].link);
    assert_eq!(
        (next[0].means, next[0].embedded),
        (CopyMeans::Push, Embedded::With)
    );
    brain.handle(at(3), ended(next[0].link, PAGE, CopyOutcome::Held));
    for second in 4..60 {
        let outputs = brain.handle(at(second), Input::IntervalEnded(busy.clone()));
        assert_eq!(orders(&outputs), [], "{second}");
    }
    let outputs = brain.handle(at(63), Input::IntervalEnded(busy));
    let again = orders(&outputs);
    assert_eq!(
        (again[0].link, again[0].means),
        (first[0].link, CopyMeans::Pull)
    );
}

#[test]
fn pushed_or_pulled_each_gets_its_own_order_where_the_operator_says_so() {
    for (replication, means) in [
        (Replication::Push, CopyMeans::Push),
        (Replication::Pull, CopyMeans::Pull),
    ] {
        let mut brain = brain(Law::Combined, replication);
        let links = draft(&mut brain, 3);
        let orders = orders(&brain.handle(at(4), hot(PAGE)));
        let mut ordered: Vec<LinkId> = orders.iter().map(|order| order.link).collect();
        ordered.sort();
        assert_eq!(ordered, links);
        assert!(orders.iter().all(|order| order.means == means));
        let with = orders
            .iter()
            .filter(|order| order.embedded == Embedded::With);
        assert_eq!(with.count(), 1);
    }
}

#[test]
fn what_a_page_embeds_is_copied_with_it_and_cools_with_it() {
    let mut brain = brain(Law::Combined, Replication::Home);
    draft(&mut brain, 1);
    let link = orders(&brain.handle(at(2), hot(PAGE)))[0].link;
    let resources = vec!["www.own.example/style.css".to_owned(), PAGE.to_owned()];
    let page = PAGE.to_owned();
    let outputs = brain.handle(at(2), Input::EmbeddedFound { page, resources });
    let [order] = &orders(&outputs)[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!(order.url, "www.own.example/style.css");
    assert_eq!(order.embedded, Embedded::Without);
    for url in [PAGE, "www.own.example/style.css"] {
        brain.handle(at(2), ended(link, url, CopyOutcome::Held));
    }
    let told: Vec<_> = routes(&brain);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|route| route.heat == Heat::Redirected));
    brain.handle(at(3), stepped(PAGE, &[HotSpotStep::Normal]));
    assert_eq!(routes(&brain), []);
    assert_eq!(brain.view().hot, []);
}

#[test]
fn few_orders_are_under_way_at_a_time_and_the_hottest_come_first() {
    let mut brain = brain(Law::Combined, Replication::Push);
    draft(&mut brain, 1);
    let steps = (0..20_u64).map(|number| HotSpotOutput {
        url: format!("www.own.example/{number}"),
        step: match number % 2 {
            0 => HotSpotStep::Copy,
            _odd => HotSpotStep::Redirect,
        },
        gap: Duration::from_millis(500 - number),
    });
    let outputs = brain.handle(at(2), Input::ResourcesStepped(steps.collect()));
    let mut under_way = orders(&outputs);
    let mut done = Vec::new();
    while let Some(order) = under_way.pop() {
        assert!(under_way.len() < 2);
        let outputs = brain.handle(at(2), ended(order.link, &order.url, CopyOutcome::Held));
        done.push(order.url);
        under_way.extend(orders(&outputs));
    }
    assert_eq!(done.len(), 20);
    let redirected = |url: &String| !url.ends_with(['0', '2', '4', '6', '8']);
    assert_eq!(
        done.iter().take(10).filter(|url| redirected(url)).count(),
        9
    );
}

fn several(count: usize) -> Input {
    let step = |number: usize| HotSpotOutput {
        url: format!("www.own.example/{number}"),
        step: HotSpotStep::Copy,
        gap: Duration::from_millis(100),
    };
    Input::ResourcesStepped((0..count).map(step).collect())
}

#[test]
fn rescue_servers_that_hang_leave_room_for_others_and_then_rest_longer_each_time() {
    let mut brain = brain(Law::Combined, Replication::Push);
    let links = draft(&mut brain, 5);
    let healthy = links[4];
    let mut under_way = orders(&brain.handle(at(6), several(10)));
    // Whatever the one that answers is given, it holds; the others never answer.
    let mut held = BTreeSet::new();
    let serve = |brain: &mut Brain, orders: &mut Vec<CopyOrder>, held: &mut BTreeSet<String>| {
        let mut of_others = Vec::new();
        while let Some(order) = orders.pop() {
            if order.link != healthy {
                of_others.push(order.link);
                continue;
            }
            let end = ended(healthy, &order.url, CopyOutcome::Held);
            orders.extend(self::orders(&brain.handle(at(6), end)));
            held.insert(order.url);
        }
        of_others
    };
    let hanging = serve(&mut brain, &mut under_way, &mut held);
    assert_eq!(held.len(), 10);
    assert!(hanging.len() < 8, "{hanging:?}");
    let mut asked_at = Vec::new();
    for second in 7..300 {
        let mut sample = own(900);
        for &link in &links {
            sample = fixtures::with_redirects(sample, link, 400);
        }
        let orders = orders(&brain.handle(at(second), Input::IntervalEnded(sample)));
        let to_first = |order: &&CopyOrder| order.link == links[0];
        asked_at.extend(orders.iter().filter(to_first).map(|_| second));
    }
    // 30 s under way, then a rest of 30 s, 60 s, 120 s.
    assert_eq!(asked_at, [66, 156]);
}

#[test]
fn a_home_that_hangs_gives_way_to_the_next() {
    let mut brain = brain(Law::Combined, Replication::Home);
    let links = draft(&mut brain, 3);
    let hanging = links[0];
    let mut under_way = orders(&brain.handle(at(4), several(12)));
    let mut held = BTreeSet::new();
    for second in 4..50 {
        while let Some(order) = under_way.pop() {
            if order.link == hanging {
                continue;
            }
            let end = ended(order.link, &order.url, CopyOutcome::Held);
            under_way.extend(orders(&brain.handle(at(second), end)));
            held.insert(order.url);
        }
        let mut sample = own(900);
        for &link in &links {
            sample = fixtures::with_redirects(sample, link, 400);
        }
        under_way.extend(orders(
            &brain.handle(at(second + 1), Input::IntervalEnded(sample)),
        ));
    }
    assert_eq!(held.len(), 12);
}

#[test]
fn a_newcomer_is_given_what_is_hot_by_the_others_and_one_that_leaves_is_forgotten() {
    let mut brain = brain(Law::Combined, Replication::Home);
    let links = draft(&mut brain, 2);
    let first = orders(&brain.handle(at(3), hot(PAGE)))[0].link;
    for &link in &links {
        brain.handle(at(3), ended(first, PAGE, CopyOutcome::Held));
        brain.handle(at(3), ended(link, PAGE, CopyOutcome::Held));
    }
    assert_eq!(routes(&brain)[0].holders, 0b11);
    let mut sample = own(900);
    for &link in &links {
        sample = fixtures::with_redirects(sample, link, 400);
    }
    let outputs = brain.handle(at(3), Input::IntervalEnded(sample));
    let newcomer = called(&outputs).unwrap();
    let outputs = brain.handle(at(3), accepted(newcomer, 400, true));
    let [order] = &orders(&outputs)[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!((order.link, order.means), (newcomer, CopyMeans::Pull));
    let link = links[0];
    brain.handle(at(3), Input::ShutdownReceived { link });
    assert_eq!(routes(&brain)[0].holders, 0b01);
    // What it still says is of no interest.
    brain.handle(at(3), ended(link, PAGE, CopyOutcome::Held));
    assert_eq!(routes(&brain)[0].holders, 0b01);
}

#[test]
fn a_copy_that_a_visitor_did_not_find_is_made_again_later_and_later() {
    let mut brain = brain(Law::Resources, Replication::Push);
    let outputs = brain.handle(at(1), hot(PAGE));
    let link = called(&outputs).unwrap();
    brain.handle(at(1), accepted(link, 400, false));
    let url = PAGE.to_owned();
    let mut gaps = Vec::new();
    let mut second = 1;
    for _ in 0..4 {
        brain.handle(at(second), ended(link, PAGE, CopyOutcome::Held));
        assert_eq!(routes(&brain).len(), 1);
        let url = url.clone();
        brain.handle(at(second), Input::CopyMissing { link, url });
        assert_eq!(routes(&brain), []);
        let began = second;
        loop {
            second += 1;
            let outputs = brain.handle(at(second), Input::IntervalEnded(own(10)));
            if orders(&outputs).iter().any(|order| order.link == link) {
                break;
            }
        }
        gaps.push(second - began);
    }
    assert_eq!(gaps, [2, 4, 8, 16]);
}

#[test]
fn an_order_that_nobody_answers_is_given_up_and_made_again() {
    let mut brain = brain(Law::Resources, Replication::Push);
    let outputs = brain.handle(at(1), hot(PAGE));
    let link = called(&outputs).unwrap();
    let outputs = brain.handle(at(1), accepted(link, 400, false));
    assert_eq!(orders(&outputs).len(), 1);
    let again = (2..100).find(|&second| {
        let outputs = brain.handle(at(second), Input::IntervalEnded(own(10)));
        orders(&outputs).iter().any(|order| order.link == link)
    });
    assert_eq!(again, Some(61));
}

#[test]
fn by_resource_alone_replicas_are_asked_at_once_and_told_not_to_pull() {
    let mut brain = brain(Law::Resources, Replication::Push);
    let outputs = brain.handle(at(1), warm(PAGE));
    let mut calls = Vec::new();
    for output in &outputs {
        if let Output::CallForHelp { call, .. } = output {
            calls.push(call.misses);
        }
    }
    assert_eq!(calls, [Misses::SendBack; 8]);
    // The load alone asks nobody.
    let mut brain = self::brain(Law::Resources, Replication::Push);
    let outputs = brain.handle(at(1), Input::IntervalEnded(own(990)));
    assert_eq!(called(&outputs), None);
}

#[test]
fn by_resource_alone_rescue_servers_go_when_nothing_has_been_hot_for_long() {
    let mut brain = brain(Law::Resources, Replication::Push);
    let outputs = brain.handle(at(1), hot(PAGE));
    let link = called(&outputs).unwrap();
    brain.handle(at(1), accepted(link, 400, false));
    brain.handle(at(2), stepped(PAGE, &[HotSpotStep::Normal]));
    for second in 3..32 {
        brain.handle(at(second), Input::IntervalEnded(own(10)));
        assert_eq!(brain.view().phase, PhaseName::Sos);
    }
    brain.handle(at(32), Input::IntervalEnded(own(10)));
    assert_eq!(brain.view().phase, PhaseName::Normal);
}

#[test]
fn what_belongs_to_an_origin_that_we_rescue_is_not_ours_to_copy() {
    let mut brain = brain(Law::Combined, Replication::Home);
    brain.handle(at(1), Input::IntervalEnded(own(200)));
    let call = fixtures::call("www.origin.example");
    let link = LinkId::Inbound(1);
    brain.handle(at(1), Input::SosReceived { link, call });
    for url in ["www.origin.example/x", "www-vh1.aliases.example.net/x"] {
        brain.handle(at(1), hot(url));
    }
    assert_eq!(brain.view().hot, []);
    brain.handle(at(1), hot(PAGE));
    assert_eq!(brain.view().hot.len(), 1);
}

#[test]
fn people_are_told_of_each_turn_once() {
    let mut brain = brain(Law::Combined, Replication::Home);
    let links = draft(&mut brain, 1);
    brain.handle(at(2), hot(PAGE));
    brain.handle(at(2), ended(links[0], PAGE, CopyOutcome::Held));
    brain.handle(at(3), hot(PAGE));
    brain.handle(at(4), stepped(PAGE, &[HotSpotStep::Normal]));
    let told = brain.view().decisions.into_iter();
    let told = told.map(|entry| entry.reason.to_string());
    let told = told.filter(|text| text.contains("/page"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "copying www.own.example/page to one rescue server: asked for every 0.4 s",
            "redirecting visitors of www.own.example/page to one rescue server that holds it: \
             asked for every 0.4 s",
            "serving www.own.example/page here again: it is asked for rarely",
        ]
    );
}

#[test]
fn a_law_that_comes_in_the_middle_of_a_crowd_knows_what_is_hot() {
    for law in [Law::Combined, Law::Resources] {
        let mut brain = brain(Law::Load, Replication::Home);
        let links = draft(&mut brain, 1);
        assert!(orders(&brain.handle(at(2), hot(PAGE))).is_empty());
        assert!(brain.view().hot.is_empty());
        for second in 3..50 {
            brain.handle(at(second), Input::IntervalEnded(own(900)));
        }
        let mut parameters = brain.parameters().clone();
        parameters.hot_spots.law = law;
        let outputs = brain.handle(
            at(50),
            Input::ParametersChanged(Box::new(parameters.clone())),
        );
        let [order] = &orders(&outputs)[..] else {
            panic!("{outputs:?}");
        };
        assert_eq!((order.link, order.url.as_str()), (links[0], PAGE));
        brain.handle(at(50), ended(links[0], PAGE, CopyOutcome::Held));
        brain.handle(at(51), Input::IntervalEnded(own(900)));
        assert_eq!(brain.view().phase, PhaseName::Sos, "{law:?}");
        assert_eq!(routes(&brain).len(), 1);
        parameters.hot_spots.law = Law::Load;
        brain.handle(at(52), Input::ParametersChanged(Box::new(parameters)));
        assert!(routes(&brain).is_empty());
    }
}
