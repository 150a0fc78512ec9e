//! One request to a source, until the head of its response.
//!
//! ```text
//!  claim an upstream ─▶ connection, idle or new ─▶ send ─▶ head
//!        ▲                    │ none                 │ none
//!        └─── the next one ◀──┴── nothing was sent, or it may be sent twice
//! ```
//!
//! A reused connection may have been closed by its other end in the meantime. Where nothing was
//! sent on it, or the request may be sent twice, the request goes out once more on a fresh
//! connection. Where there are several upstreams, a request that failed goes to another: always
//! where nothing was sent; where it was, only if it has no body and an idempotent method, and if
//! not too many are repeated already. A request that may have had its effect is never repeated (RFC
//! 9110 section 9.2.2).

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap};
use http::response::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use levee_control::{RetryGrant, UpstreamId};
use tokio::time::{Instant, timeout, timeout_at};

use super::counters::count;
use super::dial::Way;
use super::pool::{History, Lease, Unanswered};
use super::request::{Upload, build};
use super::response::Arrival;
use super::task::Fetch;
use super::{early, tunnel};
use crate::flight::{BodyReceiver, Fault, FetchError, Place, Purpose, UploadWatch};
use crate::upstream::Claim;

/// The head of a response, and the connection on which its body comes.
pub(super) struct Reply {
    pub parts: Parts,
    pub body: Incoming,
    pub lease: Lease,
    pub arrival: Arrival,
}

/// A response, and how long after its request it came.
type Timed = (Response<Incoming>, Duration);

/// Why an attempt came to nothing.
pub(super) struct Failed {
    pub error: FetchError,
    /// The request's body, where nothing was sent.
    unsent: Option<Upload>,
}

impl Fetch {
    /// Sends the request, to another upstream or on another connection where that is safe and of
    /// use, until there is a head.
    pub(super) async fn exchange(&mut self) -> Result<Reply, FetchError> {
        // What goes up a tunnel waits until there is one.
        let is_body = |body: &mut BodyReceiver| !body.is_tunnel();
        let body = self.body.take_if(is_body);
        let repeatable = body.is_none() && self.asker.method.is_idempotent();
        let patience = Patience::new(self.shared.settings.first_byte_timeout, body.as_ref());
        let mut upload = body.map_or(Upload::None, Upload::Stream);
        let (mut tried, mut last) = (Vec::new(), None);
        loop {
            let (way, mut claim) = match self.way(&tried).await? {
                Some(found) => found,
                None => return Err(last.unwrap_or(FetchError::NameUnknown)),
            };
            let failed = match self.attempt(&way, upload, repeatable, &patience).await {
                Ok((response, mut lease)) => {
                    if let Some(claim) = &mut claim {
                        claim.answered(response.0.status());
                    }
                    lease.claim = claim;
                    return Ok(self.replied(response, lease));
                }
                Err(failed) => failed,
            };
            let Some(mut claim) = claim else {
                return Err(failed.error);
            };
            claim.failed(failed.error);
            upload = match failed.unsent {
                Some(unsent) => unsent,
                None if repeatable && self.grants_retry(failed.error) => Upload::None,
                None => return Err(failed.error),
            };
            if failed.error.fault() != Fault::Source || patience.is_over() {
                return Err(failed.error);
            }
            count(&self.shared.tally.retries);
            tried.push(claim.id());
            last = Some(failed.error);
        }
    }

    fn request(&self, upload: Upload) -> Result<Request<Upload>, FetchError> {
        let mut request = build(&self.asker, &self.intent, upload)?;
        if let Some(asked) = &self.asked {
            asked.mark(request.headers_mut())?;
        }
        if self.body.as_ref().is_some_and(BodyReceiver::is_tunnel) {
            tunnel::ask_for(request.headers_mut());
        }
        match self.asker.source.purpose {
            Purpose::Upstream => early::pass_on(&mut request, &self.ticket.flight),
            Purpose::Rescue => {}
        }
        Ok(request)
    }

    /// Where to send the request that was tried at `tried` before; none where there is nobody left.
    async fn way(&self, tried: &[UpstreamId]) -> Result<Option<(Way, Option<Claim>)>, FetchError> {
        let upstreams = match &self.asker.source.place {
            Place::Address(address) => return Ok(Some((Way::to(*address), None))),
            Place::Upstreams(upstreams) => upstreams,
        };
        let claiming = upstreams.claim(tried);
        let claim = timeout(self.shared.settings.wait_max, claiming).await;
        let claim = claim.map_err(|_| FetchError::Overloaded)?;
        Ok(claim.map(|claim| {
            let version = claim.proxy_protocol;
            let preface = version.map(|version| version.header(self.asker.visitor));
            (Way::of(&claim.member, preface), Some(claim))
        }))
    }

    /// Whether a request that was sent, and may be sent twice, is sent to another upstream.
    fn grants_retry(&self, error: FetchError) -> bool {
        let may = match error {
            FetchError::ClosedEarly | FetchError::FirstByteTimeout => true,
            FetchError::Loop
            | FetchError::BadRequest
            | FetchError::RequestAborted
            | FetchError::Overloaded
            | FetchError::NameUnknown
            | FetchError::ConnectRefused
            | FetchError::ConnectFailed
            | FetchError::ConnectTimeout
            | FetchError::BodyTimeout
            | FetchError::Truncated
            | FetchError::Malformed
            | FetchError::Aborted => false,
        };
        match &self.asker.source.place {
            Place::Address(_) => false,
            Place::Upstreams(all) => may && all.grant_retry() == RetryGrant::Granted,
        }
    }

    /// One attempt at one server: once more on a fresh connection where a reused one proved dead
    /// and nothing forbids it.
    pub(super) async fn attempt(
        &self,
        way: &Way,
        upload: Upload,
        repeatable: bool,
        patience: &Patience,
    ) -> Result<(Timed, Lease), Failed> {
        let lease = match self.shared.pool.lease(way).await {
            Ok(lease) => lease,
            Err(error) => return Err(Failed::before(error, upload)),
        };
        let history = lease.history;
        let failed = match self.send(lease, upload, patience).await {
            Ok(answered) => return Ok(answered),
            Err(failed) => failed,
        };
        let upload = match failed.unsent {
            _ if history == History::Fresh => return Err(failed),
            Some(unsent) => unsent,
            None if repeatable && failed.error == FetchError::ClosedEarly => Upload::None,
            None => return Err(failed),
        };
        count(&self.shared.tally.retries);
        match self.shared.pool.connect(way).await {
            Ok(lease) => self.send(lease, upload, patience).await,
            Err(error) => Err(Failed::before(error, upload)),
        }
    }

    /// Sends the request on a connection, and waits for the head. Fails where it takes too long.
    pub(super) async fn send(
        &self,
        mut lease: Lease,
        upload: Upload,
        patience: &Patience,
    ) -> Result<(Timed, Lease), Failed> {
        let sent = |error| Failed {
            error,
            unsent: None,
        };
        let request = self.request(upload).map_err(sent)?;
        self.note_sent();
        let begun = Instant::now();
        match patience.wait(lease.send(request)).await.map_err(sent)? {
            Ok(response) if is_coded(response.headers()) => Err(sent(FetchError::Malformed)),
            Ok(response) => Ok(((response, begun.elapsed()), lease)),
            Err(Unanswered::Unsent(request)) => Err(Failed {
                error: FetchError::ClosedEarly,
                unsent: Some(request.into_body()),
            }),
            Err(Unanswered::Failed(error)) => Err(sent(head_error(&error))),
        }
    }

    pub(super) fn replied(&self, (response, delay): Timed, lease: Lease) -> Reply {
        let (parts, body) = response.into_parts();
        let heads = parts.headers.iter();
        let head = heads.map(|(name, value)| name.as_str().len() + value.len() + 4);
        let bytes = head.sum::<usize>() + "HTTP/1.1 200 \r\n\r\n".len();
        self.note_received(bytes as u64);
        let arrival = Arrival {
            at: self.shared.now(),
            date: SystemTime::now(),
            delay,
        };
        Reply {
            parts,
            body,
            lease,
            arrival,
        }
    }
}

impl Failed {
    /// There was no connection to send anything on.
    fn before(error: FetchError, upload: Upload) -> Self {
        let unsent = Some(upload);
        Self { error, unsent }
    }
}

/// How long a response may take.
pub(super) struct Patience {
    limit: Duration,
    /// For all attempts together: twice the limit, so that the second upstream has its full time
    /// where the first used all of its own, and nobody waits for a third.
    deadline: Instant,
    /// The request's body: as long as it moves, the response is not late.
    upload: Option<UploadWatch>,
}

impl Patience {
    pub fn new(limit: Duration, body: Option<&BodyReceiver>) -> Self {
        Self {
            limit,
            deadline: Instant::now() + limit * 2,
            upload: body.map(BodyReceiver::watch),
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    async fn wait<T>(&self, sending: impl Future<Output = T>) -> Result<T, FetchError> {
        let late = FetchError::FirstByteTimeout;
        let Some(upload) = &self.upload else {
            let deadline = self.deadline.min(Instant::now() + self.limit);
            return timeout_at(deadline, sending).await.map_err(|_| late);
        };
        let mut sending = std::pin::pin!(sending);
        let mut before = upload.moved();
        loop {
            if let Ok(response) = timeout(self.limit, sending.as_mut()).await {
                return Ok(response);
            }
            let moved = upload.moved();
            if moved == before {
                return Err(late);
            }
            before = moved;
        }
    }
}

/// Whether the body is in a transfer coding that nobody here takes off: passed on without its
/// name, it would be taken for the page. Words that name no coding (RFC 9112 7.2) change no body:
/// some applications still say `identity`, which RFC 2616 had.
fn is_coded(headers: &HeaderMap) -> bool {
    const COMPRESSING: [&str; 5] = ["gzip", "x-gzip", "deflate", "compress", "x-compress"];
    let values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let words = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    let mut chunked = 0;
    for word in words.map(<[u8]>::trim_ascii) {
        if COMPRESSING
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        {
            return true;
        }
        chunked += usize::from(word.eq_ignore_ascii_case(b"chunked"));
    }
    chunked > 1
}

/// Why there is no head.
fn head_error(error: &hyper::Error) -> FetchError {
    if error.is_parse() {
        FetchError::Malformed
    } else if error.is_user() {
        FetchError::RequestAborted
    } else {
        FetchError::ClosedEarly
    }
}
