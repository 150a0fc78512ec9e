//! One request to a source, until the head of its response.
//!
//! A reused connection may have been closed by its other end in the meantime. Where nothing was
//! sent on it, or the request may be sent twice, the request goes out once more on a fresh
//! connection; never a third time.

use std::time::{Duration, SystemTime};

use http::response::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::counters::count;
use super::pool::{History, Lease, Unanswered};
use super::request::{Upload, build};
use super::response::Arrival;
use super::task::Fetch;
use super::tunnel;
use crate::flight::{BodyReceiver, FetchError, UploadWatch};

/// The head of a response, and the connection on which its body comes.
pub(super) struct Reply {
    pub parts: Parts,
    pub body: Incoming,
    pub lease: Lease,
    pub arrival: Arrival,
}

/// A response, and how long after its request it came.
type Timed = (Response<Incoming>, Duration);

impl Fetch {
    /// Sends the request; once more on a fresh connection where a reused one proved dead and
    /// nothing forbids it.
    pub(super) async fn exchange(&mut self) -> Result<Reply, FetchError> {
        let address = self.asker.source.address;
        // What goes up a tunnel waits until there is one.
        let is_body = |body: &mut BodyReceiver| !body.is_tunnel();
        let body = self.body.take_if(is_body);
        let repeatable = body.is_none() && self.asker.method.is_idempotent();
        let limit = self.shared.settings.first_byte_timeout;
        let patience = Patience {
            limit,
            deadline: Instant::now() + limit,
            upload: body.as_ref().map(BodyReceiver::watch),
        };
        let request = self.request(body.map_or(Upload::None, Upload::Stream))?;
        let mut lease = self.shared.pool.lease(address).await?;
        let history = lease.history;
        let request = match self.attempt(&mut lease, request, &patience).await? {
            Ok(response) => return Ok(self.replied(response, lease)),
            Err(Unanswered::Unsent(request)) if history == History::Reused => *request,
            Err(Unanswered::Failed(error))
                if history == History::Reused
                    && repeatable
                    && head_error(&error) == FetchError::ClosedEarly =>
            {
                self.request(Upload::None)?
            }
            Err(Unanswered::Unsent(_)) => return Err(FetchError::ClosedEarly),
            Err(Unanswered::Failed(error)) => return Err(head_error(&error)),
        };
        count(&self.shared.tally.retries);
        let mut lease = self.shared.pool.connect(address).await?;
        match self.attempt(&mut lease, request, &patience).await? {
            Ok(response) => Ok(self.replied(response, lease)),
            Err(Unanswered::Unsent(_)) => Err(FetchError::ClosedEarly),
            Err(Unanswered::Failed(error)) => Err(head_error(&error)),
        }
    }

    fn request(&self, body: Upload) -> Result<Request<Upload>, FetchError> {
        let mut request = build(&self.asker, &self.intent, body)?;
        if self.body.as_ref().is_some_and(BodyReceiver::is_tunnel) {
            tunnel::ask_for(request.headers_mut());
        }
        Ok(request)
    }

    /// One attempt. Fails where it takes too long.
    async fn attempt(
        &self,
        lease: &mut Lease,
        request: Request<Upload>,
        patience: &Patience,
    ) -> Result<Result<Timed, Unanswered>, FetchError> {
        self.shared.tally.fetched(&self.asker.key.space);
        let begun = Instant::now();
        let response = patience.wait(lease.send(request)).await?;
        Ok(response.map(|response| (response, begun.elapsed())))
    }

    fn replied(&self, (response, delay): Timed, lease: Lease) -> Reply {
        let (parts, body) = response.into_parts();
        let heads = parts.headers.iter();
        let head = heads.map(|(name, value)| name.as_str().len() + value.len() + 4);
        let bytes = head.sum::<usize>() + "HTTP/1.1 200 \r\n\r\n".len();
        self.shared
            .tally
            .received(&self.asker.key.space, bytes as u64);
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

/// How long a response may take.
struct Patience {
    limit: Duration,
    /// For both attempts together.
    deadline: Instant,
    /// The request's body: as long as it moves, the response is not late.
    upload: Option<UploadWatch>,
}

impl Patience {
    async fn wait<T>(&self, sending: impl Future<Output = T>) -> Result<T, FetchError> {
        let late = FetchError::FirstByteTimeout;
        let Some(upload) = &self.upload else {
            return timeout_at(self.deadline, sending).await.map_err(|_| late);
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
