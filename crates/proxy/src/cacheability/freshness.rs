//! How long a response is fresh, and how old it is when it comes (RFC 9111 section 4.2).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, StatusCode, Version, header};

use super::control::{Extent, Place, ResponseControl};
use super::syntax::{FOREVER, date, seconds, split_outside_quotes};
use super::{Answer, Policy};
use crate::flight::Purpose;

/// Share of its age at which a response that states nothing is taken to be still the same: the
/// "typical setting" of RFC 9111 section 4.2.2.
const HEURISTIC_SHARE: f64 = 0.1;

/// A freshness lifetime and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// The response states it.
    Explicit(Duration),
    /// It states none, and the origin that we rescue named this one for all such responses.
    Agreed(Duration),
    /// We chose it, as the RFC lets us.
    Chosen(Duration),
    /// It states none and we may not choose.
    None,
}

impl Lifetime {
    pub fn is_explicit(self) -> bool {
        match self {
            Self::Explicit(_) => true,
            Self::Agreed(_) | Self::Chosen(_) | Self::None => false,
        }
    }

    /// Whether there is one that the response itself gives reason for: stated, or guessed from what
    /// it says of its last change.
    pub fn is_stated(self) -> bool {
        match self {
            Self::Explicit(_) => true,
            Self::Chosen(time) => !time.is_zero(),
            Self::Agreed(_) | Self::None => false,
        }
    }

    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Explicit(time) | Self::Agreed(time) | Self::Chosen(time) => Some(time),
            Self::None => None,
        }
    }
}

/// The lifetime of a response that nothing forbids to store.
pub(super) fn lifetime(
    answer: &Answer<'_>,
    control: &ResponseControl,
    policy: &Policy,
) -> Lifetime {
    // Parts and answers to conditions are made for one request; only whole answers are stored.
    let whole = answer.status != StatusCode::PARTIAL_CONTENT
        && answer.status != StatusCode::NOT_MODIFIED
        && !answer.status.is_informational();
    if !whole {
        return Lifetime::None;
    }
    if control.no_cache == Extent::Everything {
        return Lifetime::Explicit(Duration::ZERO);
    }
    //= RFC 9111 section 4.2.1: s-maxage, then max-age, then Expires less Date.
    if let Some(stated) = control.s_maxage.or(control.max_age) {
        return Lifetime::Explicit(stated);
    }
    let expires = answer.headers.get(header::EXPIRES);
    if let (Some(expires), Place::General) = (expires, control.place) {
        return Lifetime::Explicit(until(expires.as_bytes(), answer));
    }
    chosen(answer, control, policy)
}

/// Time from the response's Date to `expires`; zero where that is no date.
fn until(expires: &[u8], answer: &Answer<'_>) -> Duration {
    date(expires)
        .and_then(|expires| expires.duration_since(sent(answer)).ok())
        .unwrap_or_default()
}

/// When the response was made, by its own account or else by its arrival.
fn sent(answer: &Answer<'_>) -> SystemTime {
    date_of(answer.headers, &header::DATE).unwrap_or(answer.arrived)
}

fn chosen(answer: &Answer<'_>, control: &ResponseControl, policy: &Policy) -> Lifetime {
    //= RFC 9110 section 15.1: status codes that are cacheable by default.
    match answer.status.as_u16() {
        200 | 203 | 204 | 300 | 301 | 308 => {}
        404 | 405 | 410 | 414 | 501 => return Lifetime::Chosen(policy.negative),
        //= RFC 9111 section 4.2.2: others only where they are "explicitly marked as cacheable
        //= (e.g., with a public response directive)".
        _ if control.public => return guessed(answer, policy),
        _ => return Lifetime::None,
    }
    match policy.purpose {
        Purpose::Rescue => Lifetime::Agreed(policy.ttl),
        Purpose::Upstream => guessed(answer, policy),
    }
}

/// A share of the time for which the response has not changed.
fn guessed(answer: &Answer<'_>, policy: &Policy) -> Lifetime {
    match date_of(answer.headers, &header::LAST_MODIFIED) {
        Some(changed) => {
            let unchanged = sent(answer).duration_since(changed).unwrap_or_default();
            let guess = unchanged.mul_f64(HEURISTIC_SHARE);
            Lifetime::Chosen(guess.min(policy.heuristic_max))
        }
        None if answer.headers.contains_key(header::ETAG) => Lifetime::Chosen(Duration::ZERO),
        None => Lifetime::None,
    }
}

/// How old a response is when it comes, `delay` after it was asked for.
///
/// The Date of a response straight from an HTTP/1.1 server is not compared with our clock: two
/// clocks that differ by an hour would make everything an hour old, and each request a fetch.
pub fn age_on_arrival(
    headers: &HeaderMap,
    version: Version,
    arrived: SystemTime,
    delay: Duration,
) -> Duration {
    let corrected = stated_age(headers).saturating_add(delay);
    if version >= Version::HTTP_11 && !through_http_10(headers) {
        //= RFC 9111 section 4.2.3: "unless the cache is confident in the value of the Age header
        //= field (for example, because there are no HTTP/1.0 hops in the Via header field)".
        return corrected;
    }
    let apparent = date_of(headers, &header::DATE)
        .and_then(|sent| arrived.duration_since(sent).ok())
        .unwrap_or_default();
    corrected.max(apparent)
}

/// The Age that a response comes with.
///
/// One that is not a single number says that a cache on the way has lost count. RFC 9111 section
/// 5.1 would have it ignored, which makes an old response a new one; we take such a response for
/// too old to be used before its source was asked.
fn stated_age(headers: &HeaderMap) -> Duration {
    let mut lines = headers.get_all(header::AGE).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Duration::ZERO,
        (Some(age), None) => seconds(age.as_bytes()).unwrap_or(FOREVER),
        (Some(_), Some(_)) => FOREVER,
    }
}

fn through_http_10(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::VIA)
        .iter()
        .flat_map(|value| split_outside_quotes(value.as_bytes()))
        .any(|hop| hop.starts_with(b"1.0 ") || hop.starts_with(b"HTTP/1.0 "))
}

fn date_of(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    headers.get(name).and_then(|value| date(value.as_bytes()))
}
