//! Asking an object's home before its origin.
//!
//! ```text
//!  visitor's miss ─▶ whose object? ─▶ ours: ask for a copy where it has just moved here,
//!                        │            and then the origin
//!                        │ another rescue server's
//!                        ▼
//!             ask it, with a mark ─▶ it has it, or asks the origin, and says that it is a home
//!                        │ anything else, or too late
//!                        ▼
//!                  ask the origin
//! ```
//!
//! Each time that the origin is asked although an object's home is elsewhere is an exception, and
//! counted by its reason: homes make fetches rare and never make one fail. Whoever is asked with
//! the mark asks others for no more than a copy. What a request for one visitor alone brings is not
//! asked for at homes.
//!
//! A home may learn later than we do that an object was purged. So what a purge was about is not
//! asked for at homes for as long as it can take until all have heard of it ([`PURGE_REST`]).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;
use levee_control::{AskEnd, Asking, Asks, Home, Homes, NeededBy, object_hash};
use levee_vocab::{FetchKey, Purge, Timestamp, WebAddress};
use tokio::time::timeout;

use super::Shared;
use super::counters::{count, count_many};
use super::dial::Way;
use super::exchange::{Patience, Reply};
use super::purges::is_meant;
use super::request::{FETCH_KEY, Intent, Upload};
use super::task::Fetch;
use crate::flight::{Company, FetchError, ObjectKey, Space, Spaces, lock};

/// How long after a purge its objects are not asked for at homes. The origin waits two seconds for
/// the word of each rescue server, and drops one that is silent within two and a half intervals;
/// the rest is for a machine that was frozen.
const PURGE_REST: Duration = Duration::from_secs(5);

/// Purges remembered for that. Beyond it nothing is asked for at homes.
const PURGES_MAX: usize = 64;

/// The field of an ask, with the key of its rescue servers; and of an answer by an object's home.
pub(crate) const HOME_FIELD: &str = "levee-home";

/// The line by which an answer says that it is a home's: an object of the origin, whatever its
/// status, and not a word of the server's own.
pub(crate) const HOME_LINE: &[u8] = b"levee-home: yes\r\n";

/// Why the origin was asked for an object that has its home elsewhere, or the next home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomeException {
    /// A purge was about it just now.
    Purged,
    /// Its home failed lately.
    Resting,
    /// Its home was asked for too much already.
    Busy,
    /// No connection to its home.
    Unreachable,
    /// Its home did not answer in time.
    Late,
    /// Its home broke off.
    Broken,
    /// Its home did not answer as a home.
    Refused,
    /// What its home gave is not what the origin signed.
    Altered,
}

impl HomeException {
    /// All of them, in order; counters go by this order.
    pub const ALL: [Self; 8] = [
        Self::Purged,
        Self::Resting,
        Self::Busy,
        Self::Unreachable,
        Self::Late,
        Self::Broken,
        Self::Refused,
        Self::Altered,
    ];

    /// Name for metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Purged => "purged",
            Self::Resting => "resting",
            Self::Busy => "busy",
            Self::Unreachable => "unreachable",
            Self::Late => "late",
            Self::Broken => "broken",
            Self::Refused => "refused",
            Self::Altered => "altered",
        }
    }
}

/// What is counted of homes.
#[derive(Debug, Default)]
pub(super) struct HomeTally {
    pub asks: AtomicU64,
    pub answers: AtomicU64,
    pub bytes: AtomicU64,
    pub exceptions: [AtomicU64; HomeException::ALL.len()],
}

impl HomeTally {
    fn excepted(&self, why: HomeException, many: u64) {
        for (kind, counter) in HomeException::ALL.iter().zip(&self.exceptions) {
            if *kind == why {
                count_many(counter, many);
            }
        }
    }
}

/// What this server knows of homes.
#[derive(Debug, Default)]
pub(super) struct HomeDesk {
    asks: Asks,
    /// What was purged lately, and until when it is left out; the oldest first.
    purges: VecDeque<(Timestamp, Spaces, Purge)>,
    nothing_until: Timestamp,
}

impl HomeDesk {
    /// A purge begins.
    pub fn purged(&mut self, now: Timestamp, spaces: &Spaces, purge: &Purge) {
        while self.purges.front().is_some_and(|(until, ..)| *until <= now) {
            self.purges.pop_front();
        }
        if self.purges.len() >= PURGES_MAX {
            self.nothing_until = now + PURGE_REST;
            self.purges.clear();
            return;
        }
        let until = now + PURGE_REST;
        self.purges
            .push_back((until, spaces.clone(), purge.clone()));
    }

    fn was_purged(&self, now: Timestamp, key: &ObjectKey) -> bool {
        let is_about = |(until, spaces, purge): &(Timestamp, Spaces, Purge)| {
            now < *until && is_meant(spaces, purge, key, None)
        };
        now < self.nothing_until || self.purges.iter().any(is_about)
    }
}

/// An ask under way. Dropped, it is over.
pub(super) struct Asked {
    shared: Arc<Shared>,
    home: Home,
    asking: Asking,
    key: FetchKey,
    end: AskEnd,
}

impl Asked {
    /// Turns a request to the origin into one to its home.
    pub fn mark(&self, headers: &mut HeaderMap) -> Result<(), FetchError> {
        let bad = |_| FetchError::BadRequest;
        let host = HeaderValue::try_from(self.home.alias.to_string()).map_err(bad)?;
        let mut key = HeaderValue::try_from(self.key.to_string()).map_err(bad)?;
        key.set_sensitive(true);
        headers.insert(header::HOST, host);
        headers.insert(HeaderName::from_static(HOME_FIELD), key);
        headers.remove(FETCH_KEY);
        match self.asking {
            Asking::Object => {}
            Asking::Copy => {
                let only_if_cached = HeaderValue::from_static("only-if-cached");
                headers.insert(header::CACHE_CONTROL, only_if_cached);
            }
        }
        Ok(())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let now = self.shared.now();
        let mut desk = lock(&self.shared.homes);
        desk.asks.end(now, self.home.address, self.end);
    }
}

/// What an object is needed for, as far as homes are concerned.
struct Need<'a> {
    homes: &'a Homes,
    by: NeededBy,
    object: u64,
    lifetime: Duration,
}

impl Shared {
    /// Where to ask for the object before its origin, if anywhere; that ask is then under way.
    fn choose_home(self: &Arc<Self>, need: &Need<'_>, key: &ObjectKey) -> Option<Asked> {
        let (now, tally) = (self.now(), &self.tally.homes);
        let mut desk = lock(&self.homes);
        if desk.was_purged(now, key) {
            let is_elsewhere = need.by == NeededBy::Visitor && !need.homes.are_ours(need.object);
            tally.excepted(HomeException::Purged, u64::from(is_elsewhere));
            return None;
        }
        let object = (need.object, need.lifetime);
        let choice = desk.asks.choose(now, need.homes, object, need.by);
        drop(desk);
        tally.excepted(HomeException::Resting, choice.resting);
        tally.excepted(HomeException::Busy, choice.busy);
        Some(Asked {
            shared: Arc::clone(self),
            home: choice.home?,
            asking: choice.asking,
            key: *need.homes.key(),
            end: AskEnd::Answered,
        })
    }
}

/// Whether another rescue server is the home of the object under `key`.
pub(super) fn is_elsewhere(company: &Company, key: &ObjectKey) -> bool {
    match company {
        Company::Alone | Company::ForAnother(_) => false,
        Company::WithHomes(homes) => object_of(key).is_some_and(|object| !homes.are_ours(object)),
    }
}

fn object_of(key: &ObjectKey) -> Option<u64> {
    match &key.space {
        Space::Own(_) => None,
        Space::Origin(host, port) => {
            let (host, port) = (host.clone(), *port);
            Some(object_hash(&WebAddress { host, port }, &key.target))
        }
    }
}

impl Fetch {
    /// The head of a home's answer; none where the origin is to be asked.
    ///
    /// Cancel safety: dropped half-way, the ask is over.
    pub(super) async fn ask_home(&mut self) -> Option<Reply> {
        let asked = self.shared.choose_home(&self.need()?, &self.asker.key)?;
        let (way, asking) = (Way::to(asked.home.address), asked.asking);
        let limit = match asking {
            Asking::Object => self.shared.settings.home_wait,
            Asking::Copy => self.shared.settings.home_wait / 5,
        };
        self.asked = Some(asked);
        let patience = Patience::new(limit, None);
        let attempt = self.attempt(&way, Upload::None, true, &patience);
        let why = match timeout(limit, attempt).await {
            Ok(Ok((response, lease))) => {
                let reply = self.replied(response, lease);
                if self.is_from_home(&reply.parts) {
                    count(&self.shared.tally.homes.answers);
                    return Some(reply);
                }
                if asking == Asking::Copy && reply.parts.status == StatusCode::GATEWAY_TIMEOUT {
                    // Nobody has it yet, and we are its home: the origin is asked as it should be.
                    self.asked = None;
                    return None;
                }
                HomeException::Refused
            }
            Ok(Err(failed)) => exception(failed.error),
            Err(_) => HomeException::Late,
        };
        self.home_failed(why);
        None
    }

    /// What the object is needed for; none where only the origin can be asked.
    fn need(&self) -> Option<Need<'_>> {
        let has_old = match &self.intent {
            Intent::Share(stale) => stale.is_some(),
            Intent::Pass => return None,
        };
        let (homes, by) = match &self.asker.source.company {
            Company::Alone | Company::ForAnother(None) => return None,
            Company::WithHomes(homes) => (homes, NeededBy::Visitor),
            Company::ForAnother(Some(homes)) => (homes, NeededBy::Another),
        };
        let object = object_of(&self.asker.key)?;
        // What we have ourselves is not looked for elsewhere, only whether it is still right.
        if has_old && (by == NeededBy::Another || homes.are_ours(object)) {
            return None;
        }
        let lifetime = self.asker.source.ttl;
        Some(Need {
            homes,
            by,
            object,
            lifetime,
        })
    }

    /// The home that is being asked did not do what it should.
    pub(super) fn home_failed(&mut self, why: HomeException) {
        if let Some(mut asked) = self.asked.take() {
            tracing::debug!(home = %asked.home.alias, why = why.label(), "not from an object's home");
            asked.end = AskEnd::Failed;
            self.shared.tally.homes.excepted(why, 1);
        }
    }

    /// Whether a home says this, as the home of the object: a redirect or an error of its own is
    /// nothing that visitors of the origin should see.
    fn is_from_home(&self, parts: &Parts) -> bool {
        let is_expected = match (parts.status, &self.intent) {
            (StatusCode::NOT_MODIFIED, Intent::Share(stale)) => stale.is_some(),
            (StatusCode::NOT_MODIFIED, Intent::Pass) => false,
            (status, _) => !status.is_server_error() && !status.is_informational(),
        };
        is_expected && parts.headers.contains_key(HOME_FIELD)
    }

    /// Counts a request by where it goes.
    pub(super) fn note_sent(&self) {
        let tally = &self.shared.tally;
        match (&self.pushing, &self.asked) {
            // Nothing is sent.
            (Some(_), _) => {}
            (None, Some(_)) => count(&tally.homes.asks),
            (None, None) => tally.fetched(&self.asker.key.space),
        }
    }

    /// Counts bytes by where they came from.
    pub(super) fn note_received(&self, bytes: u64) {
        let tally = &self.shared.tally;
        match (&self.pushing, &self.asked) {
            (Some(_), _) => count_many(&tally.copies.bytes, bytes),
            (None, Some(_)) => count_many(&tally.homes.bytes, bytes),
            (None, None) => tally.received(&self.asker.key.space, bytes),
        }
    }
}

fn exception(error: FetchError) -> HomeException {
    match error {
        FetchError::NameUnknown
        | FetchError::ConnectRefused
        | FetchError::ConnectFailed
        | FetchError::ConnectTimeout => HomeException::Unreachable,
        FetchError::FirstByteTimeout | FetchError::BodyTimeout => HomeException::Late,
        FetchError::ClosedEarly | FetchError::Truncated | FetchError::Malformed => {
            HomeException::Broken
        }
        FetchError::Loop
        | FetchError::BadRequest
        | FetchError::RequestAborted
        | FetchError::Overloaded
        | FetchError::Aborted => HomeException::Refused,
    }
}
