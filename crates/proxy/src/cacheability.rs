//! May this response be given to others, and for how long? (RFC 9111, as a shared cache.)
//!
//! A pure decision: status, headers and a few figures in, [`Decision`] out. It does not look at
//! what is stored already and knows no clock but the time that it is given.
//!
//! Beyond the RFC, on the side of care:
//! - a response to a visitor with credentials is for that visitor alone, unless it says otherwise;
//!   so is the use of a stored response that does not say that it is for everybody;
//! - a response that sets a cookie is for one visitor, unless it says that only the cookie is
//!   (`private="set-cookie"`);
//! - a body whose end only the end of the connection tells is not kept, because a killed server
//!   looks the same.
//!
//! Request directives (`no-cache`, `max-age=0`) are not obeyed unless the settings say so
//! (`cacheability/wish.rs`): they would let any visitor make a small site answer everything itself
//! in its worst minute.

mod control;
mod freshness;
mod invalidation;
mod syntax;
mod targeted;
mod vary;
mod wish;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

pub use control::{Extent, ResponseControl};
pub use freshness::age_on_arrival;
use freshness::{Lifetime, lifetime};
pub use invalidation::named_targets;
pub use targeted::DEVICE;
pub use vary::{VaryNames, normal_encodings};
pub use wish::Wishes;
pub(crate) use wish::{Had, Wish};

use crate::flight::{Asker, FIRST, Purpose};

/// What a request carries that could make its response personal. In order of how much it takes for
/// the response to be shared all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Credentials {
    /// Nothing.
    None,
    /// A cookie; many mean nothing.
    Cookie,
    /// An Authorization field.
    Authorization,
}

/// Who may be given a response. A request may have it whose credentials are not above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sharing(pub Credentials);

/// A response as it came.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, uncleaned.
    pub headers: &'a HeaderMap,
    /// Whether a broken-off body would be noticed.
    pub body_end: BodyEnd,
    /// Date and time of its arrival.
    pub arrived: SystemTime,
    /// What the request carried.
    pub credentials: Credentials,
}

/// How one knows where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// By its length or its chunks.
    Announced,
    /// By the end of the connection, which a killed server causes as well.
    Unannounced,
}

/// The settings that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// For whom we cache.
    pub purpose: Purpose,
    /// Lifetime where a rescued origin's response states none.
    pub ttl: Duration,
    /// The most that a lifetime guessed from Last-Modified may be.
    pub heuristic_max: Duration,
    /// Lifetime of errors that may be cached but state no lifetime.
    pub negative: Duration,
    /// How long after its lifetime a response may be shown while its source cannot be reached.
    pub stale_if_error: Duration,
}

/// What to do with a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Keep it and give it to others.
    Store(Keeping),
    /// Give it to those who wait now; keep nothing.
    ShareOnce {
        /// Who may have it.
        sharing: Sharing,
        /// By which request headers it varies.
        vary: Option<VaryNames>,
    },
    /// It is for the one request that it answers, because that carried credentials. The response to
    /// another may well be for all.
    PassWithCredentials,
    /// It is for the one request that it answers. Remember that, so that nobody waits for such a
    /// response again.
    Pass,
}

/// How a stored response may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Keeping {
    /// Fresh until it is this old; zero: ask each time whether it has changed.
    pub lifetime: Duration,
    /// How long after that it may be shown while its source is asked whether it has changed.
    pub stale_while_revalidate: Duration,
    /// How long after its lifetime it may stand in for a source that cannot be reached.
    pub stale_if_error: Duration,
    /// Who may have it.
    pub sharing: Sharing,
    /// By which request headers it varies.
    pub vary: Option<VaryNames>,
    /// Names of fields that are for the visitor who asked and are not kept.
    pub unshared: Vec<Box<str>>,
}

/// Who may read a flight.
#[derive(Clone, Debug)]
pub(crate) enum Audience {
    /// Only the request by which it was fetched: the first reader.
    FirstOnly,
    /// Every request that fits.
    Fitting {
        sharing: Sharing,
        /// By which headers it varies, and the values of the request by which it was fetched.
        variant: Option<(Arc<VaryNames>, Bytes)>,
        late: Late,
    },
}

/// Whether a request that comes after the head may share the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// The response is fresh.
    Welcome,
    /// It was generated before the request came, and is not fresh.
    TooLate,
}

impl Audience {
    /// Whether the reader with this number, who waited for the head, may read on.
    pub fn includes(&self, reader: u64, asker: &Asker) -> bool {
        match self {
            Self::FirstOnly => reader == FIRST,
            Self::Fitting {
                sharing, variant, ..
            } => reader == FIRST || fits(*sharing, variant.as_ref(), asker),
        }
    }

    /// Whether a request that comes now may read it.
    pub fn welcomes_late(&self, asker: &Asker) -> bool {
        match self {
            Self::FirstOnly
            | Self::Fitting {
                late: Late::TooLate,
                ..
            } => false,
            Self::Fitting {
                sharing,
                variant,
                late: Late::Welcome,
            } => fits(*sharing, variant.as_ref(), asker),
        }
    }
}

fn fits(sharing: Sharing, variant: Option<&(Arc<VaryNames>, Bytes)>, asker: &Asker) -> bool {
    sharing.allows(asker.credentials)
        && variant.is_none_or(|(names, values)| names.variant(&asker.headers) == *values)
}

impl Sharing {
    /// Whether a request with `credentials` may be given the response.
    pub fn allows(self, credentials: Credentials) -> bool {
        credentials <= self.0
    }
}

/// Decides what to do with the response to a GET.
pub fn decide(answer: &Answer<'_>, policy: &Policy) -> Decision {
    let control = ResponseControl::of(answer.headers);
    if !may_store(answer.status, &control) {
        return Decision::Pass;
    }
    let Ok(vary) = VaryNames::of(answer.headers, policy.purpose) else {
        return Decision::Pass;
    };
    let unshared = unshared_fields(answer.headers, &control);
    let lifetime = lifetime(answer, &control, policy);
    if sets_cookie_for_one(answer, &control, policy) {
        return Decision::Pass;
    }
    if tells_of_the_server(answer.status) && !lifetime.is_stated() {
        // It tells of the server's state and not of a visitor. Not asking again for each of a
        // thousand waiters is what lets a failing server recover.
        return Decision::ShareOnce {
            sharing: Sharing(Credentials::Authorization),
            vary: None,
        };
    }
    let sharing = sharing(&control, lifetime, policy.purpose);
    let Some(fresh) = lifetime.duration() else {
        return Decision::Pass;
    };
    let stale_while_revalidate = stale_while_revalidate(&control, lifetime);
    let is_useful = !fresh.is_zero() || !stale_while_revalidate.is_zero();
    if !is_useful && !has_validator(answer.headers) {
        return Decision::Pass;
    }
    if !sharing.allows(answer.credentials) {
        return Decision::PassWithCredentials;
    }
    match answer.body_end {
        BodyEnd::Unannounced if unshared.is_empty() => Decision::ShareOnce { sharing, vary },
        BodyEnd::Unannounced => Decision::Pass,
        BodyEnd::Announced => Decision::Store(Keeping {
            lifetime: fresh,
            stale_while_revalidate,
            stale_if_error: stale_if_error(&control, policy),
            sharing,
            vary,
            unshared,
        }),
    }
}

/// Whether nothing forbids to keep a response (RFC 9111 section 3).
fn may_store(status: StatusCode, control: &ResponseControl) -> bool {
    //= RFC 9111 section 5.2.2.3: must-understand forbids to store a status that the cache does not
    //= know, and overrules no-store where it does.
    let forbidden = match control.must_understand {
        true => !is_understood(status),
        false => control.no_store,
    };
    !forbidden && control.private != Extent::Everything
}

/// The statuses whose meaning for a cache we know: those of RFC 9110 that can be stored.
fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=204 | 300..=303 | 307 | 308 | 400 | 401 | 403..=417 | 421 | 422 | 426 | 500..=505
    )
}

/// Whether a status is about the server and not about the object. 501 is about the method, and
/// cacheable by default (RFC 9110 section 15.6.2).
fn tells_of_the_server(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// The fields of a response that are for the visitor who asked.
pub fn unshared_in(headers: &HeaderMap) -> Vec<Box<str>> {
    unshared_fields(headers, &ResponseControl::of(headers))
}

fn unshared_fields(headers: &HeaderMap, control: &ResponseControl) -> Vec<Box<str>> {
    let names = control.unshared_fields();
    let there = names.filter(|name| headers.contains_key(*name));
    there.map(Box::from).collect()
}

/// Who may be given a response that nothing forbids to share.
fn sharing(control: &ResponseControl, lifetime: Lifetime, purpose: Purpose) -> Sharing {
    let shown_to_all = control.public || control.s_maxage.is_some();
    // Of no lifetime means: made for this request. Whoever waits beside it is another visitor.
    let lasting = lifetime.is_explicit() && lifetime.duration() > Some(Duration::ZERO);
    //= RFC 9111 section 3.5: a response to a request with Authorization may be reused only where
    //= must-revalidate, public or s-maxage says so.
    let for_all = shown_to_all || (control.must_revalidate && lasting);
    Sharing(match purpose {
        // We never send credentials to an origin that we rescue, so every response is anonymous.
        Purpose::Rescue => Credentials::Authorization,
        Purpose::Upstream if for_all => Credentials::Authorization,
        Purpose::Upstream if lasting => Credentials::Cookie,
        Purpose::Upstream => Credentials::None,
    })
}

/// Whether a cookie in the response makes it personal. RFC 9111 section 7.3 leaves that to the
/// origin; too many applications say `max-age` and set a session cookie in one breath. Where the
/// response says that the cookie alone is for one visitor, it is kept without it. Of a rescued
/// origin's response that states that it may be shared the cookie is dropped instead.
fn sets_cookie_for_one(answer: &Answer<'_>, control: &ResponseControl, policy: &Policy) -> bool {
    let mut unshared = control.unshared_fields();
    answer.headers.contains_key(header::SET_COOKIE)
        && !unshared.any(|name| name == header::SET_COOKIE.as_str())
        && match policy.purpose {
            Purpose::Upstream => true,
            Purpose::Rescue => !control.public && control.s_maxage.is_none(),
        }
}

/// How long a stored response may be shown after its lifetime while its source is asked.
fn stale_while_revalidate(control: &ResponseControl, lifetime: Lifetime) -> Duration {
    //= RFC 9111 section 5.2.2.10: s-maxage "incorporates the semantics of the proxy-revalidate
    //= response directive". Unlike an unreachable source, a source that can be asked is no reason
    //= to do otherwise.
    if control.forbids_stale() || control.s_maxage.is_some() {
        return Duration::ZERO;
    }
    //= RFC 5861 section 3
    match (control.stale_while_revalidate, lifetime) {
        (Some(stated), _) => stated,
        // Twice the time that the origin named is still what it asked for: that its pages may be
        // about so old. Otherwise every visitor would wait for each renewal, and at the redirect
        // bound a renewal takes long.
        (None, Lifetime::Agreed(ttl)) => ttl,
        (None, Lifetime::Explicit(_) | Lifetime::Chosen(_) | Lifetime::None) => Duration::ZERO,
    }
}

/// How long a stored response may stand in for its unreachable source.
fn stale_if_error(control: &ResponseControl, policy: &Policy) -> Duration {
    if control.forbids_stale() {
        return Duration::ZERO;
    }
    match (control.stale_if_error, control.s_maxage) {
        (Some(stated), _) => stated.min(policy.stale_if_error),
        (None, Some(_)) => Duration::ZERO,
        (None, None) => policy.stale_if_error,
    }
}

/// Whether one can ask the source if the response is still the same.
fn has_validator(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED)
}
