//! What the answers of several registries to one search come to.
//!
//! Each registry of a mesh knows the same, but for what is on its way just now. So a member that
//! one of them names is there, whatever another one leaves out; of two entries of a member the one
//! with the newer stamp counts, and of two alike the one that says more. Entries are signed by
//! their sites in a closed community, and were checked before they come here: the only lie that is
//! left to a registry is to say too little, and [`missing`] finds it by comparing.
//!
//! A registry that leaves out somebody need be no liar: it may have been restarted a moment ago, or
//! be cut off, or not have heard yet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;

use levee_vocab::{AliasHttps, ByteRate, HostName};
use levee_wire::registry::{Entry, Search};

/// The newest entry of each site among several answers, the largest offers first.
pub fn newest(answers: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut newest: BTreeMap<HostName, Entry> = BTreeMap::new();
    for entry in answers {
        match newest.entry(entry.site.host.clone()) {
            Place::Vacant(place) => {
                place.insert(entry);
            }
            Place::Occupied(mut place) if said(place.get()) < said(&entry) => {
                place.insert(entry);
            }
            Place::Occupied(_) => {}
        }
    }
    let mut all: Vec<Entry> = newest.into_values().collect();
    all.sort_by_key(|entry| (Reverse(entry.free), entry.site.host.clone()));
    all
}

/// By what the newer one of two entries of a site is known. A registry may leave out what an entry
/// says of HTTPS, because it does not know the word.
fn said(entry: &Entry) -> (u64, AliasHttps) {
    (entry.stamp, entry.https)
}

/// The entries of `first`, and of those whom it does not name the newest of `others`: where nothing
/// is signed, so that nobody's word replaces another's. Sorted as by [`newest`].
pub fn known_first(first: &[Entry], others: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let is_new = |entry: &Entry| !first.iter().any(|one| one.site.host == entry.site.host);
    let others = others.into_iter().filter(is_new);
    newest(first.iter().cloned().chain(others))
}

/// Those that a registry which knew all of them would have found; `all` is sorted as by [`newest`].
pub fn best(all: &[Entry], search: &Search) -> Vec<Entry> {
    let others = all
        .iter()
        .filter(|entry| Some(&entry.site.host) != search.except.as_ref());
    let wanted = usize::try_from(search.count).unwrap_or(usize::MAX);
    let best = select(others, (wanted, search.per_domain), offer);
    best.into_iter().cloned().collect()
}

/// The entries of `first`, and where it has room left the best of those in `all` that it does not
/// name: where nothing is signed, and whoever answers may invent as many members as he likes.
pub fn filled(first: &[Entry], all: &[Entry], search: &Search) -> Vec<Entry> {
    let wanted = usize::try_from(search.count).unwrap_or(usize::MAX);
    let mut answer: Vec<Entry> = first.iter().take(wanted).cloned().collect();
    let is_new = |entry: &&Entry| !first.iter().any(|one| one.site.host == entry.site.host);
    let others: Vec<Entry> = all.iter().filter(is_new).cloned().collect();
    let room = u32::try_from(wanted - answer.len()).unwrap_or(u32::MAX);
    let search = Search {
        count: room,
        ..search.clone()
    };
    answer.extend(best(&others, &search));
    answer.sort_by_key(|entry| (Reverse(entry.free), entry.site.host.clone()));
    answer
}

/// Those of `all` that should be in `answer` and are not.
pub fn missing<'a>(answer: &[Entry], all: &'a [Entry], search: &Search) -> Vec<&'a HostName> {
    let is_in = |host: &HostName| answer.iter().any(|entry| entry.site.host == *host);
    let others = all.iter().filter(|entry| {
        Some(&entry.site.host) != search.except.as_ref() && !is_in(&entry.site.host)
    });
    let wanted = usize::try_from(search.count).unwrap_or(usize::MAX);
    let left_out = others.filter(|entry| {
        // One with room left has told all that it knows.
        answer.len() < wanted || is_better(entry, answer, search.per_domain)
    });
    left_out.map(|entry| &entry.site.host).collect()
}

/// Whether it belongs into a full answer in the place of the last one there.
fn is_better(entry: &Entry, answer: &[Entry], per_domain: Option<u32>) -> bool {
    let domain = entry.site.host.domain();
    let same = answer
        .iter()
        .filter(|one| one.site.host.domain() == domain)
        .count();
    let share = per_domain.map_or(usize::MAX, |share| share as usize);
    let least = answer.iter().map(|one| one.free).min();
    same < share && least.is_some_and(|least| entry.free > least)
}

fn offer(entry: &Entry) -> (&HostName, ByteRate) {
    (&entry.site.host, entry.free)
}

/// The first `wanted` of `sorted`, where no domain has more than `per_domain` while there are
/// others; the largest offers first.
pub(crate) fn select<'a, T>(
    sorted: impl Iterator<Item = &'a T>,
    (wanted, per_domain): (usize, Option<u32>),
    offer: impl Fn(&'a T) -> (&'a HostName, ByteRate),
) -> Vec<&'a T> {
    let per_domain = per_domain.unwrap_or(u32::MAX);
    let mut of_domain: BTreeMap<&str, u32> = BTreeMap::new();
    // Those beyond the share of their domain are taken where there are too few others.
    let (mut found, mut surplus) = (Vec::new(), Vec::new());
    for one in sorted {
        let of_one = of_domain.entry(offer(one).0.domain()).or_default();
        *of_one += 1;
        match *of_one <= per_domain {
            true => found.push(one),
            false => surplus.push(one),
        }
        if found.len() >= wanted {
            break;
        }
    }
    found.truncate(wanted);
    let room = wanted - found.len();
    found.extend(surplus.into_iter().take(room));
    found.sort_by_key(|one| {
        let (host, free) = offer(one);
        (Reverse(free), host)
    });
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use levee_vocab::WebAddress;

    use super::*;

    fn entry(host: &str, free: u64, stamp: u64) -> Entry {
        let host = host.parse().unwrap();
        let rescue = "192.0.2.1:7401".parse().unwrap();
        let (free, lifetime) = (ByteRate::from_kilobytes(free), Duration::from_secs(30));
        Entry {
            stamp,
            ..Entry::new(WebAddress { host, port: 80 }, rescue, free, lifetime)
        }
    }

    fn search(count: u32) -> Search {
        Search {
            count,
            except: Some("www.self.org".parse().unwrap()),
            per_domain: Some(1),
            ..Search::default()
        }
    }

    fn names(entries: &[Entry]) -> Vec<String> {
        let names = entries.iter().map(|entry| entry.site.host.to_string());
        names.collect()
    }

    fn missed(answer: &[Entry], all: &[Entry], count: u32) -> Vec<String> {
        let missed = missing(answer, all, &search(count));
        missed.into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn of_several_answers_the_newest_word_of_each_site_counts() {
        let first = [entry("www.a.org", 900, 1), entry("www.b.org", 500, 7)];
        let second = [entry("www.a.org", 100, 2), entry("www.c.org", 300, 1)];
        let all = newest(first.into_iter().chain(second));
        assert_eq!(names(&all), ["www.b.org", "www.c.org", "www.a.org"]);
        assert_eq!(all[2].free, ByteRate::from_kilobytes(100));
        assert_eq!(names(&best(&all, &search(2))), ["www.b.org", "www.c.org"]);
    }

    #[test]
    fn of_two_words_with_one_stamp_the_one_that_says_more_counts() {
        let (without, mut with) = (entry("www.a.org", 900, 1), entry("www.a.org", 900, 1));
        with.https = AliasHttps::Yes;
        for answers in [[with.clone(), without.clone()], [without, with.clone()]] {
            assert_eq!(newest(answers), [with.clone()]);
        }
    }

    /// A stamp from the end of time, and an address of its choice, is all that a liar would need.
    #[test]
    fn where_nothing_is_signed_others_only_add() {
        let first = [entry("www.a.org", 900, 1)];
        let others = [
            entry("www.a.org", 5000, u64::MAX),
            entry("www.b.org", 300, 7),
        ];
        let all = known_first(&first, others);
        assert_eq!(names(&all), ["www.a.org", "www.b.org"]);
        assert_eq!(all[0].free, ByteRate::from_kilobytes(900));
    }

    /// Sixteen invented members with endless room would else be all that is found.
    #[test]
    fn where_nothing_is_signed_nobody_is_displaced() {
        let first = [entry("www.a.org", 900, 1), entry("www.b.org", 10, 1)];
        let invented = (0..16).map(|one| entry(&format!("www.liar{one}.org"), 1_000_000, 9));
        let all = known_first(&first, invented);
        let answer = names(&filled(&first, &all, &search(3)));
        assert_eq!(answer, ["www.liar0.org", "www.a.org", "www.b.org"]);
        assert_eq!(
            names(&filled(&first, &all, &search(2))),
            ["www.a.org", "www.b.org"]
        );
        assert_eq!(filled(&[], &all, &search(9)).len(), 9);
    }

    #[test]
    fn nobody_finds_itself_and_no_domain_takes_all_the_places() {
        let all = newest([
            entry("www.self.org", 900, 1),
            entry("one.a.org", 800, 1),
            entry("two.a.org", 700, 1),
            entry("www.b.org", 100, 1),
        ]);
        assert_eq!(names(&best(&all, &search(2))), ["one.a.org", "www.b.org"]);
        let all_three = ["one.a.org", "two.a.org", "www.b.org"];
        assert_eq!(names(&best(&all, &search(9))), all_three);
    }

    #[test]
    fn an_answer_with_room_left_must_have_everybody() {
        let (a, b) = (entry("www.a.org", 900, 1), entry("www.b.org", 100, 1));
        let all = newest([a.clone(), b, entry("www.self.org", 500, 1)]);
        assert_eq!(missed(&[a], &all, 2), ["www.b.org"]);
        assert_eq!(missed(&[], &all, 2), ["www.a.org", "www.b.org"]);
        assert!(missed(&all, &all, 4).is_empty());
    }

    #[test]
    fn a_full_answer_may_leave_out_who_offers_less_or_is_of_a_domain_that_has_its_share() {
        let given = [entry("www.a.org", 900, 1), entry("www.b.org", 400, 1)];
        let others = [
            entry("www.less.org", 300, 1),
            entry("www.as-much.org", 400, 1),
            entry("two.a.org", 800, 1),
        ];
        let all = newest(given.iter().cloned().chain(others));
        assert!(missed(&given, &all, 2).is_empty());
        let all = newest(all.into_iter().chain([entry("www.more.org", 500, 1)]));
        assert_eq!(missed(&given, &all, 2), ["www.more.org"]);
    }
}
