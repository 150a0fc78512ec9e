//! H4, H5: no visit is redirected for ever, whatever an origin and its rescue servers believe.
//!
//! The model is exhaustive. At each step somebody who wishes the visitor ill decides what each
//! server believes at that moment; only what [`Comeback::onward`] and [`WayBack::of`] forbid is
//! forbidden to him.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use levee_control::{Comeback, Onward, OriginPhase, REDIRECTS_MAX, Signature, WayBack};
use levee_vocab::Timestamp;

/// What stands in the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    None,
    /// Signed by this rescue server; by none of them where it is forged.
    Signed(Option<usize>),
    Unsigned,
    /// The mark that the origin gave it on this visit.
    Marked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Origin,
    Alias(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    at: Place,
    word: Word,
}

/// What the servers know of the keys by which words are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// All know theirs, and their clocks are right: none was restarted.
    Known,
    /// The origin may think of a signed word what it likes, and a rescue server may have no key.
    Anything,
}

const UNTIL: Timestamp = Timestamp::ZERO;
const PHASES: [OriginPhase; 4] = [
    OriginPhase::Live,
    OriginPhase::Ending { until: UNTIL },
    OriginPhase::Restored { until: UNTIL },
    OriginPhase::Expired { until: UNTIL },
];

/// What the origin may make of `word`.
fn beliefs(word: Word, keys: Keys) -> Vec<Comeback> {
    match (word, keys) {
        (Word::None, _) => vec![Comeback::None],
        (Word::Unsigned, _) => vec![Comeback::Unsigned],
        // It asks nobody about that, and keeps its own key as long as it runs.
        (Word::Marked, _) => vec![Comeback::Returned],
        (Word::Signed(Some(_)), Keys::Known) => vec![Comeback::Believed],
        (Word::Signed(None), Keys::Known) => vec![Comeback::Doubtful],
        (Word::Signed(_), Keys::Anything) => vec![Comeback::Believed, Comeback::Doubtful],
    }
}

/// Where `visit` may be redirected from the origin: to anybody, alive or not.
fn from_origin(visit: Visit, servers: usize, keys: Keys) -> Vec<Visit> {
    let words = beliefs(visit.word, keys).into_iter();
    let words = words.filter_map(|belief| match belief.onward() {
        Onward::Plain => Some(Word::None),
        Onward::Marked => Some(Word::Marked),
        Onward::Never => None,
    });
    words
        .flat_map(|word| {
            (0..servers).map(move |server| Visit {
                at: Place::Alias(server),
                word,
            })
        })
        .collect()
}

/// Where `visit` may be sent from the alias of `server`, whatever phase it takes the rescue to be
/// in; and whether or not it has a key, unless all know theirs.
fn from_alias(visit: Visit, server: usize, keys: Keys) -> Vec<Visit> {
    // A rescue server knows no key of others, and does not look.
    let comeback = match visit.word {
        Word::None => Comeback::None,
        Word::Signed(_) | Word::Unsigned | Word::Marked => Comeback::Doubtful,
    };
    let mut next = Vec::new();
    for phase in PHASES {
        for signature in [Signature::Possible, Signature::Impossible] {
            let has_lost_it =
                matches!(phase, OriginPhase::Restored { .. }) || signature == Signature::Impossible;
            if keys == Keys::Known && has_lost_it {
                continue;
            }
            let word = match WayBack::of(phase, comeback, signature) {
                WayBack::None => continue,
                WayBack::Signed => Word::Signed(Some(server)),
                WayBack::Unsigned => Word::Unsigned,
                WayBack::Kept => visit.word,
            };
            next.push(Visit {
                at: Place::Origin,
                word,
            });
        }
    }
    next
}

/// Most redirects that `visit` may still get; none where there may be a loop.
fn most(
    visit: Visit,
    servers: usize,
    keys: Keys,
    known: &mut BTreeMap<Visit, Option<u32>>,
) -> Option<u32> {
    if let Some(found) = known.get(&visit) {
        return *found;
    }
    // Who comes by here again before this is known goes round.
    known.insert(visit, None);
    let next = match visit.at {
        Place::Origin => from_origin(visit, servers, keys),
        Place::Alias(server) => from_alias(visit, server, keys),
    };
    let mut longest = 0;
    for step in next {
        longest = longest.max(1 + most(step, servers, keys, known)?);
    }
    known.insert(visit, Some(longest));
    Some(longest)
}

fn longest(start: Word, servers: usize, keys: Keys) -> Option<u32> {
    let visit = Visit {
        at: Place::Origin,
        word: start,
    };
    most(visit, servers, keys, &mut BTreeMap::new())
}

#[test]
fn no_visit_is_redirected_more_often_than_the_bound_whatever_anybody_believes() {
    for servers in 1..=5 {
        let starts = [Word::None, Word::Signed(None), Word::Unsigned, Word::Marked];
        let starts = starts
            .into_iter()
            .chain((0..servers).map(|s| Word::Signed(Some(s))));
        let all: Option<Vec<u32>> = starts
            .map(|start| longest(start, servers, Keys::Anything))
            .collect();
        assert_eq!(all.unwrap().into_iter().max(), Some(REDIRECTS_MAX));
    }
    assert_eq!(longest(Word::None, 0, Keys::Anything), Some(0));
}

#[test]
fn a_visit_is_redirected_twice_at_most_where_all_know_the_keys() {
    for servers in 1..=5 {
        assert_eq!(longest(Word::None, servers, Keys::Known), Some(2));
        // A link with the word of an earlier rescue: there, and from an expired alias back.
        assert_eq!(longest(Word::Signed(None), servers, Keys::Known), Some(2));
    }
}

#[test]
fn who_begins_at_an_alias_gets_there_as_well() {
    for word in [Word::None, Word::Signed(None), Word::Unsigned, Word::Marked] {
        let at = Place::Alias(0);
        let most = most(Visit { at, word }, 3, Keys::Anything, &mut BTreeMap::new());
        assert!(most.unwrap() <= REDIRECTS_MAX, "{word:?}");
    }
}

#[test]
fn a_serving_alias_sends_nobody_back_twice() {
    for phase in &PHASES[..2] {
        for signature in [Signature::Possible, Signature::Impossible] {
            for comeback in [
                Comeback::Believed,
                Comeback::Returned,
                Comeback::Doubtful,
                Comeback::Unsigned,
            ] {
                assert_eq!(WayBack::of(*phase, comeback, signature), WayBack::None);
            }
        }
    }
}

#[test]
fn whoever_follows_a_shared_link_may_be_redirected_whatever_word_it_has() {
    for word in [Word::None, Word::Signed(None), Word::Unsigned] {
        let visit = Visit {
            at: Place::Origin,
            word,
        };
        assert!(!from_origin(visit, 1, Keys::Known).is_empty(), "{word:?}");
    }
}
