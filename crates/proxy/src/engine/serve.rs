//! One request from its head to the beginning of its answer.
//!
//! ```text
//!  head ─▶ whose? ─▶ what would it get? ─▶ ask the Gate ─▶ serve | redirect | park | refuse
//! ```

use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::SeedableRandomState;
use levee_control::{
    Arrival, Ask, Block, Comeback, Onward, OriginRoute, Redirectability, Verdict, Visitor,
};
use levee_vocab::Timestamp;

use super::challenge::is_challenge;
use super::copies::is_copy_for;
use super::hot_index::resource_hash;
use super::refuse::packets_of;
use super::way_back::{Hearing, Turn};
use super::work::Work;
use super::{Core, Settled};
use crate::answer::{After, Answer, Body, Cause, Kind};
use crate::connection::{Connection, Granted, Introduction, Phase};
use crate::request::{BodyLength, Expectation, Request, Scheme, Upgrade, Version};
use crate::response::Closing;
use crate::router::{Route, route};
use crate::shared_cookies::SharedCookies;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The connection has its answer.
    Answered,
    /// It waits; its head stays where it is.
    Parked,
    /// The connection is to be reset.
    Dropped,
}

/// What all ways of answering a request need to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub began: Timestamp,
    pub kind: Kind,
    pub cause: Cause,
    pub came_by: Scheme,
    /// What the request says of where it has been.
    pub comeback: Comeback,
    pub closing: Closing,
    /// What the response costs the link beside its bytes.
    pub overhead: u64,
    pub token: u64,
}

impl Core {
    /// Answers `request`, or parks it.
    pub(super) fn serve(
        &mut self,
        connection: &mut Connection,
        token: u64,
        request: &Request<'_, '_>,
    ) -> Served {
        let granted = connection.granted.take();
        if granted.is_none() {
            self.counters.requests.add(1);
        }
        let route = route(request.host, &self.sites, &self.gate.plan().hosts);
        let kind = self.kind(connection, &route, request);
        let hearing = match &granted {
            None => Hearing::First,
            Some(_) => Hearing::Again,
        };
        let comeback = self.comeback(connection, &route, request, hearing);
        let visit = Visit {
            began: granted.as_ref().map_or(self.now, |granted| granted.since),
            kind,
            cause: self.drill.cause_of(kind),
            came_by: request.fields.came_by,
            comeback,
            closing: self.closing(request),
            overhead: match &granted {
                Some(granted) => granted.ask.overhead_bytes,
                None => self.overhead(connection),
            },
            token,
        };
        let work = self.work(connection, &route, request, (kind, comeback));
        let verdict = match granted {
            Some(Granted { verdict, .. }) => verdict,
            None => {
                let mut ask = self.ask(&visit, &work, request, &route);
                if let Some(part) = self.drill.part(self.now, request, &ask) {
                    return self.serve_drill(connection, request, visit, (work, part));
                }
                let block = self.find_visitor(connection, request, kind, &mut ask);
                self.note_arrival(connection, request, &visit, (&route, &ask));
                self.note_kept(&visit, &work, request);
                let verdict = self.verdict(&visit, &work, &ask);
                if verdict == Verdict::Wait && !self.parked.is_full() {
                    return self.park(connection, token, ask, block);
                }
                verdict
            }
        };
        match verdict {
            Verdict::Serve => self.answer(connection, request, &visit, work),
            Verdict::Redirect { target } => {
                self.redirect(connection, request, &visit, target, work.bytes())
            }
            Verdict::Wait | Verdict::Refuse => {
                let turn = Turn::busy(&route, Kind::Refusal);
                self.turn_away(connection, request, &visit, turn)
            }
            Verdict::Withhold => {
                let turn = Turn::busy(&route, Kind::Withheld);
                self.turn_away(connection, request, &visit, turn)
            }
            Verdict::PutOff => self.put_off(connection, request, &visit),
        }
    }

    /// Notes what was asked for, by host and path: what becomes hot is copied whole. What only we
    /// may answer is noted without its size, so that it never becomes hot. What others ask for to
    /// have it copied is no crowd: it would make a resource hotter that it is copied. Who comes
    /// back was noted when he came first.
    fn note_arrival(
        &mut self,
        connection: &Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        (route, ask): (&Route, &Ask),
    ) {
        match visit.kind {
            // Nobody else has any use for a copy of what a crawler asks for.
            _ if ask.visitor.is_crawler() => return,
            Kind::Own
            | Kind::Rescue { .. }
            | Kind::Redirect { .. }
            | Kind::Refusal
            | Kind::Withheld
            | Kind::PuttingOff => {}
            Kind::Fetch => return self.note_fetch(connection, request, (route, ask)),
            Kind::Home { .. } | Kind::Copy { .. } | Kind::Look => return,
        }
        if visit.comeback.onward() == Onward::Never {
            return;
        }
        self.note_codings(request);
        let arrival = Arrival {
            hash: hash_without_query(&self.hasher, request, ask),
            bytes: match ask.redirectable {
                Redirectability::Allowed | Redirectability::ByHttps => ask.file_bytes,
                Redirectability::Never => 0,
            },
            host: route.resource_host(&self.sites, request.host),
            path: request.path,
        };
        self.arrivals.note(self.now, &arrival);
    }

    /// Counts who would be one of those that are redirected now, if anybody could keep the page.
    fn note_kept(&self, visit: &Visit, work: &Work, request: &Request<'_, '_>) {
        let is_kept = work.is_unkept()
            && self.gate.plan().redirect.is_some()
            && is_free_to_go(visit, work, request, self.sites.shared_cookies());
        if is_kept {
            self.counters.kept_visits.add(1);
        }
    }

    fn kind(&self, connection: &Connection, route: &Route, request: &Request<'_, '_>) -> Kind {
        match route {
            Route::Own(_) if connection.introduction == Introduction::Ourselves => Kind::Look,
            Route::Rescued(origin) if is_copy_for(origin, request) => {
                Kind::Copy { slot: origin.slot }
            }
            Route::Rescued(origin) if shows_key(origin, request) => {
                Kind::Home { slot: origin.slot }
            }
            Route::Rescued(origin) => Kind::Rescue { slot: origin.slot },
            Route::Own(_) if self.fetch_link(request).is_some() => Kind::Fetch,
            Route::Own(_) | Route::Restored(_) | Route::Expired(_) | Route::Nobody => Kind::Own,
        }
    }

    fn ask(&self, visit: &Visit, work: &Work, request: &Request<'_, '_>, route: &Route) -> Ask {
        let path_hash = self.hasher.hash_one(request.path);
        // A copy is of the path alone: who holds it lacks what the path gives with a query.
        let copy_hash = match request.target.len() == request.path.len() {
            true => path_hash,
            false => self.hasher.hash_one(request.target),
        };
        let host = route.resource_host(&self.sites, request.host);
        let resource_hash = resource_hash(&self.hasher, copy_hash, host);
        Ask {
            visitor: Visitor::Reader,
            redirectable: redirectability(visit, work, request, self.sites.shared_cookies()),
            file_bytes: work.bytes(),
            redirect_bytes: self.redirects.bytes(
                request.fields.came_by,
                request.sent_target,
                visit.closing,
            ),
            overhead_bytes: visit.overhead,
            path_hash,
            resource_hash,
            copies: self.hot.find(resource_hash),
            backlog: match &self.link {
                // What goes before a reader's page; who turns out to be a crawler waits for more.
                Some(link) => link.backlog_for(Visitor::Reader, self.now),
                None => Duration::ZERO,
            },
            waited: Duration::ZERO,
        }
    }

    /// The Gate's word. It is not asked about what must be answered in any case: our rescue
    /// servers' fetches, what many visitors of another rescue server wait for, and the words that
    /// send a visitor back to where he belongs.
    fn verdict(&mut self, visit: &Visit, work: &Work, ask: &Ask) -> Verdict {
        let is_asked = match visit.kind {
            // It takes nothing of what the Gate gives out.
            Kind::Look => return Verdict::Serve,
            Kind::Fetch | Kind::Home { .. } | Kind::Copy { .. } => false,
            Kind::Rescue { slot } if work.is_asked() => {
                let bytes = ask.file_bytes + ask.overhead_bytes;
                if !self.gate.may_help(self.now, slot, bytes) {
                    // The origin may have it back.
                    return Verdict::Withhold;
                }
                true
            }
            Kind::Own | Kind::Rescue { .. } => work.is_asked(),
            Kind::Redirect { .. } | Kind::Refusal | Kind::Withheld | Kind::PuttingOff => false,
        };
        if is_asked && self.is_fetch_too_many(ask.visitor, work) {
            return Verdict::PutOff;
        }
        if is_asked {
            return self.decide(ask);
        }
        self.gate.note_direct(self.now, ask.file_bytes);
        Verdict::Serve
    }

    /// The Gate's word, where the link has room for one: the Gate grants redirects by the interval,
    /// but resets and retries use the link as well, and a redirect that waits for the link longer
    /// than a visitor waits is lost. So while redirects alone fill the link, nobody else is let in.
    pub(super) fn decide(&mut self, ask: &Ask) -> Verdict {
        let limits = &self.settings.gate;
        let urgent = match &self.link {
            Some(link) => link.urgent_backlog(self.now),
            None => Duration::ZERO,
        };
        let is_let_in = urgent < limits.backlog_max || limits.backlog_max.is_zero();
        // A crawler never waits: where the link is full its Gate puts it off.
        if is_let_in || ask.visitor.is_crawler() {
            return self.gate.decide(self.now, ask);
        }
        match ask.waited < limits.wait_max {
            true => Verdict::Wait,
            false => Verdict::Refuse,
        }
    }

    fn park(
        &mut self,
        connection: &mut Connection,
        token: u64,
        ask: Ask,
        block: Option<Block>,
    ) -> Served {
        let ticket = self.parked.push(token, ask, block, self.now);
        connection.phase = Phase::Parked { ticket };
        self.counters.waiting.set(self.parked.len() as u64);
        if self.next_round.is_none() {
            self.next_round = Some(self.now + Duration::from_millis(5));
        }
        Served::Parked
    }

    fn redirect(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        target: usize,
        file_bytes: u64,
    ) -> Served {
        let mut head = self.pool.take();
        let marked = match visit.comeback.onward() {
            Onward::Plain | Onward::Never => None,
            Onward::Marked => self.marked_target(connection, request, target),
        };
        let marked_path = marked.as_deref().map(std::str::from_utf8);
        let path = match marked_path {
            Some(Ok(marked)) => marked,
            Some(Err(_)) | None => request.sent_target,
        };
        let date = self.date.line();
        let to = (target, request.fields.came_by);
        let written = self
            .redirects
            .write(to, path, date, visit.closing, &mut head);
        if let Some(marked) = marked {
            self.pool.give(marked);
        }
        let Some(slot) = written else {
            // The plan changed between the Gate's word and now.
            self.pool.give(head);
            return self.refuse(connection, request, visit);
        };
        if let Some(redirect) = &self.gate.plan().redirect {
            let cost = (head.len() as u64 + visit.overhead) as f64 * redirect.usable_share;
            let counters = self.counters.slot(slot);
            counters.redirect_accounted.add(cost.round() as u64);
            counters.redirect_file_bytes.add(file_bytes);
        }
        let visit = Visit {
            kind: Kind::Redirect { slot },
            ..*visit
        };
        let answer = Answer::new(head, Body::Empty, visit.kind, 302);
        let wait = self.now.since(visit.began);
        let mut record = self.record(connection, request, visit.kind, wait);
        if let (Some(record), Some(plan)) = (&mut record, &self.gate.plan().redirect) {
            let alias = plan.targets.get(target).map(|target| &target.alias.host);
            let alias = alias.map_or("", |alias| alias.as_str());
            record.rescue_server = levee_observe::LogText::new(alias.as_bytes());
        }
        self.begin(connection, answer, &visit, record);
        Served::Answered
    }

    /// Makes `answer` the connection's, and counts it.
    pub(super) fn begin(
        &mut self,
        connection: &mut Connection,
        mut answer: Answer,
        visit: &Visit,
        record: Option<Box<levee_observe::AccessRecord>>,
    ) {
        answer.began = visit.began;
        answer.visitor = connection.visitor;
        answer.cause = visit.cause;
        answer.came_by = visit.came_by;
        if answer.is_crawlers_fetch() {
            self.crawlers.fetches += 1;
        }
        answer.record = record;
        answer.progress_by = self.now + self.settings.deadlines.progress;
        answer.after = match visit.closing {
            Closing::Stay | Closing::StayExplicitly => After::Next,
            Closing::Close if connection.incoming.is_done() => After::Close,
            Closing::Close => After::Linger,
        };
        if let Some(link) = self.link.as_ref().filter(|_| answer.kind.is_sent()) {
            let packets = packets_of(connection, &answer);
            answer.overhead = visit.overhead;
            answer.admitted = answer.ready() + packets.heads(0, answer.ready()) + visit.overhead;
            link.admit(answer.class(), answer.admitted);
        }
        let of_tls = self.note_charged(connection, visit.overhead);
        self.note_handshake(&answer, of_tls);
        self.note_begun(answer.kind);
        self.set_answer(connection, answer);
    }

    /// Whether the connection can be used again after this request.
    fn closing(&self, request: &Request<'_, '_>) -> Closing {
        let waits_for_body = request.expectation() != Expectation::None;
        let too_long = match request.body {
            BodyLength::None | BodyLength::Chunked => false,
            BodyLength::Known(bytes) => bytes > self.settings.limits.drained_body_bytes,
        };
        // What comes behind a CONNECT is meant for a tunnel, and a TRACE has no body.
        let is_doubtful = match request.method {
            "CONNECT" => true,
            "TRACE" => request.body != BodyLength::None,
            _ => false,
        };
        match self.settled {
            // A stream has one request anyway; its session is told to go by itself.
            _ if request.version == Version::Http2 => Closing::Stay,
            Settled::Keep if is_doubtful => Closing::Close,
            Settled::Close => Closing::Close,
            Settled::Keep if waits_for_body || too_long => Closing::Close,
            Settled::Keep => Closing::for_request(request),
        }
    }
}

/// Hash of the host and the path, of a request for which `ask` was made.
pub(super) fn hash_without_query(
    hasher: &SeedableRandomState,
    request: &Request<'_, '_>,
    ask: &Ask,
) -> u64 {
    match request.target.len() == request.path.len() {
        true => ask.resource_hash,
        // What stands in it of the host stays.
        false => ask.resource_hash ^ hasher.hash_one(request.target) ^ ask.path_hash,
    }
}

/// Whether a request for an origin comes from another of its rescue servers.
fn shows_key(origin: &OriginRoute, request: &Request<'_, '_>) -> bool {
    match (&origin.homes, request.fields.home_key) {
        (Some(homes), Some(shown)) => homes.key().matches(shown),
        (None, _) | (_, None) => false,
    }
}

/// Whether a rescue server may answer in our place (R6).
fn redirectability(
    visit: &Visit,
    work: &Work,
    request: &Request<'_, '_>,
    shared: &SharedCookies,
) -> Redirectability {
    let may = work.is_shareable() && is_free_to_go(visit, work, request, shared);
    match (may, request.fields.came_by) {
        (true, Scheme::Http) => Redirectability::Allowed,
        (true, Scheme::Https) => Redirectability::ByHttps,
        (false, _) => Redirectability::Never,
    }
}

/// The same, whatever is asked for.
fn is_free_to_go(
    visit: &Visit,
    work: &Work,
    request: &Request<'_, '_>,
    shared: &SharedCookies,
) -> bool {
    let fields = &request.fields;
    let is_internal = request.target.starts_with("/.levee/") || is_challenge(request);
    visit.kind == Kind::Own
        && visit.comeback.onward() != Onward::Never
        && request.is_get_or_head()
        && request.body == BodyLength::None
        // No client follows a redirect with its handshake.
        && (request.upgrade == Upgrade::None || !work.is_miss())
        && fields.freshness == crate::request::Freshness::Any
        && !request.must_stay()
        && !request.has_credentials(shared)
        && !is_internal
}
