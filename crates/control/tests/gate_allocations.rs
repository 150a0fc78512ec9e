//! A decision of the Gate allocates nothing: counted by an allocator (DESIGN, numbers that decide).

#![allow(clippy::unwrap_used)]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use fixtures::{accepted, at, called, candidate, own, parameters};
use levee_control::{
    Ask, Brain, Copies, Gate, GateLimits, Input, RecognisedBy, Redirectability, Traffic, Verdict,
    Visitor,
};

#[test]
fn a_decision_allocates_nothing() {
    let mut brain = Brain::new(parameters("www.origin.example"), 1, Vec::new());
    let mut gate = Gate::new(GateLimits::default());
    let found = vec![
        candidate("www.rescue1.example", 5000),
        candidate("www.rescue2.example", 4000),
    ];
    brain.handle(at(0), Input::CandidatesFound(found));
    let mut sample = own(2000);
    for second in 1..=2 {
        sample.waiting = 10;
        let outputs = brain.handle(at(second), Input::IntervalEnded(sample.clone()));
        let link = called(&outputs).unwrap();
        brain.handle(at(second), accepted(link, 400, true));
        // All that it takes, so that the second is asked as well.
        let used = Traffic {
            bytes: 46_800,
            requests: 100,
            file_bytes: 400_000,
        };
        sample.redirects.insert(link, used);
    }
    gate.adopt(at(2), brain.plan(), 1.0);
    let mut verdicts = [0_u32; 5];
    let counted = allocation_counter::measure(|| {
        for number in 0..10_000 {
            let verdict = gate.decide(at(2) + Duration::from_micros(number * 100), &ask(number));
            verdicts[match verdict {
                Verdict::Serve => 0,
                Verdict::Redirect { .. } => 1,
                Verdict::Wait => 2,
                // `decide` never withholds anything.
                Verdict::Refuse | Verdict::Withhold => 3,
                Verdict::PutOff => 4,
            }] += 1;
        }
    });
    assert_eq!(counted.count_total, 0);
    assert!(verdicts.iter().all(|&count| count > 0), "{verdicts:?}");
}

/// One of many different requests.
fn ask(number: u64) -> Ask {
    Ask {
        visitor: match number % 8 {
            7 => Visitor::Crawler(RecognisedBy::Name),
            _ => Visitor::Reader,
        },
        redirectable: Redirectability::Allowed,
        file_bytes: if number.is_multiple_of(100) {
            150_000
        } else {
            1000
        },
        redirect_bytes: 227,
        overhead_bytes: 358,
        path_hash: number % 10,
        resource_hash: 0,
        copies: Copies::NONE,
        backlog: Duration::from_millis(number % 2000),
        waited: Duration::from_millis(number),
    }
}
