//! The head of a source's response, cleaned for our visitors.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use http::response::Parts;
use levee_vocab::Timestamp;

use super::HOME_FIELD;
use crate::cacheability::{BodyEnd, age_on_arrival};
use crate::connection_fields::ConnectionFields;
use crate::flight::{Forwarding, Purpose, Reading, ResponseHead, Why};
use crate::tags::{TAG_FIELDS, Tags};

/// Fields that end here beside those of the connection: they are for us alone, whoever sends the
/// response writes them anew, or they would lead visitors past us (Alt-Svc).
const OURS: [&str; 6] = [
    "age",
    "alt-svc",
    "content-length",
    HOME_FIELD,
    "proxy-authenticate",
    "via",
];

/// The fields of one response that end here.
pub(super) struct Ending<'a>(ConnectionFields<'a>);

impl<'a> Ending<'a> {
    /// Those of a response, final or interim, with these fields.
    pub fn of(headers: &'a HeaderMap) -> Self {
        let connection = headers.get_all(header::CONNECTION);
        let connection = connection.iter().map(HeaderValue::as_bytes);
        Self(ConnectionFields::of(connection))
    }

    /// Whether the field `name` is one of them.
    pub fn contains(&self, name: &str) -> bool {
        OURS.contains(&name) || self.0.contains(name)
    }
}

/// Whether a response is for one visitor or for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipients<'a> {
    /// One: cookies go along. What an origin that we rescue sets loses its Domain; an application
    /// of our own may set them for all of its site.
    One(Purpose),
    /// Many: neither cookies nor the fields with these names go along.
    Many(Purpose, &'a [Box<str>]),
}

/// What an origin that we rescue may not say under our name. It would speak for more than its
/// alias, or for longer than the rescue: Clear-Site-Data takes cookies from all hosts of a domain.
const NOT_UNDER_ALIASES: [&str; 7] = [
    "clear-site-data",
    "origin-agent-cluster",
    "public-key-pins",
    "service-worker-allowed",
    "set-cookie2",
    "strict-transport-security",
    // A visitor must not be asked here for a password that is for the origin.
    "www-authenticate",
];

impl Recipients<'_> {
    /// Whether the field `name` is kept from them.
    fn lack(self, name: &str) -> bool {
        let (Self::One(purpose) | Self::Many(purpose, _)) = self;
        match purpose {
            Purpose::Rescue => NOT_UNDER_ALIASES.contains(&name),
            Purpose::Upstream => false,
        }
    }
}

/// When a response came, by both clocks, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub at: Timestamp,
    pub date: SystemTime,
    pub delay: Duration,
}

/// The head as visitors get it.
pub(super) fn clean(
    parts: &Parts,
    arrival: &Arrival,
    recipients: Recipients<'_>,
    why: Why,
) -> ResponseHead {
    let mut lines = Vec::with_capacity(512);
    let ending = Ending::of(&parts.headers);
    for (name, value) in &parts.headers {
        let name = name.as_str();
        if ending.contains(name) || TAG_FIELDS.contains(&name) || recipients.lack(name) {
            continue;
        }
        let is_cookie = name == header::SET_COOKIE.as_str();
        match recipients {
            Recipients::One(Purpose::Rescue) if is_cookie => {
                add_line(
                    &mut lines,
                    name.as_bytes(),
                    &without_domain(value.as_bytes()),
                );
            }
            // What is for many may be kept, and what is kept has no trailers.
            Recipients::Many(..) if is_cookie || name == header::TRAILER.as_str() => {}
            Recipients::Many(_, unshared) if unshared.iter().any(|other| **other == *name) => {}
            Recipients::One(_) | Recipients::Many(..) => {
                add_line(&mut lines, name.as_bytes(), value.as_bytes());
            }
        }
    }
    //= RFC 9110 section 6.6.1: a recipient that caches or forwards adds the Date that is missing.
    if !parts.headers.contains_key(header::DATE) {
        let date = httpdate::fmt_http_date(arrival.date);
        add_line(&mut lines, b"date", date.as_bytes());
    }
    for via in parts.headers.get_all(header::VIA) {
        add_line(&mut lines, b"via", via.as_bytes());
    }
    add_line(&mut lines, b"via", b"1.1 levee");
    ResponseHead {
        status: parts.status,
        // An exact copy: this is what the cache pays for.
        lines: Bytes::copy_from_slice(&lines),
        tags: Tags::of(&parts.headers),
        length: content_length(&parts.headers),
        age_initial: age_on_arrival(&parts.headers, parts.version, arrival.date, arrival.delay),
        received: arrival.at,
        forwarding: Forwarding::unkept(why),
        reading: Reading::of(&parts.headers),
    }
}

/// Fields that are about the stored body or its name: a 304 does not change them.
//= RFC 9111 section 3.2: all fields of the new response replace stored ones, but for those "that
//= the cache's stored response depends upon".
const ABOUT_BODY: [&str; 7] = [
    "content-digest",
    "content-encoding",
    "content-md5",
    "content-range",
    "digest",
    "repr-digest",
    "vary",
];

/// The head of a stored response that `parts`, a 304, says to be unchanged: its fields replace
/// those of the same name.
pub(super) fn refreshed(
    old: &ResponseHead,
    (parts, arrival): (&Parts, &Arrival),
    recipients: Recipients<'_>,
    why: Why,
) -> ResponseHead {
    let new = clean(parts, arrival, recipients, why);
    let stays = |name: &[u8]| {
        let is_etag = name == header::ETAG.as_str().as_bytes();
        // By its ETag we asked; a first one may come with the 304.
        (is_etag && old.header("etag").is_some())
            || ABOUT_BODY.iter().any(|other| other.as_bytes() == name)
    };
    let mut lines = Vec::with_capacity(old.lines.len());
    for (name, value) in old.headers() {
        if stays(name) || !new.headers().any(|(other, _)| other == name) {
            add_line(&mut lines, name, value);
        }
    }
    for (name, value) in new.headers() {
        if !stays(name) {
            add_line(&mut lines, name, value);
        }
    }
    ResponseHead {
        status: old.status,
        lines: Bytes::copy_from_slice(&lines),
        length: old.length,
        tags: match new.tags.is_empty() {
            true => old.tags.clone(),
            false => new.tags.clone(),
        },
        forwarding: Forwarding {
            answered: Some(parts.status),
            ..new.forwarding
        },
        // What the old one said stands, where the new one says nothing.
        reading: match new.reading {
            Reading::Said => Reading::Said,
            Reading::Unsaid => old.reading,
        },
        ..new
    }
}

/// The stored fields as a map, for a new decision after a 304.
pub(super) fn header_map(head: &ResponseHead) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in head.headers() {
        let name = header::HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            map.append(name, value);
        }
    }
    map
}

/// Whether a broken-off body will be noticed.
pub(super) fn body_end(status: StatusCode, headers: &HeaderMap) -> BodyEnd {
    //= RFC 9112 section 6.3: with a Transfer-Encoding whose last word is not chunked, a response
    //= goes on to the end of the connection, whatever length stands beside it.
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let last = codings.next_back().map(|value| {
        let mut words = value.as_bytes().rsplit(|&byte| byte == b',');
        words.next().unwrap_or_default().trim_ascii()
    });
    let announced = match last {
        Some(last) => last.eq_ignore_ascii_case(b"chunked"),
        None => headers.contains_key(header::CONTENT_LENGTH),
    };
    if announced || matches!(status.as_u16(), 204 | 304) {
        BodyEnd::Announced
    } else {
        BodyEnd::Unannounced
    }
}

/// The length that a body announces; none where it comes in chunks.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// A cookie for one host only: what a site sets under an alias must not reach its neighbours.
fn without_domain(cookie: &[u8]) -> Vec<u8> {
    let mut parts = cookie.split(|&byte| byte == b';');
    // The first part is the cookie itself, whatever it is called.
    let mut kept = vec![parts.next().unwrap_or_default()];
    kept.extend(parts.filter(|attribute| {
        let name = attribute.split(|&byte| byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii();
        !name.eq_ignore_ascii_case(b"domain")
    }));
    kept.join(&b';')
}

fn add_line(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    lines.extend_from_slice(name);
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_loses_its_domain_and_nothing_else() {
        let cases = [
            ("a=b; Domain=example.org; Path=/", "a=b; Path=/"),
            ("domain=x; secure", "domain=x; secure"),
            ("a=b;domain = .example.org", "a=b"),
            ("a=domain", "a=domain"),
        ];
        for (cookie, expected) in cases {
            assert_eq!(without_domain(cookie.as_bytes()), expected.as_bytes());
        }
    }
}
