//! Conditional and partial requests (RFC 9110 sections 13 and 14), for files and cached objects
//! alike.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ranges::{self, Cut};
use crate::request::{Fields, Request};

/// The conditions of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions<'b> {
    pub if_match: Option<&'b [u8]>,
    pub if_unmodified_since: Option<&'b [u8]>,
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
    /// When the response was made, as its Date says; none where it is made now.
    pub date: Option<&'a [u8]>,
}

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// 412.
    Failed,
    /// 304.
    NotModified,
    Whole,
    /// 206 with the bytes from `start` to before `end`.
    Part {
        start: u64,
        end: u64,
    },
    /// 206 with several parts: in order, apart from each other, at least two.
    Parts(Box<[Range<u64>]>),
    /// 416.
    Unsatisfiable,
}

impl<'b> Conditions<'b> {
    /// The conditions of `request` for an object of our own. A range is for GET only.
    pub fn of(request: &Request<'_, 'b>) -> Self {
        let fields: &Fields<'b> = &request.fields;
        Self {
            if_match: fields.if_match,
            if_unmodified_since: fields.if_unmodified_since,
            ..Self::for_cache(request)
        }
    }

    /// Those that a cache may judge.
    pub fn for_cache(request: &Request<'_, 'b>) -> Self {
        //= RFC 9111 section 4.3.2: "the If-Match and If-Unmodified-Since conditional header fields
        // are not applicable to a cache"
        let fields: &Fields<'b> = &request.fields;
        Self {
            if_match: None,
            if_unmodified_since: None,
            if_none_match: fields.if_none_match,
            if_modified_since: fields.if_modified_since,
            if_range: fields.if_range,
            range: fields.range.filter(|_| request.method == "GET"),
        }
    }

    /// Whether there is nothing to judge.
    pub const fn is_empty(&self) -> bool {
        self.if_match.is_none()
            && self.if_unmodified_since.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.range.is_none()
    }
}

/// What a GET or HEAD with these conditions gets of an object of `size` bytes, in the order of RFC
/// 9110 section 13.2.2.
pub(crate) fn judge(conditions: Conditions<'_>, has: Validators<'_>, size: u64) -> Judgement {
    if !is_as_expected(conditions, has) {
        return Judgement::Failed;
    }
    if is_unchanged(conditions, has) {
        return Judgement::NotModified;
    }
    let range = conditions.range;
    let range = range.filter(|_| range_still_fits(conditions.if_range, has));
    match range.map_or(Cut::Whole, |range| ranges::cut(range, size)) {
        Cut::Whole => Judgement::Whole,
        Cut::One(Range { start, end }) => Judgement::Part { start, end },
        Cut::Many(parts) => Judgement::Parts(parts),
        Cut::Nothing => Judgement::Unsatisfiable,
    }
}

/// If-Match, or else If-Unmodified-Since.
fn is_as_expected(conditions: Conditions<'_>, has: Validators<'_>) -> bool {
    if let Some(tags) = conditions.if_match {
        //= RFC 9110 section 13.1.1: "An origin server MUST use the strong comparison function when
        // comparing entity tags for If-Match"
        let is_same = |tag: &[u8]| !tag.starts_with(b"W/") && Some(tag) == has.etag;
        return tags.trim_ascii() == b"*" || Tags(tags).any(is_same);
    }
    match (conditions.if_unmodified_since, has.modified) {
        (Some(since), Some(modified)) => match (date(since), date(modified)) {
            (Some(since), Some(modified)) => modified <= since,
            // RFC 9110 section 13.1.4: what is no date is ignored.
            (None, _) | (_, None) => true,
        },
        (Some(_), None) | (None, _) => true,
    }
}

/// If-None-Match, or else If-Modified-Since.
fn is_unchanged(conditions: Conditions<'_>, has: Validators<'_>) -> bool {
    //= RFC 9110 section 13.1.3: "A recipient MUST ignore If-Modified-Since if the request contains
    // an If-None-Match header field"
    if let Some(tags) = conditions.if_none_match {
        if tags.trim_ascii() == b"*" {
            return true;
        }
        let is_same = |etag| Tags(tags).any(|tag| opaque(tag) == opaque(etag));
        return has.etag.is_some_and(is_same);
    }
    match (conditions.if_modified_since, has.modified) {
        (Some(since), Some(modified)) => {
            since == modified
                || matches!((date(since), date(modified)), (Some(a), Some(b)) if b <= a)
        }
        (Some(_), None) | (None, _) => false,
    }
}

/// A tag without the sign that it is weak.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn range_still_fits(if_range: Option<&[u8]>, has: Validators<'_>) -> bool {
    match if_range {
        None => true,
        // A weak tag does not say that the bytes are the same.
        Some(tag) if tag.starts_with(b"\"") => has.etag == Some(tag),
        Some(other) => has.modified == Some(other) && is_strong(has),
    }
}

/// Whether Last-Modified tells that the bytes are the same.
fn is_strong(has: Validators<'_>) -> bool {
    //= RFC 9110 section 8.8.2.2: a date is strong where the response was made at least a second
    // later; what changed twice in one second has one date.
    let dates = has.modified.and_then(date).zip(has.date.and_then(date));
    dates.is_none_or(|(modified, made)| made >= modified + Duration::from_secs(1))
}

/// The entity tags of a list: a comma between quotes ends none.
struct Tags<'b>(&'b [u8]);

impl<'b> Iterator for Tags<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let skipped = self
            .0
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        let list = &self.0[skipped..];
        let mut is_quoted = false;
        let end = list.iter().position(|&byte| {
            is_quoted ^= byte == b'"';
            byte == b',' && !is_quoted
        });
        let (tag, rest) = list.split_at(end.unwrap_or(list.len()));
        self.0 = rest;
        Some(tag.trim_ascii())
    }
}

fn date(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let time: SystemTime = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests;
