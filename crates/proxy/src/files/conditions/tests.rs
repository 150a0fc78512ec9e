//! What each condition does, alone and together.

use super::*;

const HAS: Validators<'_> = Validators {
    etag: Some(b"\"x\""),
    modified: Some(SAME),
    date: None,
};
const BEFORE: &[u8] = b"Fri, 20 Nov 2026 00:00:00 GMT";
const SAME: &[u8] = b"Sat, 21 Nov 2026 00:00:00 GMT";
const AFTER: &[u8] = b"Sun, 22 Nov 2026 00:00:00 GMT";
const NONE: Conditions<'_> = Conditions {
    if_match: None,
    if_unmodified_since: None,
    if_none_match: None,
    if_modified_since: None,
    if_range: None,
    range: None,
};

fn check(conditions: Conditions<'_>, expected: Judgement) {
    assert_eq!(judge(conditions, HAS, 100), expected, "{conditions:?}");
}

fn if_none_match(tags: &[u8]) -> Conditions<'_> {
    Conditions {
        if_none_match: Some(tags),
        ..NONE
    }
}

fn if_match(tags: &[u8]) -> Conditions<'_> {
    Conditions {
        if_match: Some(tags),
        ..NONE
    }
}

#[test]
fn unchanged_objects_are_not_sent_again() {
    for tags in [
        &b"\"x\""[..],
        b"*",
        b" * ",
        b"W/\"x\"",
        b"\"a\", \"x\"",
        b",\t\"a,b\" ,W/\"x\"",
    ] {
        check(if_none_match(tags), Judgement::NotModified);
    }
    for tags in [&b"\"y\""[..], b"x", b"\"a,\"x\",b\"", b"", b","] {
        check(if_none_match(tags), Judgement::Whole);
    }
    let dated = |date| Conditions {
        if_modified_since: Some(date),
        ..NONE
    };
    check(dated(SAME), Judgement::NotModified);
    check(dated(AFTER), Judgement::NotModified);
    check(dated(BEFORE), Judgement::Whole);
    check(dated(b"yesterday"), Judgement::Whole);
    let both = Conditions {
        if_none_match: Some(b"\"y\""),
        ..dated(AFTER)
    };
    check(both, Judgement::Whole);
}

#[test]
fn what_changed_under_the_visitor_is_not_sent() {
    check(if_match(b"\"x\""), Judgement::Whole);
    check(if_match(b"\"a\" , \"x\""), Judgement::Whole);
    check(if_match(b"*"), Judgement::Whole);
    check(if_match(b"\"y\""), Judgement::Failed);
    check(if_match(b"W/\"x\""), Judgement::Failed);
    let dated = |date| Conditions {
        if_unmodified_since: Some(date),
        ..NONE
    };
    check(dated(SAME), Judgement::Whole);
    check(dated(AFTER), Judgement::Whole);
    check(dated(BEFORE), Judgement::Failed);
    check(dated(b"yesterday"), Judgement::Whole);
    // Section 13.2.2: If-Match goes before If-Unmodified-Since, and both before If-None-Match.
    let both = Conditions {
        if_match: Some(b"\"x\""),
        ..dated(BEFORE)
    };
    check(both, Judgement::Whole);
    let all = Conditions {
        if_none_match: Some(b"\"x\""),
        ..if_match(b"\"y\"")
    };
    check(all, Judgement::Failed);
}

#[test]
fn a_range_is_obeyed_while_the_object_is_the_same() {
    let part = Judgement::Part { start: 0, end: 10 };
    let ranged = |if_range| Conditions {
        if_range,
        range: Some(b"bytes=0-9"),
        ..NONE
    };
    check(ranged(None), part.clone());
    check(ranged(Some(b"\"x\"")), part.clone());
    check(ranged(Some(SAME)), part.clone());
    for other in [&b"\"y\""[..], b"W/\"x\"", b"x", BEFORE, AFTER] {
        check(ranged(Some(other)), Judgement::Whole);
    }
    let made = |date| Validators {
        date: Some(date),
        ..HAS
    };
    assert_eq!(judge(ranged(Some(SAME)), made(AFTER), 100), part);
    assert_eq!(judge(ranged(Some(SAME)), made(SAME), 100), Judgement::Whole);
    let weak = Validators {
        etag: Some(b"W/\"x\""),
        ..HAS
    };
    let by_weak = ranged(Some(b"W/\"x\""));
    assert_eq!(judge(by_weak, weak, 100), Judgement::Whole);
}

#[test]
fn an_unchanged_object_is_not_sent_again_in_parts() {
    let both = Conditions {
        range: Some(b"bytes=200-"),
        ..if_none_match(b"\"x\"")
    };
    check(both, Judgement::NotModified);
    let changed = Conditions {
        range: Some(b"bytes=200-"),
        ..if_none_match(b"\"y\"")
    };
    check(changed, Judgement::Unsatisfiable);
}
