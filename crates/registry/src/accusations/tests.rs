//! Who is believed, for how long, and how little one liar can do.

use levee_wire::Digest;
use levee_wire::registry::{AccusationProof, Sight};

use super::*;

const CLOCK: u64 = 1_790_000_000_000;
const NOW: Timestamp = Timestamp::ZERO;

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

fn said(accuser: &str, accused: &str, stamp: u64) -> Accusation {
    Accusation {
        accuser: host(accuser),
        accused: host(accused),
        stamp,
        sight: Some(Sight::of("/", Digest([1; 32]))),
        proof: AccusationProof {
            key: "k".parse().unwrap(),
            signature: "s".parse().unwrap(),
        },
    }
}

fn taken_back(accuser: &str, accused: &str, stamp: u64) -> Accusation {
    Accusation {
        sight: None,
        ..said(accuser, accused, stamp)
    }
}

/// Whether `www.liar.test` is believed to be one, after these words.
fn is_believed(words: &[Accusation]) -> bool {
    let mut all = Accusations::default();
    for word in words {
        all.hear(NOW, CLOCK, word.clone());
    }
    all.are_believed_of(&host("www.liar.test"))
}

#[test]
fn two_members_of_different_domains_are_believed_and_nobody_else() {
    let by = |accuser: &str| said(accuser, "www.liar.test", CLOCK);
    assert!(!is_believed(&[]));
    assert!(!is_believed(&[by("www.a.test")]));
    assert!(!is_believed(&[by("www.a.test"), by("cdn.a.test")]));
    assert!(!is_believed(&[by("www.a.test"), by("cdn.liar.test")]));
    assert!(!is_believed(&[by("www.a.test"), by("www.liar.test")]));
    assert!(is_believed(&[by("www.a.test"), by("www.b.test")]));
}

#[test]
fn the_newest_word_counts_in_whatever_order_it_comes() {
    let mut words = [
        said("www.a.test", "www.liar.test", CLOCK),
        said("www.b.test", "www.liar.test", CLOCK),
        taken_back("www.b.test", "www.liar.test", CLOCK + 1),
    ];
    assert!(!is_believed(&words));
    words.reverse();
    assert!(!is_believed(&words));
    words[0] = said("www.b.test", "www.liar.test", CLOCK + 2);
    assert!(is_believed(&words));
}

#[test]
fn a_word_is_news_once_and_ends_after_a_day() {
    let mut all = Accusations::default();
    let word = said("www.a.test", "www.liar.test", CLOCK - 3_600_000);
    assert_eq!(all.hear(NOW, CLOCK, word.clone()), Heard::News);
    assert_eq!(all.hear(NOW, CLOCK, word.clone()), Heard::Known);
    let end = NOW + (ACCUSATION_LIFETIME - Duration::from_secs(3600));
    assert_eq!(all.next_end(), Some(end));
    all.expire(end);
    assert_eq!(all.all().count(), 0);
    let late = CLOCK + 23 * 3_600_000;
    assert_eq!(all.hear(end, late, word), Heard::Known);
    assert_eq!(all.all().count(), 0);
    let early = said("www.a.test", "www.liar.test", CLOCK + 60_001);
    let future = Heard::Refused(Refusal::FromTheFuture);
    assert_eq!(all.hear(NOW, CLOCK, early), future);
}

#[test]
fn who_is_no_member_any_more_has_said_nothing() {
    let mut all = Accusations::default();
    for accuser in ["www.a.test", "www.b.test"] {
        all.hear(NOW, CLOCK, said(accuser, "www.liar.test", CLOCK));
    }
    all.forget(&BTreeSet::from([host("www.b.test")]));
    assert!(!all.are_believed_of(&host("www.liar.test")));
    assert_eq!(all.accusers().count(), 1);
}

#[test]
fn who_accuses_everybody_is_heard_of_a_few() {
    let word = |number: u64| said("www.a.test", &format!("w{number}.test"), CLOCK + number);
    let (mut up, mut down) = (Accusations::default(), Accusations::default());
    for number in 0..1000 {
        up.hear(NOW, CLOCK, word(number));
        down.hear(NOW, CLOCK, word(999 - number));
    }
    // Those of which it has spoken last, in whatever order that came.
    assert_eq!(up.all().count(), PER_ACCUSER_MAX);
    assert!(up.all().eq(down.all()));
    for number in 0..2000 {
        up.hear(
            NOW,
            CLOCK,
            said(&format!("w{number}.test"), "www.liar.test", CLOCK),
        );
    }
    assert_eq!(up.accusers().count(), ACCUSERS_MAX);
}

#[test]
fn what_was_taken_back_is_told_however_much_is_said() {
    let mut all = Accusations::default();
    for (accuser, accused) in (0..8).flat_map(|one| (0..8).map(move |two| (one, two))) {
        let accuser = format!("www.talker{accuser}.test");
        let accused = format!("www.accused{accused}.test");
        all.hear(NOW, CLOCK, said(&accuser, &accused, CLOCK));
    }
    all.hear(NOW, CLOCK, taken_back("www.a.test", "www.b.test", CLOCK));
    let is_taken_back = |word: &&Accusation| word.sight.is_none();
    let told = all.told(64);
    assert_eq!(told.len(), 64);
    assert_eq!(told.into_iter().filter(is_taken_back).count(), 1);
    assert_eq!(all.told(1000).len(), 65);
}
