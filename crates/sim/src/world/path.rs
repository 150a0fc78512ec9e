//! The path of a request: from a visitor to a site, through its Gate, and back.

use std::sync::Arc;
use std::time::Duration;

use levee_control::{
    Ask, Copies, Destination, Gate, Onward, OriginRoute, PuttingOff, Redirectability, Verdict,
    Visitor,
};
use levee_vocab::{HostName, Timestamp};

use crate::world::event::{Event, Inner};
use crate::world::meter::Account;
use crate::world::network::Place;
use crate::world::pacer::SendClass;
use crate::world::request::{Answer, RequestId};
use crate::world::site::{Job, Poll};
use crate::world::way_back::Word;
use crate::world::{SiteId, World};

/// Bytes of a refusal, or of any other answer without a body.
const HEAD_BYTES: u64 = 180;

/// How often requests that wait are looked at, beside whenever a piece has left.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// What became of a request that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is on its way.
    Done,
    /// It has to wait for capacity.
    Waits,
}

/// What the name means that a request asks for.
enum Way {
    Own,
    Rescued(Arc<OriginRoute>),
    /// We rescue it no longer, or do not know it any more.
    Over(Arc<OriginRoute>),
    Unknown,
}

impl Way {
    /// Where a name that is not the site's own leads.
    fn of(destination: Destination<'_>) -> Self {
        match destination {
            Destination::NotOurs => Self::Unknown,
            Destination::Rescued(route) => Self::Rescued(Arc::clone(route)),
            Destination::Restored(route, _) | Destination::Expired(route) => {
                Self::Over(Arc::clone(route))
            }
        }
    }
}

impl World {
    pub(crate) fn request_arrives(&mut self, site: SiteId, id: RequestId) {
        if self.sites[site.0].running().is_none() {
            return self.fail(id);
        }
        // A site that was frozen finds connections that visitors have closed long ago.
        if self.has_left(id) {
            return self.fail(id);
        }
        self.count_arrival(site, id);
        self.note_arrival(site, id);
        let running = self.sites[site.0].running();
        let is_first = running.is_some_and(|running| running.parked.is_empty());
        // Crawlers never wait, and so not behind those who do.
        let request = self.requests.find(id);
        let is_crawler = request.is_some_and(|request| request.visitor.is_crawler());
        if (is_first || is_crawler) && self.consider(site, id) == Settled::Done {
            return;
        }
        let now = self.now;
        if let Some(request) = self.requests.find_mut(id) {
            request.parked = Some(now);
        }
        if let Some(running) = self.sites[site.0].running_mut() {
            running.parked.push_back(id);
        }
        self.plan_poll(site);
    }

    fn count_arrival(&mut self, site: SiteId, id: RequestId) {
        let visitor = self.requests.find(id).map(|request| request.visitor);
        if let (Some(visitor), Some(running)) = (visitor, self.sites[site.0].running_mut()) {
            running.meter.count_arrival(visitor);
        }
    }

    /// Looks at the requests that wait, first come first served, until one has to wait on.
    pub(crate) fn poll_parked(&mut self, site: SiteId) {
        loop {
            let Some(running) = self.sites[site.0].running() else {
                return;
            };
            let Some(&first) = running.parked.front() else {
                return;
            };
            if self.has_left(first) {
                self.fail(first);
            } else if self.consider(site, first) == Settled::Waits {
                return;
            }
            if let Some(running) = self.sites[site.0].running_mut() {
                running.parked.pop_front();
            }
        }
    }

    pub(crate) fn poll_parked_again(&mut self, site: SiteId) {
        if let Some(running) = self.sites[site.0].running_mut() {
            running.poll = Poll::Idle;
        }
        self.poll_parked(site);
        self.plan_poll(site);
    }

    fn plan_poll(&mut self, site: SiteId) {
        if let Some(running) = self.sites[site.0].running_mut()
            && !running.parked.is_empty()
            && running.poll == Poll::Idle
        {
            running.poll = Poll::Planned;
            self.plan_inside(site, POLL_PERIOD, Inner::PollParked);
        }
    }

    /// Asks the Gate about a request and does what it says.
    fn consider(&mut self, site: SiteId, id: RequestId) -> Settled {
        let now = self.clock_of(site);
        let Some(request) = self.requests.find(id) else {
            return Settled::Done;
        };
        let waited = request
            .parked
            .map_or(Duration::ZERO, |since| self.now.since(since));
        let settings = &self.sites[site.0].settings;
        let own = settings.parameters.site.host.clone();
        let overhead = settings.parameters.connection_overhead;
        let redirect_bytes = settings.redirect_bytes;
        let Some(running) = self.sites[site.0].running_mut() else {
            return Settled::Done;
        };
        let plan = running.gate.plan().clone();
        let way = if request.host == own {
            Way::Own
        } else {
            Way::of(plan.hosts.destination(request.host.as_str()))
        };
        let redirectable = match way {
            Way::Own => match request.word.at_origin(&plan.fetch_keys).onward() {
                Onward::Plain | Onward::Marked => request.redirectability,
                Onward::Never => Redirectability::Never,
            },
            Way::Rescued(_) => Redirectability::Never,
            Way::Over(route) => {
                running.gate.note_direct(now, redirect_bytes);
                let word = request.word.back(&route).unwrap_or(Word::Unsigned);
                return self.redirect_back(site, id, (route.origin.host.clone(), word));
            }
            Way::Unknown => {
                running.gate.note_direct(now, HEAD_BYTES);
                return self.turn_away(site, id, Verdict::Refuse, Answer::Broken);
            }
        };
        let ask = Ask {
            visitor: request.visitor,
            redirectable,
            file_bytes: request.bytes,
            redirect_bytes,
            overhead_bytes: overhead,
            path_hash: hash_of(request.file),
            resource_hash: 0,
            copies: match redirectable {
                Redirectability::Allowed | Redirectability::ByHttps => {
                    running.copies_of(request.file)
                }
                Redirectability::Never => Copies::NONE,
            },
            backlog: running.pacer.backlog(),
            waited,
        };
        let verdict = decide(&mut running.gate, now, &way, &ask);
        if let Verdict::Redirect { target } = verdict {
            self.watch.check_redirect(now, site, &plan, target, &ask);
        }
        self.carry_out(site, id, verdict, way)
    }

    /// Does what the Gate said.
    fn carry_out(&mut self, site: SiteId, id: RequestId, verdict: Verdict, way: Way) -> Settled {
        match (verdict, way) {
            (Verdict::Serve, Way::Rescued(route)) => self.serve_rescued(site, id, &route),
            (Verdict::Serve, Way::Own | Way::Over(_) | Way::Unknown) => self.serve_own(site, id),
            (Verdict::Redirect { target }, _) => self.redirect(site, id, target),
            (Verdict::Wait, _) => return Settled::Waits,
            (Verdict::Refuse | Verdict::Withhold, Way::Rescued(route)) => {
                let word = self
                    .requests
                    .find(id)
                    .and_then(|request| request.word.back(&route));
                let answer = match word {
                    Some(word) => Answer::Redirect(route.origin.host.clone(), word),
                    None => Answer::Refused,
                };
                return self.turn_away(site, id, verdict, answer);
            }
            (Verdict::Refuse | Verdict::Withhold, _) => {
                return self.turn_away(site, id, verdict, Answer::Refused);
            }
            (Verdict::PutOff, _) => return self.put_off(site, id),
        }
        Settled::Done
    }

    fn serve_own(&mut self, site: SiteId, id: RequestId) {
        let Some(request) = self.requests.find(id) else {
            return;
        };
        let bytes = request.bytes;
        let account = match request.visitor {
            Visitor::Reader => Account::Own,
            Visitor::Crawler(_) => Account::Crawler,
        };
        let job = Job::Response {
            request: id,
            account: Some(account),
            answer: Answer::Whole,
        };
        self.admit(site, SendClass::Page, bytes, job);
    }

    fn redirect(&mut self, site: SiteId, id: RequestId, target: usize) {
        let settings = &self.sites[site.0].settings;
        let bytes = settings.redirect_bytes;
        let accounted = settings.parameters.redirect_cost(bytes) as u64;
        let Some(request) = self.requests.find(id) else {
            return;
        };
        let file_bytes = request.bytes;
        // Who is redirected although he came back takes the origin's mark along.
        let word = match request.word {
            Word::None => Word::None,
            Word::Signed(_) | Word::Unsigned | Word::Marked => Word::Marked,
        };
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        let plan = running.gate.plan();
        let Some(target) = plan
            .redirect
            .as_ref()
            .and_then(|redirect| redirect.targets.get(target))
        else {
            return;
        };
        let host = target.alias.host.clone();
        running
            .meter
            .count_redirect(target.link, accounted, file_bytes);
        let job = Job::Response {
            request: id,
            account: None,
            answer: Answer::Redirect(host, word),
        };
        self.admit(site, SendClass::Redirect, bytes, job);
    }

    fn redirect_back(
        &mut self,
        site: SiteId,
        id: RequestId,
        (origin, word): (HostName, Word),
    ) -> Settled {
        let bytes = self.sites[site.0].settings.redirect_bytes;
        let job = Job::Response {
            request: id,
            account: Some(Account::Own),
            answer: Answer::Redirect(origin, word),
        };
        self.admit(site, SendClass::Redirect, bytes, job);
        Settled::Done
    }

    /// Answers with an error that is nobody's refusal, such as 502.
    pub(crate) fn break_off(&mut self, site: SiteId, id: RequestId) {
        self.turn_away(site, id, Verdict::Refuse, Answer::Broken);
    }

    /// Answers without a body. While the link cannot even carry that, the connection is closed.
    fn turn_away(
        &mut self,
        site: SiteId,
        id: RequestId,
        verdict: Verdict,
        answer: Answer,
    ) -> Settled {
        let parameters = &self.sites[site.0].settings.parameters;
        let accounted = parameters.redirect_cost(HEAD_BYTES) as u64;
        let backlog_max = self.sites[site.0].settings.limits.backlog_max;
        if let Some(running) = self.sites[site.0].running_mut() {
            if running.pacer.backlog_of(SendClass::Redirect) >= backlog_max {
                if verdict != Verdict::Withhold {
                    running.meter.count_refusal(0);
                }
                self.fail(id);
                return Settled::Done;
            }
            match answer {
                // Back to the origin, which is as little as a refusal.
                Answer::Refused | Answer::Redirect(..) if verdict != Verdict::Withhold => {
                    running.meter.count_refusal(accounted);
                }
                Answer::Refused | Answer::Redirect(..) | Answer::Broken | Answer::Whole => {
                    running.meter.count_bytes(Account::Own, accounted);
                }
            }
        }
        let job = Job::Response {
            request: id,
            account: None,
            answer,
        };
        self.admit(site, SendClass::Redirect, HEAD_BYTES, job);
        Settled::Done
    }

    /// Tells a crawler to come back later while its share lasts for that, else closes its
    /// connection.
    fn put_off(&mut self, site: SiteId, id: RequestId) -> Settled {
        let now = self.clock_of(site);
        let Some(running) = self.sites[site.0].running_mut() else {
            return Settled::Done;
        };
        match running.gate.put_off(now, HEAD_BYTES) {
            PuttingOff::Told => {
                let job = Job::Response {
                    request: id,
                    account: Some(Account::Crawler),
                    answer: Answer::Refused,
                };
                self.admit(site, SendClass::Redirect, HEAD_BYTES, job);
            }
            PuttingOff::Closed => self.fail(id),
        }
        Settled::Done
    }

    pub(crate) fn admit(&mut self, site: SiteId, class: SendClass, bytes: u64, job: Job) {
        let overhead = self.sites[site.0].settings.parameters.connection_overhead;
        if let Some(running) = self.sites[site.0].running_mut()
            && let Some(after) = running.pacer.admit(class, bytes, overhead, job)
        {
            self.plan_inside(site, after, Inner::PieceLeft);
        }
    }

    pub(crate) fn piece_left(&mut self, site: SiteId) {
        let Some(running) = self.sites[site.0].running_mut() else {
            return;
        };
        let meter = &mut running.meter;
        let (finished, next) = running.pacer.advance(|job, bytes| match job {
            Job::Response {
                account: Some(account),
                ..
            } => meter.count_bytes(*account, bytes),
            Job::Response { account: None, .. } => {}
            Job::Fetched { account, .. } => meter.count_bytes(*account, bytes),
        });
        if let Some(after) = next {
            self.plan_inside(site, after, Inner::PieceLeft);
        }
        if let Some(job) = finished {
            self.response_left(site, job);
        }
        self.poll_parked(site);
    }

    fn response_left(&mut self, site: SiteId, job: Job) {
        match job {
            Job::Response {
                request,
                account,
                answer,
            } => {
                if let (Some(account), Some(running)) = (account, self.sites[site.0].running_mut())
                {
                    running.meter.count_request(account);
                }
                let event = Event::Answered { request, answer };
                self.carry(Place::Site(site), Place::Visitors, event);
            }
            Job::Fetched {
                fetcher,
                object,
                brought,
                account,
            } => {
                let here = &mut self.sites[site.0];
                here.totals.fetches += u64::from(account == Account::Own);
                if let Some(running) = here.running_mut() {
                    running.meter.count_request(account);
                }
                self.answer_fetch(site, fetcher, object, Some(brought));
            }
        }
    }
}

/// The Gate's word. What the operator gives an origin is asked about once, when the visitor comes.
fn decide(gate: &mut Gate, now: Timestamp, way: &Way, ask: &Ask) -> Verdict {
    let is_given = match way {
        Way::Rescued(route) => {
            let bytes = ask.file_bytes + ask.overhead_bytes;
            !ask.waited.is_zero() || gate.may_help(now, route.slot, bytes)
        }
        Way::Own | Way::Over(_) | Way::Unknown => true,
    };
    match is_given {
        true => gate.decide(now, ask),
        false => Verdict::Withhold,
    }
}

/// Spreads the numbers of files over the ring of the large ones (SplitMix64's finish).
fn hash_of(file: usize) -> u64 {
    levee_vocab::Random::from_seed(file as u64).next_bits()
}
