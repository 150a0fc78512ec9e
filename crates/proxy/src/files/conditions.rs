//! Conditional and partial requests (RFC 9110 sections 13 and 14), for files and cached objects
//! alike.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::request::{Fields, Request};

/// The conditions of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions<'b> {
    pub if_none_match: Option<&'b [u8]>,
    pub if_modified_since: Option<&'b [u8]>,
    pub if_range: Option<&'b [u8]>,
    pub range: Option<&'b [u8]>,
}

/// What an object has to compare with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Validators<'a> {
    /// With its quotes, and `W/` where it is weak.
    pub etag: Option<&'a [u8]>,
    /// As it is written in Last-Modified.
    pub modified: Option<&'a [u8]>,
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Whole,
    /// 206 with the bytes from `start` to before `end`.
    Part {
        start: u64,
        end: u64,
    },
    /// 304.
    NotModified,
    /// 416.
    Unsatisfiable,
}

impl<'b> Conditions<'b> {
    /// The conditions of `request`. A range is for GET only.
    pub fn of(request: &Request<'_, 'b>) -> Self {
        let fields: &Fields<'b> = &request.fields;
        let range = fields.range.filter(|_| request.method == "GET");
        Self {
            if_none_match: fields.if_none_match,
            if_modified_since: fields.if_modified_since,
            if_range: fields.if_range,
            range,
        }
    }
}

/// What a request with these conditions gets of an object of `size` bytes.
pub(crate) fn judge(conditions: Conditions<'_>, has: Validators<'_>, size: u64) -> Judgement {
    if is_unchanged(conditions, has) {
        return Judgement::NotModified;
    }
    match conditions.range {
        Some(range) if range_still_fits(conditions.if_range, has) => cut(range, size),
        Some(_) | None => Judgement::Whole,
    }
}

fn is_unchanged(conditions: Conditions<'_>, has: Validators<'_>) -> bool {
    //= RFC 9110 section 13.1.3: "A recipient MUST ignore If-Modified-Since if the request contains
    // an If-None-Match header field"
    if let Some(tags) = conditions.if_none_match {
        let Some(etag) = has.etag else {
            return false;
        };
        let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_owned();
        return tags.trim_ascii() == b"*"
            || tags
                .split(|&byte| byte == b',')
                .any(|tag| opaque(tag.trim_ascii()) == opaque(etag));
    }
    match (conditions.if_modified_since, has.modified) {
        (Some(since), Some(modified)) => {
            since == modified
                || matches!((date(since), date(modified)), (Some(a), Some(b)) if b <= a)
        }
        (Some(_), None) | (None, _) => false,
    }
}

fn range_still_fits(if_range: Option<&[u8]>, has: Validators<'_>) -> bool {
    match if_range {
        None => true,
        // A weak tag does not say that the bytes are the same.
        Some(tag) if tag.starts_with(b"\"") => has.etag == Some(tag),
        Some(other) => has.modified == Some(other),
    }
}

/// One range of bytes. Several ranges, or something else than a range, are answered with the whole
/// object, as RFC 9110 section 14.2 allows.
fn cut(range: &[u8], size: u64) -> Judgement {
    let Some((first, last)) = parse_range(range) else {
        return Judgement::Whole;
    };
    let (start, end) = match (first, last) {
        (Some(first), Some(last)) if last < first => return Judgement::Whole,
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(size)),
        (Some(first), None) => (first, size),
        (None, Some(suffix)) => (size.saturating_sub(suffix), size),
        (None, None) => return Judgement::Whole,
    };
    if start >= end {
        return Judgement::Unsatisfiable;
    }
    Judgement::Part { start, end }
}

fn parse_range(range: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let range = std::str::from_utf8(range).ok()?;
    let (unit, spec) = range.split_once('=')?;
    let (first, last) = spec.trim().split_once('-')?;
    let number = |text: &str| match text {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    };
    let is_bytes = unit.eq_ignore_ascii_case("bytes");
    is_bytes.then_some((number(first)?, number(last)?))
}

fn date(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let time: SystemTime = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAS: Validators<'_> = Validators {
        etag: Some(b"\"x\""),
        modified: Some(b"Sat, 21 Nov 2026 00:00:00 GMT"),
    };

    fn check(conditions: Conditions<'_>, expected: Judgement) {
        assert_eq!(judge(conditions, HAS, 100), expected, "{conditions:?}");
    }

    #[test]
    fn unchanged_objects_are_not_sent_again() {
        let tagged = |tags| Conditions {
            if_none_match: Some(tags),
            ..Conditions::default()
        };
        for tags in [&b"\"x\""[..], b"*", b"W/\"x\"", b"\"a\", \"x\""] {
            check(tagged(tags), Judgement::NotModified);
        }
        check(tagged(b"\"y\""), Judgement::Whole);
        let dated = |date| Conditions {
            if_modified_since: Some(date),
            ..Conditions::default()
        };
        check(
            dated(b"Sat, 21 Nov 2026 00:00:00 GMT"),
            Judgement::NotModified,
        );
        check(
            dated(b"Sun, 22 Nov 2026 00:00:00 GMT"),
            Judgement::NotModified,
        );
        check(dated(b"Fri, 20 Nov 2026 00:00:00 GMT"), Judgement::Whole);
        check(dated(b"yesterday"), Judgement::Whole);
        let both = Conditions {
            if_none_match: Some(b"\"y\""),
            ..dated(b"Sun, 22 Nov 2026 00:00:00 GMT")
        };
        check(both, Judgement::Whole);
    }

    #[test]
    fn ranges_are_cut_or_ignored_or_refused() {
        let part = |start, end| Judgement::Part { start, end };
        let table = [
            ("bytes=0-9", part(0, 10)),
            ("bytes=90-200", part(90, 100)),
            ("bytes=5-", part(5, 100)),
            ("bytes=-5", part(95, 100)),
            ("bytes=-500", part(0, 100)),
            ("bytes=100-", Judgement::Unsatisfiable),
            ("bytes=-0", Judgement::Unsatisfiable),
            ("bytes=0-1,5-6", Judgement::Whole),
            ("bytes=9-5", Judgement::Whole),
            ("bytes=-", Judgement::Whole),
            ("lines=1-2", Judgement::Whole),
            ("bytes=+1-2", Judgement::Whole),
        ];
        for (range, expected) in table {
            let conditions = Conditions {
                range: Some(range.as_bytes()),
                ..Conditions::default()
            };
            check(conditions, expected);
            let other = Conditions {
                if_range: Some(b"\"y\""),
                ..conditions
            };
            check(other, Judgement::Whole);
            let same = Conditions {
                if_range: Some(b"\"x\""),
                ..conditions
            };
            check(same, expected);
        }
    }
}
