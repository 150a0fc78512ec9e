//! Which bytes of an object a Range field asks for (RFC 9110 section 14).
//!
//! Many small or overlapping ranges of one object were once enough to bring a server down
//! (CVE-2011-3192). So overlapping and neighbouring ranges are joined, more than [`RANGES_MAX`] are
//! not looked at, and where the parts together are not smaller than the whole, the whole is sent.
//! RFC 9110 section 14.2 allows all of that.

use std::ops::Range;

/// Most ranges of one request. Readers of PDF files ask for a handful at a time.
const RANGES_MAX: usize = 16;
/// What the heading of one part weighs, about. Ranges that lie closer are joined.
const PART_BYTES: u64 = 80;

/// What to send of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The field says nothing that has to be obeyed.
    Whole,
    One(Range<u64>),
    /// In order, apart from each other, at least two.
    Many(Box<[Range<u64>]>),
    /// None of it lies in the object.
    Nothing,
}

/// What `field` asks for of an object of `size` bytes.
pub(super) fn cut(field: &[u8], size: u64) -> Cut {
    let Some(list) = specifiers(field) else {
        return Cut::Whole;
    };
    let mut ranges = [const { 0..0 }; RANGES_MAX];
    let (mut asked, mut found) = (0, 0);
    for specifier in list.split(',').map(|text| text.trim_matches([' ', '\t'])) {
        if specifier.is_empty() {
            // RFC 9110 section 5.6.1: empty elements of a list do not count.
            continue;
        }
        asked += 1;
        let Some(range) = read(specifier, size) else {
            return Cut::Whole;
        };
        if asked > RANGES_MAX {
            return Cut::Whole;
        }
        if !range.is_empty() {
            ranges[found] = range;
            found += 1;
        }
    }
    match (asked, found) {
        (0, _) => Cut::Whole,
        (_, 0) => Cut::Nothing,
        (_, 1) => Cut::One(ranges[0].clone()),
        (_, _) => join(&mut ranges[..found], size),
    }
}

/// The parts that are sent, for a fuzzer; all or nothing is none.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed_cut(field: &[u8], size: u64) -> Vec<Range<u64>> {
    match cut(field, size) {
        Cut::Whole | Cut::Nothing => Vec::new(),
        Cut::One(range) => vec![range],
        Cut::Many(parts) => parts.into_vec(),
    }
}

/// The list after `bytes=`.
fn specifiers(field: &[u8]) -> Option<&str> {
    let (unit, list) = std::str::from_utf8(field).ok()?.split_once('=')?;
    unit.eq_ignore_ascii_case("bytes").then_some(list)
}

/// One specifier: `first-last`, `first-` or `-length`. Empty where it lies outside; none where it
/// is no specifier.
fn read(specifier: &str, size: u64) -> Option<Range<u64>> {
    let (first, last) = specifier.split_once('-')?;
    match (number(first)?, number(last)?) {
        (Some(first), Some(last)) if last < first => None,
        (Some(first), Some(last)) => Some(first.min(size)..last.saturating_add(1).min(size)),
        (Some(first), None) => Some(first.min(size)..size),
        (None, Some(length)) => Some(size.saturating_sub(length)..size),
        (None, None) => None,
    }
}

/// Digits, or nothing.
fn number(text: &str) -> Option<Option<u64>> {
    match text {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // More than fits is more than any object has.
            Some(Some(digits.parse().unwrap_or(u64::MAX)))
        }
        _ => None,
    }
}

fn join(ranges: &mut [Range<u64>], size: u64) -> Cut {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(PART_BYTES) => {
                last.end = last.end.max(range.end);
            }
            Some(_) | None => joined.push(range.clone()),
        }
    }
    let bytes: u64 = joined
        .iter()
        .map(|range| range.end - range.start + PART_BYTES)
        .sum();
    match joined.as_slice() {
        [one] => Cut::One(one.clone()),
        _ if bytes >= size => Cut::Whole,
        _ => Cut::Many(joined.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(field: &str, expected: Cut) {
        assert_eq!(cut(field.as_bytes(), 10_000), expected, "{field}");
    }

    #[test]
    fn ranges_are_cut_joined_ignored_or_refused() {
        let many = |ranges: &[Range<u64>]| Cut::Many(ranges.into());
        check("bytes=0-9", Cut::One(0..10));
        check("Bytes=9990-20000", Cut::One(9990..10_000));
        check("bytes=5-", Cut::One(5..10_000));
        check("bytes=-5", Cut::One(9995..10_000));
        check("bytes=-50000", Cut::One(0..10_000));
        check("bytes=1-99999999999999999999999", Cut::One(1..10_000));
        check("bytes=10000-", Cut::Nothing);
        check("bytes=10000-, 99999999999999999999999-", Cut::Nothing);
        check("bytes=-0", Cut::Nothing);
        check("bytes=0-0, -1", many(&[0..1, 9999..10_000]));
        check("bytes=5000-5001,0-1 , ,", many(&[0..2, 5000..5002]));
        check("bytes=0-99, 20000-", Cut::One(0..100));
        // Overlapping, touching, and too close to be worth a heading.
        check("bytes=0-99, 50-200, 201-300, 350-400", Cut::One(0..401));
        check("bytes=0-, -1", Cut::One(0..10_000));
        check("bytes=0-4900, 5000-9999", Cut::Whole);
        for field in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=9-5",
            "bytes=0-1,x",
            "lines=1-2",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes = 1-2",
            "bytes=1 -2",
        ] {
            check(field, Cut::Whole);
        }
    }

    #[test]
    fn a_flood_of_ranges_is_answered_with_the_whole() {
        let flood: Vec<String> = (0..1300).map(|at| format!("5-{at}")).collect();
        check(&format!("bytes=0-,{}", flood.join(",")), Cut::Whole);
        let apart = |count: u64| -> Vec<String> {
            let at = (0..count).map(|at| at * 500);
            at.map(|at| format!("{at}-{at}")).collect()
        };
        check(&format!("bytes={}", apart(17).join(",")), Cut::Whole);
        let sixteen = cut(format!("bytes={}", apart(16).join(",")).as_bytes(), 10_000);
        assert!(matches!(sixteen, Cut::Many(parts) if parts.len() == 16));
    }

    proptest! {
        #[test]
        fn parts_lie_in_the_object_in_order_and_are_smaller_than_it(
            specifiers in prop::collection::vec("[0-9]{0,4}-[0-9]{0,4}", 0..20),
            size in 0_u64..10_000,
        ) {
            let field = format!("bytes={}", specifiers.join(","));
            match cut(field.as_bytes(), size) {
                Cut::Whole | Cut::Nothing => {}
                Cut::One(range) => prop_assert!(range.start < range.end && range.end <= size),
                Cut::Many(parts) => {
                    prop_assert!(parts.len() >= 2 && parts.len() <= RANGES_MAX);
                    prop_assert!(parts.iter().all(|part| part.start < part.end));
                    prop_assert!(parts.windows(2).all(|pair| pair[0].end < pair[1].start));
                    prop_assert!(parts[parts.len() - 1].end <= size);
                    let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
                    prop_assert!(bytes < size);
                }
            }
        }
    }
}
