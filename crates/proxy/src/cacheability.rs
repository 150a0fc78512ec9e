//! May this response be given to others, and for how long? (RFC 9111, as a shared cache.)
//!
//! A pure decision: status, headers and a few figures in, [`Decision`] out. It does not look at
//! what is stored already and knows no clock but the time that it is given.
//!
//! Beyond the RFC, on the side of care:
//! - a response to a visitor with credentials is for that visitor alone, unless it says otherwise;
//!   so is the use of a stored response that does not say that it is for everybody;
//! - a response that sets a cookie is for one visitor;
//! - a body whose end only the end of the connection tells is not kept, because a killed server
//!   looks the same.
//!
//! Request directives (`no-cache`, `max-age=0`) are not obeyed: they would let any visitor make a
//! small site answer everything itself in its worst minute.

mod control;
mod freshness;
mod vary;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use control::CacheControl;
pub use freshness::age_on_arrival;
use freshness::{Lifetime, lifetime};
pub use vary::{VaryNames, normal_encodings};

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
    let control = CacheControl::of(answer.headers);
    if control.no_store || control.private {
        return Decision::Pass;
    }
    let Ok(vary) = VaryNames::of(answer.headers, policy.purpose) else {
        return Decision::Pass;
    };
    let lifetime = lifetime(answer, &control, policy);
    if sets_cookie_for_one(answer, &control, policy) {
        return Decision::Pass;
    }
    if answer.status.is_server_error() && !lifetime.is_explicit() {
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
    if answer.body_end == BodyEnd::Unannounced {
        return Decision::ShareOnce { sharing, vary };
    }
    Decision::Store(Keeping {
        lifetime: fresh,
        stale_while_revalidate,
        stale_if_error: stale_if_error(&control, policy),
        sharing,
        vary,
    })
}

/// Who may be given a response that nothing forbids to share.
fn sharing(control: &CacheControl, lifetime: Lifetime, purpose: Purpose) -> Sharing {
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

/// Whether a cookie in the response makes it personal. Of a rescued origin's response that states
/// that it may be shared the cookie is dropped instead.
fn sets_cookie_for_one(answer: &Answer<'_>, control: &CacheControl, policy: &Policy) -> bool {
    answer.headers.contains_key(header::SET_COOKIE)
        && match policy.purpose {
            Purpose::Upstream => true,
            Purpose::Rescue => !control.public && control.s_maxage.is_none(),
        }
}

/// How long a stored response may be shown after its lifetime while its source is asked.
fn stale_while_revalidate(control: &CacheControl, lifetime: Lifetime) -> Duration {
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
fn stale_if_error(control: &CacheControl, policy: &Policy) -> Duration {
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
