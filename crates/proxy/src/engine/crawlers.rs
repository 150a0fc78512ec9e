//! What crawlers get: they are served while their ration lasts, and else put off, at once and
//! cheaply. Nobody waits behind them.

use std::hash::BuildHasher;

use foldhash::fast::SeedableRandomState;
use levee_control::{Ask, Block, PuttingOff, RecognisedBy, Visitor};

use super::Core;
use super::challenge::is_challenge;
use super::serve::{Served, Visit, hash_without_query};
use super::work::Work;
use crate::answer::{Answer, Body, Kind};
use crate::connection::Connection;
use crate::crawlers::{Finding, Relayed, Traits, certainty, is_page, page_query};
use crate::forwarded::is_trusted;
use crate::redirect::write_putting_off;
use crate::request::Request;
use crate::response::Closing;
use crate::transport::Transport;

/// What tells crawlers where not to go must never be kept from them: one that does not get it may
/// take everything for allowed (RFC 9309 section 2.3.1.3).
const ROBOTS: &str = "/robots.txt";

impl Core {
    /// Finds out whose request it is that `ask` is about, and counts it. Gives the block that it
    /// comes from, where that says something.
    pub(super) fn find_visitor(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        kind: Kind,
        ask: &mut Ask,
    ) -> Option<Block> {
        let is_visitors = matches!(kind, Kind::Own | Kind::Rescue { .. });
        // Authorities call themselves much as crawlers do, and without them HTTPS ends one day.
        let found = match is_visitors && request.path != ROBOTS && !is_challenge(request) {
            true => self.judge(connection, request, ask),
            false => Finding::READER,
        };
        if found.visitor != connection.visitor || found.visitor.is_crawler() {
            self.note_visitor(connection, found.visitor);
        }
        // All that follows is about crawlers.
        if found.visitor == Visitor::Reader {
            return found.block;
        }
        let given_before = match matches!(kind, Kind::Rescue { .. }) {
            true => &self.counters.crawler_rescue_bytes,
            false => &self.counters.crawler_own_bytes,
        };
        given_before.add(found.before);
        ask.visitor = found.visitor;
        if let Some(link) = &self.link {
            ask.backlog = link.backlog_for(found.visitor, self.now);
        }
        found.block
    }

    fn judge(&mut self, connection: &Connection, request: &Request<'_, '_>, ask: &Ask) -> Finding {
        let Some(rules) = self.sites.crawlers() else {
            return Finding::READER;
        };
        let address = self.visitor(connection, request);
        let is_proxys = is_trusted(self.sites.trusted(), address);
        let relayed = match address == connection.peer.ip() {
            _ if is_proxys => Relayed::Yes,
            true => request.fields.relayed,
            false => Relayed::No,
        };
        let agent = request.fields.user_agent.unwrap_or_default();
        let hasher = &self.hasher;
        let page = || {
            let destination = request.fields.fetch_destination;
            let asks_for_page = request.is_get_or_head() && is_page(request.path, destination);
            asks_for_page.then(|| page(hasher, request, ask))
        };
        let traits = Traits {
            agent,
            agent_hash: hasher.hash_one(agent),
            address,
            certainty: certainty(address, relayed),
            bytes: ask.file_bytes,
        };
        self.crawlers.find(self.now, rules, &traits, page)
    }

    fn note_visitor(&self, connection: &mut Connection, visitor: Visitor) {
        let counters = &self.counters;
        match visitor {
            Visitor::Reader => {}
            Visitor::Crawler(RecognisedBy::Name) => counters.crawlers_by_name.add(1),
            Visitor::Crawler(RecognisedBy::Behaviour) => counters.crawlers_by_behaviour.add(1),
        }
        self.renew_visitor(connection, visitor);
    }

    /// The last request of a connection is `visitor`'s.
    pub(super) fn renew_visitor(&self, connection: &mut Connection, visitor: Visitor) {
        self.note_visitor_gone(&connection.socket, connection.visitor);
        connection.visitor = visitor;
        let open = &self.counters.crawler_connections;
        match (&connection.socket, visitor) {
            (Transport::Plain(_) | Transport::Tls(_), Visitor::Crawler(_)) => {
                open.set(open.read() + 1);
            }
            (Transport::Plain(_) | Transport::Tls(_), Visitor::Reader)
            | (Transport::Stream(_), _) => {}
        }
    }

    /// Whether `work` would be one fetch for crawlers too many.
    pub(super) fn is_fetch_too_many(&self, visitor: Visitor, work: &Work) -> bool {
        let most = self
            .sites
            .crawlers()
            .map_or(usize::MAX, |rules| rules.fetches_max);
        visitor.is_crawler() && work.is_miss() && self.crawlers.fetches >= most
    }

    /// A connection is closed whose last request was `visitor`'s.
    pub(super) fn note_visitor_gone(&self, socket: &Transport, visitor: Visitor) {
        match (socket, visitor) {
            (Transport::Plain(_) | Transport::Tls(_), Visitor::Crawler(_)) => {
                let open = &self.counters.crawler_connections;
                open.set(open.read().saturating_sub(1));
            }
            // A stream is not counted: it is no connection of its own.
            (Transport::Plain(_) | Transport::Tls(_), Visitor::Reader)
            | (Transport::Stream(_), _) => {}
        }
    }

    /// Tells a crawler to come back later: 429 (RFC 6585 section 4), for it is this visitor who
    /// asks too much, and others are served; or closes its connection where too many are told.
    pub(super) fn put_off(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
    ) -> Served {
        let mut head = self.pool.take();
        write_putting_off(self.date.line(), &mut head);
        let cost = head.len() as u64 + visit.overhead;
        match self.gate.put_off(self.now, cost) {
            PuttingOff::Told => {}
            PuttingOff::Closed => {
                self.pool.give(head);
                self.counters.crawlers_closed.add(1);
                self.charge_reset();
                return Served::Dropped;
            }
        }
        let visit = Visit {
            kind: Kind::PuttingOff,
            closing: Closing::Close,
            ..*visit
        };
        let answer = Answer::new(head, Body::Empty, visit.kind, 429);
        let record = self.record(connection, request, visit.kind, self.now.since(visit.began));
        self.begin(connection, answer, &visit, record);
        Served::Answered
    }
}

/// Hash of the page that is asked for, with those parameters that belong to it.
fn page(hasher: &SeedableRandomState, request: &Request<'_, '_>, ask: &Ask) -> u64 {
    let page = hash_without_query(hasher, request, ask);
    match request.target.len() == request.path.len() {
        true => page,
        false => page_query(request.target)
            .fold(page, |hash, parameter| hasher.hash_one((hash, parameter))),
    }
}
