//! The field Cache-Status: what our cache did with a request (RFC 9211).
//!
//! It is written in one go beside Age. What a hit says is a fixed text and a number; what a
//! forwarded request says was found out by the fetch and stands in the head that it published.
//! Members of caches behind us stay in the lines of the head, and ours comes after them.

use std::time::Duration;

use http::StatusCode;
use levee_vocab::Timestamp;

use super::{CacheResult, ResponseHead};
use crate::response::push_number;

/// How a response came into our hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Why the request was sent on.
    pub why: Why,
    /// What the source answered, where that is not the status of the response.
    pub answered: Option<StatusCode>,
    /// Lifetime of the response, where it is kept.
    pub lifetime: Option<Duration>,
}

/// Why a request was sent on (RFC 9211 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was not: the answer was made here, and there is nothing to say.
    Here,
    /// It is not for the cache: its responses are for one visitor each.
    Bypass,
    /// Its method is not for caches.
    Method,
    /// Nothing is kept of the object.
    UriMiss,
    /// Nothing is kept for a request with such headers.
    VaryMiss,
    /// What is kept is fresh, but the visitor wants something newer.
    Request,
    /// What is kept is too old.
    Stale,
    /// What is kept is too old, and stands in for a source that gives nothing better.
    Spared,
}

impl Forwarding {
    /// Of a response that is not kept.
    pub const fn unkept(why: Why) -> Self {
        Self {
            why,
            answered: None,
            lifetime: None,
        }
    }
}

impl Why {
    /// The parameters that say so.
    const fn parameters(self) -> &'static [u8] {
        match self {
            Self::Here => b"",
            Self::Bypass => b"; fwd=bypass",
            Self::Method => b"; fwd=method",
            Self::UriMiss => b"; fwd=uri-miss",
            Self::VaryMiss => b"; fwd=vary-miss",
            Self::Request => b"; fwd=request",
            Self::Stale => b"; fwd=stale",
            Self::Spared => b"; fwd=stale; detail=stale-if-error",
        }
    }
}

/// Appends the line of a response from the cache.
pub(crate) fn push_hit(head: &ResponseHead, now: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(b"cache-status: levee; hit");
    push_ttl(head, now, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line of a response for which the source was asked.
pub(crate) fn push_forwarded(
    head: &ResponseHead,
    result: CacheResult,
    now: Timestamp,
    out: &mut Vec<u8>,
) {
    let forwarding = &head.forwarding;
    if forwarding.why == Why::Here {
        return;
    }
    out.extend_from_slice(b"cache-status: levee");
    out.extend_from_slice(forwarding.why.parameters());
    if let Some(status) = forwarding.answered {
        out.extend_from_slice(b"; fwd-status=");
        push_number(status.as_u16().into(), out);
    }
    if forwarding.lifetime.is_some() && forwarding.why != Why::Spared {
        out.extend_from_slice(b"; stored");
    }
    if result == CacheResult::Collapsed {
        out.extend_from_slice(b"; collapsed");
    }
    push_ttl(head, now, out);
    out.extend_from_slice(b"\r\n");
}

/// How long the response is fresh yet, below zero where it no longer is: its lifetime less the Age
/// that is sent beside it.
fn push_ttl(head: &ResponseHead, now: Timestamp, out: &mut Vec<u8>) {
    let Some(lifetime) = head.forwarding.lifetime else {
        return;
    };
    let (lifetime, age) = (lifetime.as_secs(), head.age(now).as_secs());
    out.extend_from_slice(b"; ttl=");
    if lifetime < age {
        out.push(b'-');
    }
    push_number(lifetime.abs_diff(age), out);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::tags::Tags;

    fn line(
        forwarding: Forwarding,
        age: u64,
        write: impl Fn(&ResponseHead, Timestamp, &mut Vec<u8>),
    ) -> String {
        let head = ResponseHead {
            reading: crate::flight::Reading::Unsaid,
            status: StatusCode::OK,
            lines: Bytes::new(),
            length: None,
            age_initial: Duration::from_secs(age),
            received: Timestamp::from_seconds(10),
            forwarding,
            tags: Tags::default(),
        };
        let mut out = Vec::new();
        write(&head, Timestamp::from_seconds(12), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_way_of_a_response_has_its_words() {
        let kept = |why, answered| Forwarding {
            why,
            answered,
            lifetime: Some(Duration::from_secs(60)),
        };
        let own = |head: &ResponseHead, now, out: &mut Vec<u8>| {
            push_forwarded(head, CacheResult::Miss, now, out);
        };
        let collapsed = |head: &ResponseHead, now, out: &mut Vec<u8>| {
            push_forwarded(head, CacheResult::Collapsed, now, out);
        };
        let miss = kept(Why::UriMiss, None);
        let not_modified = Some(StatusCode::NOT_MODIFIED);
        let table = [
            (line(miss, 0, push_hit), "hit; ttl=58"),
            (line(miss, 100, push_hit), "hit; ttl=-42"),
            (line(miss, 1, own), "fwd=uri-miss; stored; ttl=57"),
            (
                line(miss, 1, collapsed),
                "fwd=uri-miss; stored; collapsed; ttl=57",
            ),
            (line(Forwarding::unkept(Why::Bypass), 1, own), "fwd=bypass"),
            (line(Forwarding::unkept(Why::Method), 1, own), "fwd=method"),
            (
                line(kept(Why::Stale, not_modified), 0, own),
                "fwd=stale; fwd-status=304; stored; ttl=58",
            ),
            (
                line(kept(Why::Spared, Some(StatusCode::BAD_GATEWAY)), 60, own),
                "fwd=stale; detail=stale-if-error; fwd-status=502; ttl=-2",
            ),
        ];
        for (line, expected) in table {
            assert_eq!(line, format!("cache-status: levee; {expected}\r\n"));
        }
    }
}
