//! Resources that become hot are seen, whoever of the cores was asked, and among however many
//! others (H1, H2).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{
    Arrival, ArrivalTable, Arrivals, HotSpotInput, HotSpotOutput, HotSpotRules, HotSpotStep,
    HotSpots, ResourcePhase,
};
use levee_vocab::{Random, Timestamp};
use proptest::prelude::*;

/// One request: when, for which resource.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Timestamp,
    resource: u64,
}

/// A size of which thresholds count as they stand: log10(1 + 9) is 1.
const BYTES: u64 = 9000;
const INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT_PLACES: usize = 1024;

fn note(table: &mut ArrivalTable, asked: Asked) {
    let path = format!("/{}", asked.resource);
    let arrival = Arrival {
        // Neighbours in the index, as an unlucky hash would put them.
        hash: asked.resource,
        bytes: BYTES,
        host: "a.example",
        path: &path,
    };
    table.note(asked.at, &arrival);
}

fn tell(table: &[Asked], places: usize) -> Vec<Arrivals> {
    let mut core = ArrivalTable::new(places);
    table.iter().for_each(|&asked| note(&mut core, asked));
    core.take()
}

/// Plays requests to cores that tell once an interval, and says what came of it and when.
fn play(asked: &[Asked], tables: &mut [ArrivalTable]) -> (HotSpots, Vec<(u64, HotSpotOutput)>) {
    let mut spots = HotSpots::new(HotSpotRules::default(), DEFAULT_PLACES);
    let mut steps = Vec::new();
    let mut next = asked.iter().peekable();
    let last = asked.last().map_or(Timestamp::ZERO, |last| last.at);
    let mut now = Timestamp::ZERO;
    let mut turn = 0;
    while now < last + 30 * INTERVAL {
        now = now + INTERVAL;
        while let Some(asked) = next.next_if(|asked| asked.at <= now) {
            turn = (turn + 1) % tables.len();
            note(&mut tables[turn], *asked);
        }
        let told = tables.iter_mut().flat_map(ArrivalTable::take).collect();
        let outputs = spots.handle(now, HotSpotInput::ArrivalsTold(told));
        let second = now.as_nanoseconds() / 1_000_000_000;
        steps.extend(outputs.into_iter().map(|output| (second, output)));
    }
    (spots, steps)
}

fn tables(count: usize) -> Vec<ArrivalTable> {
    (0..count).map(|_| ArrivalTable::new(256)).collect()
}

fn steps_of(steps: &[(u64, HotSpotOutput)], url: &str) -> Vec<(u64, HotSpotStep)> {
    let of_it = steps.iter().filter(|(_, output)| output.url == url);
    of_it
        .map(|(second, output)| (*second, output.step))
        .collect()
}

/// Requests for one resource, evenly, so many a second.
fn evenly(resource: u64, rate: f64, seconds: std::ops::Range<u64>) -> Vec<Asked> {
    let count = ((seconds.end - seconds.start) as f64 * rate) as u64;
    let start = Timestamp::from_seconds(seconds.start);
    (0..count)
        .map(|number| Asked {
            at: start + Duration::from_secs_f64(number as f64 / rate),
            resource,
        })
        .collect()
}

#[test]
fn a_resource_is_copied_then_redirected_then_served_again() {
    let mut asked = evenly(1, 0.5, 10..60);
    asked.extend(evenly(1, 1.5, 60..100));
    asked.extend(evenly(1, 5.0, 100..130));
    asked.extend(evenly(1, 0.2, 130..200));
    let (spots, steps) = play(&asked, &mut tables(1));
    let steps = steps_of(&steps, "a.example/1");
    let kinds: Vec<_> = steps.iter().map(|(_, step)| *step).collect();
    assert_eq!(
        kinds,
        [
            HotSpotStep::Copy,
            HotSpotStep::Redirect,
            HotSpotStep::Normal
        ]
    );
    assert!((60..80).contains(&steps[0].0), "{steps:?}");
    // The crowd of five a second is there at 100: some requests until the average believes it.
    assert!((100..103).contains(&steps[1].0), "{steps:?}");
    // Five seconds between two requests are fewer than T_S, so it goes back after the last one.
    assert!((200..215).contains(&steps[2].0), "{steps:?}");
    assert_eq!(spots.view(), []);
}

#[test]
fn a_crowd_is_seen_within_two_seconds_of_its_first_request() {
    let asked = evenly(1, 50.0, 100..110);
    let (_, steps) = play(&asked, &mut tables(4));
    let steps = steps_of(&steps, "a.example/1");
    assert_eq!(steps[0], (101, HotSpotStep::Copy));
    assert_eq!(steps[1], (101, HotSpotStep::Redirect));
}

#[test]
fn a_few_quick_requests_are_no_crowd() {
    let asked = evenly(1, 50.0, 100..101);
    let (_, steps) = play(&asked[..15], &mut tables(1));
    assert_eq!(steps, []);
}

#[test]
fn the_gap_stays_between_thresholds_without_a_change_of_mind() {
    let mut asked = Vec::new();
    for round in 0..20 {
        let rate = if round % 2 == 0 { 2.5 } else { 0.8 };
        asked.extend(evenly(1, rate, round * 30..round * 30 + 30));
    }
    let (_, steps) = play(&asked, &mut tables(1));
    let kinds: Vec<_> = steps.iter().map(|(_, output)| output.step).collect();
    assert_eq!(
        kinds,
        [
            HotSpotStep::Copy,
            HotSpotStep::Redirect,
            HotSpotStep::Normal
        ]
    );
}

#[test]
fn outputs_have_one_order_whatever_the_order_of_the_cores() {
    let crowd = |resource, rate| evenly(resource, rate, 0..1);
    let mut told: Vec<Arrivals> = [(5, 40.0), (3, 60.0), (9, 60.0)]
        .into_iter()
        .flat_map(|(resource, rate)| tell(&crowd(resource, rate), 256))
        .collect();
    let mut outputs = Vec::new();
    for _ in 0..told.len() {
        told.rotate_left(1);
        let mut spots = HotSpots::new(HotSpotRules::default(), DEFAULT_PLACES);
        let now = Timestamp::from_seconds(1);
        outputs.push(spots.handle(now, HotSpotInput::ArrivalsTold(told.clone())));
    }
    let urls: Vec<_> = outputs[0].iter().map(|output| &output.url).collect();
    let hottest_first = ["a.example/3", "a.example/9", "a.example/5"];
    let twice: Vec<_> = hottest_first.iter().flat_map(|url| [url, url]).collect();
    assert_eq!(urls, twice);
    assert!(outputs.iter().all(|other| *other == outputs[0]));
}

#[test]
fn a_resource_that_loses_its_place_is_no_longer_redirected() {
    let mut spots = HotSpots::new(HotSpotRules::default(), 2);
    let first = tell(&evenly(1, 40.0, 0..1), 256);
    spots.handle(
        Timestamp::from_seconds(1),
        HotSpotInput::ArrivalsTold(first),
    );
    let mut others = tell(&evenly(2, 400.0, 1..2), 256);
    others.extend(tell(&evenly(3, 400.0, 1..2), 256));
    let outputs = spots.handle(
        Timestamp::from_seconds(2),
        HotSpotInput::ArrivalsTold(others),
    );
    assert_eq!(outputs[0].url, "a.example/1");
    assert_eq!(outputs[0].step, HotSpotStep::Normal);
    assert!(spots.view().iter().all(|view| view.url != "a.example/1"));
}

#[test]
fn a_url_that_is_too_long_to_be_kept_is_counted_and_never_copied() {
    let path = format!("/{}", "x".repeat(500));
    let mut core = ArrivalTable::new(8);
    for number in 0..1000 {
        let arrival = Arrival {
            hash: 7,
            bytes: BYTES,
            host: "a.example",
            path: &path,
        };
        core.note(Timestamp::from_milliseconds(number), &arrival);
    }
    let mut spots = HotSpots::new(HotSpotRules::default(), DEFAULT_PLACES);
    let input = HotSpotInput::ArrivalsTold(core.take());
    assert_eq!(spots.handle(Timestamp::from_seconds(1), input), []);
    spots.handle(Timestamp::from_seconds(1), HotSpotInput::IntervalEnded);
    assert_eq!(spots.view()[0].recent, 1000);
    assert_eq!(spots.view()[0].phase, ResourcePhase::Cold);
}

/// The shape of the paper's log (its figure 4): hours of background, a small spike 16 hours before
/// the flash crowd, another 4 hours before it.
#[test]
fn the_small_spikes_hours_before_the_flash_crowd_are_seen() {
    const HOUR: u64 = 3600;
    let mut random = Random::from_seed(11);
    let mut asked = Vec::new();
    let mut crowd = |resource, rate: f64, from: u64, seconds: u64| {
        let mut at = Timestamp::from_seconds(from);
        let end = Timestamp::from_seconds(from + seconds);
        loop {
            let gap = -(1.0 - random.fraction()).ln() / rate;
            at = at + Duration::from_secs_f64(gap);
            if at >= end {
                break;
            }
            asked.push(Asked { at, resource });
        }
    };
    for resource in 100..140 {
        crowd(resource, 0.02, 0, 22 * HOUR);
    }
    crowd(1, 3.0, 4 * HOUR, 600);
    crowd(1, 4.0, 16 * HOUR, 600);
    crowd(1, 60.0, 20 * HOUR, 1800);
    asked.sort_by_key(|asked| asked.at);
    let (_, steps) = play(&asked, &mut tables(2));
    let hours: Vec<_> = steps_of(&steps, "a.example/1")
        .into_iter()
        .filter(|(_, step)| *step == HotSpotStep::Copy)
        .map(|(second, _)| second / HOUR)
        .collect();
    assert_eq!(hours, [4, 16, 20]);
    // Nothing else was ever taken for hot.
    assert!(steps.iter().all(|(_, output)| output.url == "a.example/1"));
}

/// The moving average of the paper, request by request.
fn exact_average(asked: &[Asked], ceiling: f64) -> f64 {
    let mut average = ceiling;
    for pair in asked.windows(2) {
        let gap = pair[1].at.since(pair[0].at).as_secs_f64();
        average = if gap >= ceiling {
            ceiling
        } else {
            0.875 * average + 0.125 * gap
        };
    }
    average
}

fn any_asked(resources: u64) -> impl Strategy<Value = Vec<Asked>> {
    let one = (0..20_000_u64, 0..resources);
    prop::collection::vec(one, 1..600).prop_map(|mut all| {
        all.sort_unstable();
        all.into_iter()
            .map(|(milliseconds, resource)| Asked {
                at: Timestamp::from_milliseconds(milliseconds),
                resource,
            })
            .collect()
    })
}

fn counts(asked: &[Asked]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for one in asked {
        *counts.entry(one.resource).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The promise in the header of `arrivals.rs`.
    #[test]
    fn what_is_asked_for_often_is_told_and_never_told_too_high(
        asked in any_asked(60),
        places in 1..20_usize,
        cores in 1..4_usize,
    ) {
        let mut tables: Vec<_> = (0..cores).map(|_| ArrivalTable::new(places)).collect();
        for (number, one) in asked.iter().enumerate() {
            // Unevenly, as cores are asked.
            note(&mut tables[(number * number) % cores], *one);
        }
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        for arrivals in tables.iter_mut().flat_map(ArrivalTable::take) {
            *told.entry(arrivals.hash).or_default() += arrivals.count;
        }
        let error = asked.len() as u64 / places as u64;
        for (resource, count) in counts(&asked) {
            let said = told.get(&resource).copied().unwrap_or(0);
            prop_assert!(said <= count);
            prop_assert!(said + error >= count, "{said} of {count}, error {error}");
        }
    }

    /// Whatever the cores noted together, one table would have noted alone.
    #[test]
    fn cores_together_see_what_one_alone_would_have_seen(
        asked in any_asked(8),
        cores in 2..5_usize,
    ) {
        let (one, one_steps) = play(&asked, &mut tables(1));
        let (many, many_steps) = play(&asked, &mut tables(cores));
        prop_assert_eq!(one.view(), many.view());
        prop_assert_eq!(one_steps, many_steps);
    }

    /// With places for every resource, the average is that of the paper but for the unevenness
    /// within an interval.
    #[test]
    fn the_average_is_the_papers_but_for_the_unevenness_within_an_interval(
        asked in any_asked(1),
    ) {
        let mut spots = HotSpots::new(HotSpotRules::default(), DEFAULT_PLACES);
        let mut seen = Vec::new();
        let mut error = 0.0_f64;
        for second in 0..20 {
            let now = Timestamp::from_seconds(second + 1);
            let from = Timestamp::from_seconds(second);
            let part: Vec<_> = asked
                .iter()
                .copied()
                .filter(|one| one.at >= from && one.at < now)
                .collect();
            spots.handle(now, HotSpotInput::ArrivalsTold(tell(&part, 4)));
            spots.handle(now, HotSpotInput::IntervalEnded);
            seen.extend(&part);
            let gaps = part.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_secs_f64());
            let gaps: Vec<f64> = gaps.collect();
            let largest = gaps.iter().copied().fold(0.0, f64::max);
            let smallest = gaps.iter().copied().fold(f64::INFINITY, f64::min).min(largest);
            error = error * 0.875_f64.powi(part.len() as i32) + (largest - smallest);
            if let Some(view) = spots.view().first() {
                let exact = exact_average(&seen, 10.0);
                let ours = view.average.as_secs_f64();
                prop_assert!((ours - exact).abs() <= error + 1e-6, "{ours} {exact} {error}");
            }
        }
    }

    /// The promise in the header of `hotspot.rs`: a table of few places keeps what is wanted most.
    #[test]
    fn the_watched_are_few_and_the_most_wanted_is_among_them(
        seed in any::<u64>(),
        places in 2..12_usize,
    ) {
        let mut random = Random::from_seed(seed);
        let mut spots = HotSpots::new(HotSpotRules::default(), places);
        for second in 0..60_u64 {
            let start = Timestamp::from_seconds(second);
            let mut asked = Vec::new();
            let others = 60;
            // A little more than one part in `places` of all.
            let wanted = others / (places as u64 - 1) + 2;
            for number in 0..others {
                asked.push(Asked { at: start, resource: 10 + random.within(0..1_000_000) });
                if number < wanted {
                    asked.push(Asked { at: start, resource: 1 });
                }
            }
            let now = Timestamp::from_seconds(second + 1);
            spots.handle(now, HotSpotInput::ArrivalsTold(tell(&asked, 256)));
            spots.handle(now, HotSpotInput::IntervalEnded);
            let views = spots.view();
            prop_assert!(views.len() <= places);
            prop_assert!(views.iter().any(|view| view.url == "a.example/1"));
        }
    }
}

#[test]
fn noting_a_request_allocates_nothing() {
    let mut core = ArrivalTable::new(64);
    let counted = allocation_counter::measure(|| {
        for number in 0..10_000_u64 {
            let arrival = Arrival {
                hash: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1000,
                bytes: BYTES,
                host: "a.example",
                path: "/page",
            };
            core.note(Timestamp::from_milliseconds(number), &arrival);
        }
    });
    assert_eq!(counted.count_total, 0);
}
