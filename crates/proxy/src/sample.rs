//! A reading of everything that the cores count: what the control interval takes differences of.

use std::collections::BTreeMap;

use levee_control::Arrivals;

use crate::histogram::LatencyCounts;
use crate::missing::{CameBack, MarkedVisitors, MissingCopy};

/// What the cores noted since they were last asked for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreNotes {
    /// What each was asked for.
    pub arrivals: Vec<Arrivals>,
    /// Copies that rescue servers lack, as visitors brought it back.
    pub missing: Vec<MissingCopy>,
    /// Hot resources that rescue servers have fetched, and so have as they are.
    pub fetched: Vec<MissingCopy>,
    /// Visitors whom rescue servers sent back, by core.
    pub came_back: Vec<CameBack>,
    /// Those who came back without a signature, and those whom we marked.
    pub marked: MarkedVisitors,
}

/// Sums over all cores since the start, and what is true now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Requests whose head was read.
    pub requests: u64,
    /// True bytes sent, heads too.
    pub bytes: u64,
    /// Responses for the site's own names, redirects apart; also fetches, refusals and complaints.
    pub own_requests: u64,
    /// Their bytes.
    pub own_bytes: u64,
    /// Those of them that went to readers who came by HTTPS, without what our own drill caused.
    pub https_own_bytes: u64,
    /// Redirects to rescue servers.
    pub redirects: u64,
    /// Their true bytes, without the overhead of connections.
    pub redirect_bytes: u64,
    /// Responses for origins that we rescue, or rescued.
    pub rescue_requests: u64,
    /// Their bytes.
    pub rescue_bytes: u64,
    /// Fetches by our rescue servers, also in `own_requests`; and by other rescue servers of an
    /// origin, which ask us as an object's home, also in `rescue_requests`.
    pub fetches_served: u64,
    /// Their bytes; also in `own_bytes`.
    pub fetch_bytes: u64,
    /// Bytes that our own drill caused, redirects apart; also in `own_bytes`.
    pub drill_bytes: u64,
    /// Turned away for lack of capacity: with 503, or back to the origin.
    pub refused: u64,
    /// Closed without an answer for lack of capacity.
    pub dropped: u64,
    /// Visitors of origins who were turned away, with an answer or without, because their origin
    /// had had what the operator gives it.
    pub withheld: u64,
    /// Bytes of those answers; also in `own_bytes`.
    pub withheld_bytes: u64,
    /// What crawlers caused.
    pub crawlers: CrawlerSample,
    /// Closed to make room for a new one: idle, or of a visitor who was too slow.
    pub evicted: u64,
    /// Refused for their framing.
    pub bad_requests: u64,
    /// Responses with a status from 400 to 499.
    pub client_errors: u64,
    /// Responses with a status from 500 to 599.
    pub server_errors: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub connections: u64,
    /// Handshakes of visitors who came by HTTPS.
    pub handshakes: Handshakes,
    /// Requests that wait for capacity now.
    pub waiting: u64,
    /// Connections that are being answered now.
    pub answering: u64,
    /// Those of them whose bytes the kernel does not take now.
    pub held_up: u64,
    /// Of those, the ones that wait for their visitor to read, about.
    pub held_up_by_visitors: u64,
    /// Lines of the access log that were lost because its writer could not keep up.
    pub log_lines_lost: u64,
    /// Connections that were closed because of a bug of ours.
    pub panics: u64,
    /// Cores that ended because of a bug of ours, or because the system refused them something.
    /// The others serve on.
    pub lost_cores: u64,
    /// Connections that speak HTTP/2, since the start.
    pub http2_accepted: u64,
    /// Requests by HTTP/2, since the start.
    pub http2_requests: u64,
    /// Requests by HTTP/2 that are under way.
    pub http2_streams: u64,
    /// Visits that were not redirected only because nobody may keep the page.
    pub kept_visits: u64,
    /// Requests with the word of a rescue server that sent the visitor back.
    pub comebacks: Comebacks,
    /// Visitors of origins who were sent back.
    pub sent_back: SentBack,
    /// Time from a complete head to the last byte of the response.
    pub latency: LatencyCounts,
    /// By slot of the link.
    pub slots: BTreeMap<u8, SlotSample>,
    /// The link, where its rate is enforced.
    pub link: Option<LinkSample>,
}

/// Requests that came back from a rescue server since the start, by what their word was worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comebacks {
    /// Signed by a rescue server of ours a moment ago.
    pub believed: u64,
    /// Signed by somebody else, too long ago, or for another URL.
    pub doubtful: u64,
    /// Without a signature, or no word at all.
    pub unsigned: u64,
    /// With a mark of ours, which they got because of one of the other two.
    pub returned: u64,
}

/// Visitors of origins who were sent back since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBack {
    /// The object was not here and could not be fetched.
    pub missing: u64,
    /// There was no capacity left.
    pub busy: u64,
    /// The rescue was over; also those whose request only the origin can answer.
    pub over: u64,
}

/// What crawlers caused since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrawlerSample {
    /// Requests of those that say what they are.
    pub by_name: u64,
    /// Requests of those that were recognised by what they do.
    pub by_behaviour: u64,
    /// Bytes for our own names, with those that a crawler got before it was recognised.
    pub own_bytes: u64,
    /// The same for origins that we rescue.
    pub rescue_bytes: u64,
    /// Told to come back later.
    pub put_off: u64,
    /// Closed without an answer, because too many were told already.
    pub closed: u64,
    /// Open connections now whose last request was a crawler's.
    pub connections: u64,
    /// Blocks of addresses that are taken for crawlers' now, by core.
    pub blocks: u64,
}

/// TLS handshakes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// Done with a signature.
    pub full: u64,
    /// Done with a ticket of an earlier connection.
    pub resumed: u64,
    /// Begun and not finished: nonsense, no version or cipher in common, or too slow.
    pub failed: u64,
    /// Those done in TLS 1.2.
    pub tls12: u64,
    /// Those done in TLS 1.3.
    pub tls13: u64,
}

/// What was counted for one link slot since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSample {
    /// Responses for the origin.
    pub rescue_requests: u64,
    /// Their bytes.
    pub rescue_bytes: u64,
    /// Redirects to the rescue server.
    pub redirects: u64,
    /// Their true bytes.
    pub redirect_bytes: u64,
    /// A_redi of each of them: (bytes + overhead) * U.
    pub redirect_accounted: u64,
    /// Size of the files that were redirected: d_redi.
    pub redirect_file_bytes: u64,
}

/// The outbound link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSample {
    /// Bytes that have left since the start, with overhead.
    pub carried: u64,
    /// Most bytes that left within any one second.
    pub peak: u64,
    /// Seconds that the link needs for what is admitted but not yet sent.
    pub backlog: f64,
}
