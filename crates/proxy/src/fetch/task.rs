//! The task that fills one flight.
//!
//! ```text
//!  wait for a turn ─▶ ask (once more on a fresh connection) ─▶ decide ─▶ stream the body ─▶ keep
//!        │                     │                  │ 304: the old object, refreshed
//!        ▼                     ▼                  ▼ server error and an old object: that one
//!     too long: the      failed: the old object, or 502 or 504
//!     old one, or 503
//! ```
//!
//! It may be dropped at any point, by a cancellation, a panic or the end of the runtime: its `Drop`
//! ends the flight for those who wait and gives the place in the table back.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use hyper::body::Body;
use levee_vocab::{Purge, PurgeKind};
use tokio::time::timeout;

use super::body::Filling;
use super::copies::{PushedHead, Pushing, kept_by};
use super::counters::count;
use super::exchange::Reply;
use super::homes::{Asked, HomeException};
use super::lane::Turn;
use super::purges::Overtaken;
use super::request::Intent;
use super::response::{Recipients, body_end, clean, header_map, refreshed};
use super::table::Ticket;
use super::{Caller, Excluded, Shared};
use crate::cache::{CacheKey, KeptBy, Stored};
use crate::cacheability::{
    Answer, Audience, BodyEnd, Credentials, Decision, Keeping, Late, Policy, Sharing, VaryNames,
    decide, named_targets, unshared_in,
};
use crate::flight::{
    Asker, BodyReceiver, CacheResult, Fault, FetchError, Forwarding, Kept, Purpose, RequestHeaders,
    ResponseHead, Spaces, Why, lock,
};

/// One fetch. See the head of this file.
pub(super) struct Fetch {
    pub shared: Arc<Shared>,
    pub ticket: Ticket,
    pub asker: Box<Asker>,
    pub intent: Intent,
    pub body: Option<BodyReceiver>,
    /// Bytes counted in `Shared::in_flight`.
    pub reserved: u64,
    /// The object's home, where it answers in the place of the source.
    pub asked: Option<Asked>,
    /// The response, where its origin has sent it unasked.
    pub pushing: Option<Pushing>,
}

impl Fetch {
    /// A fetch for everybody who asks for the object; `stale` is what the cache has of it.
    pub fn shared(
        shared: Arc<Shared>,
        ticket: Ticket,
        asker: Box<Asker>,
        stale: Option<Arc<Stored>>,
    ) -> Self {
        Self {
            shared,
            ticket,
            asker,
            intent: Intent::Share(stale),
            body: None,
            reserved: 0,
            asked: None,
            pushing: None,
        }
    }

    /// A fetch for one visitor.
    pub fn private(
        shared: Arc<Shared>,
        ticket: Ticket,
        asker: Box<Asker>,
        body: Option<BodyReceiver>,
    ) -> Self {
        Self {
            shared,
            ticket,
            asker,
            intent: Intent::Pass,
            body,
            reserved: 0,
            asked: None,
            pushing: None,
        }
    }

    /// Fills the flight. Where it is dropped half-way, those who wait get an error.
    pub async fn run(mut self) {
        if let Err(error) = self.fly().await {
            let target = String::from_utf8_lossy(&self.asker.key.target);
            tracing::debug!("fetching {target} from {}: {error}", self.asker.key.space);
            self.shared.tally.failed(error);
            self.home_failed(HomeException::Broken);
            self.ticket.flight.fail(error);
        }
    }

    async fn fly(&mut self) -> Result<(), FetchError> {
        let permit = self.tunnel_permit()?;
        let (turn, reply) = match self.take_push().await {
            PushedHead::Reply(reply) => (None, Ok(*reply)),
            PushedHead::Unwanted => return Ok(()),
            PushedHead::Wanted => match self.ask_home().await {
                Some(reply) => (None, Ok(reply)),
                None => self.ask_source().await,
            },
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) if error.fault() != Fault::Visitor && self.fall_back(None) => {
                self.shared.tally.failed(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if reply.parts.status == http::StatusCode::SWITCHING_PROTOCOLS {
            // A tunnel may last for days; others want their turn.
            drop(turn);
            return self.tunnel(reply, permit).await;
        }
        drop(permit);
        self.deliver(reply).await
    }

    /// Asks the source when it is our turn, which lasts as long as it is held.
    async fn ask_source(&mut self) -> (Option<Turn>, Result<Reply, FetchError>) {
        match self.turn().await {
            Ok(turn) => (Some(turn), self.exchange().await),
            Err(overloaded) => (None, Err(overloaded)),
        }
    }

    /// Waits until few enough fetches from this source run.
    async fn turn(&self) -> Result<Turn, FetchError> {
        let turn = self.ticket.lane.turn(&self.ticket.flight);
        match timeout(self.shared.settings.wait_max, turn).await {
            Ok(turn) => Ok(turn),
            Err(_) => Err(FetchError::Overloaded),
        }
    }

    /// Shows the response to whom it may be shown.
    async fn deliver(&mut self, reply: Reply) -> Result<(), FetchError> {
        let stale = match &self.intent {
            Intent::Pass => return self.pass(reply).await,
            Intent::Share(stale) => stale.clone(),
        };
        if let Some(stale) = &stale {
            if reply.parts.status == http::StatusCode::NOT_MODIFIED {
                self.refresh(stale, &reply);
                self.drain(reply).await;
                return Ok(());
            }
            let status = reply.parts.status;
            if matches!(status.as_u16(), 500 | 502..=504) && self.fall_back(Some(status)) {
                return Ok(());
            }
        }
        let answer = self.answer_in(&reply);
        match decide(&answer, &self.policy()) {
            Decision::Pass => {
                self.note_pass(&reply, kept_by(&answer));
                self.turned_out_private(reply, Excluded::ResponseIsForOne)
                    .await
            }
            Decision::PassWithCredentials => {
                self.turned_out_private(reply, Excluded::OtherCredentials)
                    .await
            }
            Decision::ShareOnce { sharing, vary } => {
                let many = Recipients::Many(self.asker.source.purpose, &[]);
                let head = clean(&reply.parts, &reply.arrival, many, self.why());
                let late = Late::TooLate;
                self.show(Arc::new(head), sharing, vary, late);
                self.fill(reply, None).await
            }
            Decision::Store(keeping) if self.is_too_large(&reply) => {
                count(&self.shared.tally.unkept);
                drop(keeping);
                self.note_pass(&reply, KeptBy::Others);
                self.turned_out_private(reply, Excluded::ResponseIsForOne)
                    .await
            }
            Decision::Store(keeping) => self.share(reply, keeping).await,
        }
    }

    /// A response that is kept.
    async fn share(&mut self, reply: Reply, keeping: Keeping) -> Result<(), FetchError> {
        let (parts, arrival, why) = (&reply.parts, &reply.arrival, self.why());
        let shown_to =
            |recipients| kept_for(clean(parts, arrival, recipients, why), keeping.lifetime);
        let head = Arc::new(shown_to(Recipients::Many(
            self.asker.source.purpose,
            &keeping.unshared,
        )));
        if !keeping.unshared.is_empty() && self.asker.source.purpose == Purpose::Upstream {
            let own = shown_to(Recipients::One(Purpose::Upstream));
            self.ticket.flight.keep_for_first(own);
        }
        let late = if keeping.lifetime > head.age_initial {
            Late::Welcome
        } else {
            Late::TooLate
        };
        self.show(head, keeping.sharing, keeping.vary.clone(), late);
        self.fill(reply, Some(keeping)).await
    }

    /// The answer to a request that is for one visitor from the start.
    async fn pass(&mut self, reply: Reply) -> Result<(), FetchError> {
        let status = reply.parts.status;
        let done = status.is_success() || status.is_redirection();
        if done && !self.asker.method.is_safe() {
            //= RFC 9111 section 4.4: what was changed here is no longer what the cache holds.
            self.forget_changed(&reply.parts.headers);
        }
        let recipients = Recipients::One(self.asker.source.purpose);
        let head = clean(&reply.parts, &reply.arrival, recipients, self.why());
        let flight = &self.ticket.flight;
        flight.publish(&Arc::new(head), Audience::FirstOnly, Kept::Window);
        self.fill(reply, None).await
    }

    /// Forgets what a request that was done may have changed: its own target, and those that its
    /// response names. What is on its way may be older than the change.
    fn forget_changed(&self, headers: &http::HeaderMap) {
        let key = &self.asker.key;
        let mut authority = String::new();
        self.asker.headers.each("host", &mut |host| {
            authority = String::from_utf8_lossy(host).into_owned();
        });
        let target = String::from_utf8_lossy(&key.target).into_owned();
        // By whatever scheme and Host, but of no other site.
        let spaces = Spaces::One(key.space.clone());
        let named = named_targets(headers, &authority, &target);
        for target in std::iter::once(target).chain(named) {
            // What is no path is not kept either.
            if let Ok(purge) = Purge::url(&target, PurgeKind::Hard) {
                self.shared.go_through(&spaces, &purge);
            }
        }
    }

    /// Remembers that the responses for this key are for one visitor each, and kept by nobody but
    /// `by`.
    fn note_pass(&self, reply: &Reply, by: KeptBy) {
        let until = reply.arrival.at + self.shared.settings.pass_lifetime;
        if let Some(key) = self.ticket.key.clone() {
            self.shared.cache.note_pass(key, until, by);
        }
    }

    /// The answer is for the first visitor only; all others are given other flights.
    async fn turned_out_private(&mut self, reply: Reply, why: Excluded) -> Result<(), FetchError> {
        lock(&self.shared.table).unlist(&self.ticket);
        let recipients = Recipients::One(self.asker.source.purpose);
        let head = clean(&reply.parts, &reply.arrival, recipients, self.why());
        let flight = &self.ticket.flight;
        let excluded = flight.publish(&Arc::new(head), Audience::FirstOnly, Kept::Window);
        self.reseat(excluded, Sharing(Credentials::None), why);
        if !self.ticket.flight.is_read() {
            // By whose request it was fetched has left, or was never there. Nobody else may have
            // it.
            return Ok(());
        }
        self.fill(reply, None).await
    }

    /// Shows the head to all whom the response fits, and lists the flight where they will look.
    fn show(
        &mut self,
        head: Arc<ResponseHead>,
        sharing: Sharing,
        vary: Option<VaryNames>,
        late: Late,
    ) {
        let object = self.asker.key.clone();
        let variant = vary.map(|names| {
            let values = names.variant(&self.asker.headers);
            (Arc::new(names), values)
        });
        let mut table = lock(&self.shared.table);
        if let Some((names, _)) = &variant {
            self.shared.cache.note_vary(&object, names);
        }
        let key = CacheKey {
            object,
            variant: variant.as_ref().map(|(_, values)| values.clone()),
        };
        table.relist(&mut self.ticket, key, &head.tags);
        match late {
            Late::Welcome => {}
            Late::TooLate => table.unlist(&self.ticket),
        }
        let audience = Audience::Fitting {
            sharing,
            variant,
            late,
        };
        let flight = &self.ticket.flight;
        let excluded = flight.publish(&head, audience, Kept::Whole);
        drop(table);
        self.reseat(excluded, sharing, Excluded::OtherVariant);
    }

    /// Gives those who may not have the response flights of their own.
    fn reseat(&self, excluded: Vec<(u64, Box<Asker>)>, sharing: Sharing, why: Excluded) {
        let flight = &self.ticket.flight;
        for (reader, asker) in excluded {
            let Some((waker, connection)) = flight.waker_of(reader) else {
                continue;
            };
            let why = match why {
                Excluded::OtherVariant | Excluded::OtherCredentials
                    if !sharing.allows(asker.credentials) =>
                {
                    Excluded::ResponseIsForOne
                }
                Excluded::OtherVariant
                | Excluded::OtherCredentials
                | Excluded::ResponseIsForOne => why,
            };
            let caller = Caller { waker, connection };
            flight.reseat(reader, self.shared.ask_again(asker, caller, why));
        }
    }

    /// The old object is still right.
    fn refresh(&mut self, stale: &Arc<Stored>, reply: &Reply) {
        count(&self.shared.tally.revalidated);
        let (parts, arrival) = (&reply.parts, &reply.arrival);
        let unshared = unshared_in(&parts.headers);
        let many = Recipients::Many(self.asker.source.purpose, &unshared);
        let head = refreshed(&stale.head, (parts, arrival), many, self.why());
        let headers = header_map(&head);
        let answer = Answer {
            status: head.status,
            headers: &headers,
            body_end: BodyEnd::Announced,
            arrived: reply.arrival.date,
            credentials: Credentials::None,
        };
        let fresh = match decide(&answer, &self.policy()) {
            Decision::Store(keeping) => {
                let head = kept_for(head, keeping.lifetime);
                Stored::new(Arc::new(head), stale.body.clone(), &keeping)
            }
            // It may no longer be kept, but those who wait may have it.
            Decision::ShareOnce { .. } | Decision::PassWithCredentials | Decision::Pass => Stored {
                head: Arc::new(head),
                ..stale.expired()
            },
        };
        let sets_cookie = parts.headers.contains_key(http::header::SET_COOKIE);
        let is_own = self.asker.source.purpose == Purpose::Upstream;
        if is_own && (sets_cookie || !unshared.is_empty()) {
            let one = Recipients::One(Purpose::Upstream);
            let own = refreshed(&stale.head, (parts, arrival), one, self.why());
            self.ticket.flight.keep_for_first(own);
        }
        self.show_stored(Arc::new(fresh), CacheResult::Revalidated);
    }

    /// The source cannot be reached: the old object, if it is not too old for that.
    /// `answered` is what it said, where it said something.
    fn fall_back(&mut self, answered: Option<http::StatusCode>) -> bool {
        let Intent::Share(Some(stale)) = &self.intent else {
            return false;
        };
        let now = self.shared.now();
        if now >= stale.stale_until {
            return false;
        }
        let settings = &self.shared.settings;
        let mut spared = stale.after_failure(now, settings.stale_retry, settings.stale_trust);
        let forwarding = Forwarding {
            why: Why::Spared,
            answered,
            ..spared.head.forwarding
        };
        spared.head = Arc::new(ResponseHead {
            forwarding,
            ..(*spared.head).clone()
        });
        self.show_stored(Arc::new(spared), CacheResult::Stale);
        true
    }

    fn show_stored(&mut self, stored: Arc<Stored>, result: CacheResult) {
        let names = self.shared.cache.vary(&self.asker.key);
        let variant = names.map(|names| {
            let values = names.variant(&self.asker.headers);
            (names, values)
        });
        let audience = Audience::Fitting {
            sharing: stored.sharing,
            variant,
            late: Late::Welcome,
        };
        self.keep(&stored);
        let flight = &self.ticket.flight;
        let excluded = flight.publish(&stored.head, audience, Kept::Whole);
        flight.complete_with(&stored, Some(result));
        let why = Excluded::OtherVariant;
        self.reseat(excluded, stored.sharing, why);
    }

    /// Puts an object into the cache, unless it was purged meanwhile.
    pub(super) fn keep(&self, stored: &Arc<Stored>) {
        let table = lock(&self.shared.table);
        let Some(key) = self.ticket.key.clone() else {
            return;
        };
        let tags = &stored.head.tags;
        let stored = match table.log.overtaken(self.ticket.began, &key.object, tags) {
            Overtaken::No => Arc::clone(stored),
            Overtaken::Softly => Arc::new(stored.purged(self.shared.now())),
            Overtaken::Hard => return,
        };
        let tally = &self.shared.tally;
        match self.shared.cache.insert(key, stored) {
            Ok(()) => count(&tally.stored),
            Err(_) => count(&tally.unkept),
        }
        drop(table);
    }

    /// Why the source is asked.
    fn why(&self) -> Why {
        let has_variants = |key: &CacheKey| key.variant.is_some();
        match &self.intent {
            Intent::Pass if matches!(self.asker.method, Method::GET | Method::HEAD) => Why::Bypass,
            Intent::Pass => Why::Method,
            Intent::Share(Some(stored)) if self.shared.now() < stored.fresh_until => Why::Request,
            Intent::Share(Some(_)) => Why::Stale,
            Intent::Share(None) if self.ticket.key.as_ref().is_some_and(has_variants) => {
                Why::VaryMiss
            }
            Intent::Share(None) => Why::UriMiss,
        }
    }

    /// What is looked at to decide what becomes of a response.
    pub(super) fn answer_in<'a>(&self, reply: &'a Reply) -> Answer<'a> {
        let (status, headers) = (reply.parts.status, &reply.parts.headers);
        Answer {
            status,
            headers,
            body_end: body_end(status, headers),
            arrived: reply.arrival.date,
            credentials: self.asker.credentials,
        }
    }

    pub(super) fn policy(&self) -> Policy {
        let settings = &self.shared.settings;
        Policy {
            purpose: self.asker.source.purpose,
            ttl: self.asker.source.ttl,
            heuristic_max: settings.heuristic_max,
            negative: settings.negative_lifetime,
            stale_if_error: settings.stale_if_error,
        }
    }

    /// Whether the body is announced as larger than anything that is kept.
    pub(super) fn is_too_large(&self, reply: &Reply) -> bool {
        self.is_over_size(reply.body.size_hint().lower())
    }

    /// Whether so many bytes are more than anything that is kept.
    pub(super) fn is_over_size(&self, length: u64) -> bool {
        let disk = self.shared.settings.disk.as_ref();
        let disk = disk.map_or(0, |disk| disk.object_max.min(disk.limit));
        length > self.shared.cache.object_max().max(disk)
    }

    /// Reads the body into the flight; keeps the object where `keeping` says so.
    async fn fill(&mut self, reply: Reply, keeping: Option<Keeping>) -> Result<(), FetchError> {
        let mut body = reply.body;
        let mut filling = Filling::new(self, keeping);
        let filled = filling.fill(&mut body).await;
        let mut lease = reply.lease;
        if let (Err(error), Some(claim)) = (&filled, &mut lease.claim) {
            claim.failed(*error);
        }
        filled?;
        self.shared.pool.give_back(lease).await;
        Ok(())
    }

    /// Takes the connection back after a response whose body does not matter.
    async fn drain(&self, reply: Reply) {
        let Reply { body, lease, .. } = reply;
        if body.is_end_stream() {
            drop(body);
            self.shared.pool.give_back(lease).await;
        }
    }
}

/// The head of a response that is kept for so long.
fn kept_for(head: ResponseHead, lifetime: Duration) -> ResponseHead {
    let forwarding = Forwarding {
        lifetime: Some(lifetime),
        ..head.forwarding
    };
    ResponseHead { forwarding, ..head }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        // Does nothing where the flight ended well.
        self.ticket.flight.fail(FetchError::Aborted);
        lock(&self.shared.table).release(&self.ticket);
        self.shared.release_in_flight(self.reserved);
    }
}
