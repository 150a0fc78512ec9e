//! The end of a response: latency, log line, buffers.

use std::sync::mpsc::TrySendError;
use std::time::Duration;

use levee_control::{RecognisedBy, Visitor};
use levee_observe::{AccessRecord, CacheResult, LogText, LogVersion, RequestClass, VisitorKind};
use levee_vocab::Timestamp;
use levee_wire::BackReason;

use super::Core;
use crate::answer::{Answer, Kind};
use crate::connection::Connection;
use crate::flight;
use crate::request::{Request, Version};

impl Core {
    /// Ends `answer`, whole or not, at `ended`. It has nothing left to send or to charge.
    pub(super) fn settle(&mut self, answer: &mut Answer, ended: Timestamp) {
        if let Some(link) = &self.link {
            link.settle(answer.class(), std::mem::take(&mut answer.admitted));
        }
        if answer.is_crawlers_fetch() {
            self.crawlers.fetches = self.crawlers.fetches.saturating_sub(1);
        }
        let latency = ended.since(answer.began);
        let is_tunnel = answer.flow.as_ref().is_some_and(|flow| flow.is_tunnel());
        if !is_tunnel && answer.kind.is_sent() {
            self.counters.note_end(answer.status, latency);
        }
        if answer.flow.as_ref().is_some_and(|flow| flow.is_sent_back()) {
            self.counters.sent_back.note(BackReason::Missing);
        }
        let fetched = answer.flow.as_ref().filter(|flow| flow.is_fetched());
        if let Some(flow) = fetched.filter(|_| !is_tunnel) {
            let share = 1.0 / 16.0;
            self.usual_bytes += (answer.sent as f64 - self.usual_bytes) * share;
            if let Some(record) = &mut answer.record {
                record.cache = cache_result(flow.result());
            }
        }
        if let Some(mut record) = answer.record.take() {
            record.status = answer.status;
            record.bytes = answer.sent;
            record.total = latency;
            self.log(*record);
        }
        self.pool.give(std::mem::take(&mut answer.head));
    }

    /// Begins the log line of a request, where lines are wanted.
    pub(super) fn record(
        &mut self,
        connection: &Connection,
        request: &Request<'_, '_>,
        kind: Kind,
        wait: Duration,
    ) -> Option<Box<AccessRecord>> {
        self.log.as_ref().filter(|_| kind.is_sent())?;
        self.request_number += 1;
        let remote = self.visitor(connection, request);
        Some(Box::new(AccessRecord {
            remote,
            at: self.date.now(),
            method: LogText::new(request.method.as_bytes()),
            target: LogText::new(request.target.as_bytes()),
            version: match request.version {
                Version::Http10 => LogVersion::Http10,
                Version::Http11 => LogVersion::Http11,
                Version::Http2 => LogVersion::Http2,
            },
            status: 0,
            bytes: 0,
            referer: LogText::new(request.fields.referer.unwrap_or_default()),
            user_agent: LogText::new(request.fields.user_agent.unwrap_or_default()),
            host: LogText::new(request.authority.as_bytes()),
            cache: CacheResult::NotAsked,
            class: class(kind),
            visitor: visitor_kind(connection.visitor),
            rescue_server: LogText::EMPTY,
            wait,
            total: Duration::ZERO,
            request_id: self.request_number,
        }))
    }

    fn log(&self, record: AccessRecord) {
        let Some(log) = &self.log else { return };
        match log.try_send(record) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.counters.log_lines_lost.add(1);
            }
        }
    }
}

const fn class(kind: Kind) -> RequestClass {
    match kind {
        Kind::Own | Kind::Look => RequestClass::Page,
        Kind::Fetch | Kind::Home { .. } => RequestClass::Fetch,
        Kind::Copy { .. } => RequestClass::Copy,
        Kind::Redirect { .. } => RequestClass::Redirect,
        Kind::Rescue { .. } => RequestClass::Rescue,
        Kind::Refusal | Kind::Withheld | Kind::PuttingOff => RequestClass::Refusal,
    }
}

const fn visitor_kind(visitor: Visitor) -> VisitorKind {
    match visitor {
        Visitor::Reader => VisitorKind::Reader,
        Visitor::Crawler(RecognisedBy::Name) => VisitorKind::CrawlerByName,
        Visitor::Crawler(RecognisedBy::Behaviour) => VisitorKind::CrawlerByBehaviour,
    }
}

const fn cache_result(result: flight::CacheResult) -> CacheResult {
    match result {
        flight::CacheResult::Hit | flight::CacheResult::Revalidated => CacheResult::Hit,
        flight::CacheResult::Stale => CacheResult::Stale,
        flight::CacheResult::Miss | flight::CacheResult::Passed => CacheResult::Miss,
        flight::CacheResult::Collapsed => CacheResult::Collapsed,
    }
}
