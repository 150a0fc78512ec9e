//! What is for our rescue servers only: their fetches, and the log lines that they hand back.

use bytes::{Bytes, BytesMut};
use levee_control::Ask;
use levee_vocab::LinkId;

use super::Core;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::{Answer, Body};
use crate::connection::{Connection, Introduction};
use crate::flow::{Flow, Gathering};
use crate::request::{BodyLength, Request};
use crate::response::Plain;
use crate::router::Route;

/// Where rescue servers post the lines of their access logs that are ours.
const ACCESS_LOG: &str = "/.levee/access-log";
/// Most bytes of lines in one request.
const LINES_BYTES_MAX: u64 = 1 << 20;

impl Core {
    /// The link of the rescue server that `request` comes from, if it shows a valid key.
    pub(super) fn fetch_link(&self, request: &Request<'_, '_>) -> Option<LinkId> {
        let shown = request.fields.fetch_key?;
        let keys = self.gate.plan().fetch_keys.iter();
        keys.filter(|(_, key)| key.matches(shown))
            .map(|(link, _)| *link)
            .next()
    }

    /// Notes that a rescue server fetches a resource of which there are copies: if we rewrote it
    /// for that one, it has the page as it is from now on. What we read ourselves to push it is
    /// no fetch.
    pub(super) fn note_fetch(
        &mut self,
        connection: &Connection,
        request: &Request<'_, '_>,
        (route, ask): (&Route, &Ask),
    ) {
        if ask.copies.holders != 0
            && connection.introduction != Introduction::Errand
            && request.path.len() == request.target.len()
            && let Some(link) = self.fetch_link(request)
        {
            let host = route.resource_host(&self.sites, request.host);
            self.missing.note_fetched(link, host, request.path);
        }
    }

    /// What a request for our own paths gets.
    pub(super) fn internal(&self, request: &Request<'_, '_>) -> Work {
        if request.path != ACCESS_LOG || self.handed_over.is_none() {
            return Work::Plain(Plain::new(404));
        }
        let Some(link) = self.fetch_link(request) else {
            return Work::Plain(Plain::new(403));
        };
        match request.body {
            _ if request.method != "POST" => {
                Work::Plain(Plain::with(405, "Allow: POST\r\n".into()))
            }
            BodyLength::Known(bytes) if bytes > LINES_BYTES_MAX => Work::Plain(Plain::new(413)),
            BodyLength::None | BodyLength::Known(_) | BodyLength::Chunked => Work::HandOver(link),
        }
    }

    /// Begins to read handed-over lines; they are answered when they are whole.
    pub(super) fn take_over(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        link: LinkId,
    ) -> Served {
        let mut answer = Answer::new(self.pool.take(), Body::Empty, visit.kind, 0);
        answer.flow = Some(Box::new(Flow::gather(
            Gathering {
                link,
                lines: BytesMut::new(),
                bytes_max: LINES_BYTES_MAX,
            },
            visit.closing,
            request.expectation(),
        )));
        self.begin(connection, answer, visit, None);
        Served::Answered
    }

    /// Passes whole lines on.
    pub(super) fn hand_over(&self, link: LinkId, lines: Bytes) {
        if let Some(handed_over) = &self.handed_over {
            handed_over(link, lines);
        }
    }
}
