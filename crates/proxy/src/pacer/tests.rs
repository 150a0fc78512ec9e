//! The link under a virtual clock.

use super::*;
use levee_vocab::Random;
use proptest::prelude::*;

const RATE: ByteRate = ByteRate::from_kilobytes(54);

/// Sends messages of `bytes` as fast as `link` allows from `from` to `until`, looking at it every
/// `step`. Returns when each was sent.
fn saturate(link: &Link, bytes: u64, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let mut now = from;
    let mut sent = Vec::new();
    while now < until {
        match link.start(Class::Page, now, from, bytes) {
            Grant::Now => sent.push(now),
            Grant::NotBefore(at) => now = at + Duration::from_micros(300),
        }
    }
    sent
}

#[test]
fn a_busy_link_carries_its_rate_and_no_more() {
    let link = Link::new(RATE);
    let start = Timestamp::from_seconds(100);
    let end = Timestamp::from_seconds(110);
    let sent = saturate(&link, 558, start, end);
    let carried = link.carried(end);
    assert!((535_000..=540_000).contains(&carried), "{carried}");
    // Looking late costs nothing: 540,000 / 558 is 967.7.
    assert!((966..=968).contains(&sent.len()), "{}", sent.len());
    assert_eq!(
        link.carried(end + Duration::from_secs(1)),
        sent.len() as u64 * 558
    );
}

#[test]
fn a_link_that_was_idle_does_not_save_up() {
    let link = Link::new(RATE);
    saturate(
        &link,
        1000,
        Timestamp::from_seconds(1),
        Timestamp::from_seconds(2),
    );
    let before = link.carried(Timestamp::from_seconds(50));
    saturate(
        &link,
        1000,
        Timestamp::from_seconds(50),
        Timestamp::from_seconds(51),
    );
    let carried = link.carried(Timestamp::from_seconds(51)) - before;
    assert!(carried <= 54_000, "{carried}");
}

#[test]
fn a_flood_of_resets_does_not_keep_the_link_from_visitors() {
    let link = Link::new(RATE);
    let start = Timestamp::from_seconds(100);
    let mut now = start;
    let mut sent = 0;
    // Ten thousand connections a second, each reset.
    for _ in 0..100_000 {
        link.charge(now, 136);
        sent += u64::from(link.start(Class::Page, now, start, 558) == Grant::Now);
        now = now + Duration::from_micros(100);
    }
    assert!(sent * 558 >= 240_000, "{sent}");
    assert!(link.backlog(now) < Duration::from_secs(1));
    assert!(link.carried(now) <= 540_000);
}

#[test]
fn a_core_that_stood_still_finds_no_burst() {
    let link = Link::new(RATE);
    let ready = Timestamp::from_seconds(1);
    let now = Timestamp::from_seconds(5);
    let mut sent = 0;
    while link.start(Class::Page, now, ready, 540) == Grant::Now {
        sent += 1;
    }
    // 10 ms of lateness are one message, and one more starts at once.
    assert_eq!(sent, 2);
}

#[test]
fn debits_from_outside_delay_the_others() {
    let link = Link::new(RATE);
    let now = Timestamp::from_seconds(1);
    link.charge(now, 54_000);
    let expected = Grant::NotBefore(Timestamp::from_seconds(2));
    assert_eq!(link.start(Class::Redirect, now, now, 100), expected);
    assert_eq!(link.backlog(now), Duration::from_secs(1));
    link.admit(Class::Page, 27_000);
    assert_eq!(link.backlog(now), Duration::from_millis(1500));
    assert_eq!(link.urgent_backlog(now), Duration::from_secs(1));
    link.settle(Class::Page, 27_000);
    let half = now + Duration::from_millis(500);
    assert_eq!(link.carried(half), 27_000);
}

#[test]
fn a_refund_makes_it_as_if_nothing_had_been_charged() {
    let link = Link::new(RATE);
    let now = Timestamp::from_seconds(1);
    assert_eq!(link.start(Class::Page, now, now, 5000), Grant::Now);
    link.refund(3000);
    let later = Timestamp::from_seconds(2);
    assert_eq!(link.carried(later), 2000);
    assert!(link.backlog(now) <= RATE.time_for(2000) + Duration::from_nanos(2));
}

#[test]
fn pages_step_back_while_another_core_has_redirects() {
    let link = Link::new(RATE);
    let now = Timestamp::from_seconds(1);
    let mut other = PacedQueue::default();
    other.push(&link, Class::Redirect, 7, now);
    assert_ne!(link.start(Class::Page, now, now, 100), Grant::Now);
    assert_ne!(link.start(Class::Fetch, now, now, 100), Grant::Now);
    assert_eq!(other.next(now), Some((Class::Redirect, 7)));
    assert_eq!(link.start(Class::Redirect, now, now, 1), Grant::Now);
    other.pop(&link, (Class::Redirect, 7));
    let later = now + Duration::from_secs(1);
    assert_eq!(link.start(Class::Page, later, later, 100), Grant::Now);
}

#[test]
fn classes_are_served_in_their_order() {
    let link = Link::new(RATE);
    let now = Timestamp::from_seconds(1);
    let mut queue = PacedQueue::default();
    for (class, token) in [
        (Class::Page, 1),
        (Class::Fetch, 2),
        (Class::Page, 3),
        (Class::Redirect, 4),
    ] {
        queue.push(&link, class, token, now);
    }
    let mut order = Vec::new();
    while let Some((class, token)) = queue.next(now) {
        order.push(token);
        queue.pop(&link, (class, token));
    }
    assert_eq!(order, [4, 2, 1, 3]);
}

#[test]
fn the_newest_redirect_goes_first_once_the_oldest_has_waited_long() {
    let link = Link::new(RATE);
    let start = Timestamp::from_seconds(1);
    let at = |millis| start + Duration::from_millis(millis);
    let mut queue = PacedQueue::default();
    for token in 1..=3 {
        queue.push(&link, Class::Redirect, token, at(token));
        queue.push(&link, Class::Page, token + 10, at(token));
    }
    assert_eq!(queue.next(at(20)), Some((Class::Redirect, 1)));
    let mut order = Vec::new();
    while let Some((class, token)) = queue.next(at(40)) {
        order.push(token);
        queue.pop(&link, (class, token));
    }
    assert_eq!(order, [3, 2, 1, 11, 12, 13]);
    assert!(queue.is_empty());
}

#[test]
fn refusals_get_a_fiftieth_of_the_link() {
    let link = Link::new(RATE);
    let mut allowed = 0;
    for millis in 10_000..110_000 {
        if link.allows_refusal(Timestamp::from_milliseconds(millis), 500) {
            allowed += 1;
        }
    }
    // 2 % of 54 kB/s in 100 s are 216 refusals of 500 bytes, and one second's worth saved up.
    assert!((216..=220).contains(&allowed), "{allowed}");
}

#[test]
fn a_look_while_a_core_is_late_counts_no_byte_twice() {
    let link = Link::new(RATE);
    let mut meter = PeakMeter::default();
    let mut random = Random::from_seed(1);
    let start = Timestamp::from_seconds(1);
    let mut now = start;
    while now < start + Duration::from_secs(20) {
        // The link has run dry, and what starts next is held to have started in time.
        meter.observe(&link, now);
        match link.start(Class::Page, now, start, 558) {
            Grant::Now => {}
            Grant::NotBefore(at) => now = at + Duration::from_micros(random.within(0..9000)),
        }
    }
    let peak = link.sample(now).peak;
    assert!(peak <= RATE.as_bytes() + 1, "{peak}");
    assert!(peak > RATE.as_bytes() * 99 / 100, "{peak}");
}

proptest! {
    /// Whatever is sent, charged or refunded: never more than B in any one second.
    #[test]
    fn no_second_carries_more_than_the_rate(seed: u64) {
        let mut random = Random::from_seed(seed);
        let link = Link::new(RATE);
        let mut meter = PeakMeter::default();
        let mut now = Timestamp::from_seconds(1);
        for _ in 0..3000 {
            now = now + Duration::from_micros(random.within(0..8000));
            let bytes = random.within(1..6000);
            match random.within(0..10) {
                0 => link.charge(now, bytes),
                _ => {
                    if link.start(Class::Page, now, now, bytes) == Grant::Now && random.chance(0.3) {
                        link.refund(bytes / 2);
                    }
                }
            }
            meter.observe(&link, now);
        }
        let peak = link.sample(now).peak;
        prop_assert!(peak <= RATE.as_bytes() + 1, "{peak}");
        prop_assert!(peak > RATE.as_bytes() / 2, "{peak}");
    }
}
