//! One copy: read from our own cores, sent on as it comes.
//!
//! ```text
//!  our cores ──response──▶ a connection inside ──as it is──▶ PUT, message/http ──▶ rescue server
//! ```
//!
//! The response goes byte for byte (RFC 9112 section 10.1), so the rescue server keeps what a fetch
//! would have brought. What may not be kept is not even sent.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::{Empty, Full};
use hyper::body::{Body, Frame};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_control::CopyOutcome;
use levee_proxy::{Errand, Front, PushJudgement, judge_push};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::renewals::Renewals;
use super::rewritten::Rewritten;
use super::{CopiedSite, CopyCounts, LinkRate, Member};
use crate::rescue_link::LinkCharge;

/// The codings that browsers name over plain HTTP, by which rescue servers are reached; over TLS
/// they name more. Used while we know nothing of our own visitors.
const CODINGS: &str = "gzip, deflate";
/// Time to connect: a rescue server that does not take a connection now is no help.
const CONNECT_MAX: std::time::Duration = std::time::Duration::from_secs(3);
/// Longest head of a response of ours.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// What is read and sent at a time.
const PIECE: usize = 16 << 10;
/// What a request without a body costs the link: a head of some 300 bytes, and what any connection
/// costs.
const PULL_BYTES: u64 = 658;
/// What a push costs beside the response and its connection, which were charged when it was read:
/// the head of the request.
const PUSH_BYTES: u64 = 300;

/// Why there is no copy.
#[derive(Debug)]
pub(super) struct Trouble {
    pub outcome: CopyOutcome,
    pub why: String,
}

impl Trouble {
    pub fn failed(why: impl ToString) -> Self {
        Self {
            outcome: CopyOutcome::Failed,
            why: why.to_string(),
        }
    }

    pub fn refused(why: impl ToString) -> Self {
        Self {
            outcome: CopyOutcome::Refused,
            why: why.to_string(),
        }
    }
}

/// What copies are made with.
pub(super) struct Errands {
    pub front: Weak<Front>,
    pub site: watch::Receiver<CopiedSite>,
    pub link: Arc<LinkRate>,
    pub charge: LinkCharge,
    pub counts: Arc<CopyCounts>,
    pub renewals: Arc<Renewals>,
}

impl Errands {
    /// Sends the response to whoever asks for `url` now.
    ///
    /// Cancel safety: dropped half-way, the rescue server keeps nothing.
    pub async fn push(&self, url: &str, member: &Member) -> Result<(), Trouble> {
        let target = target_of(url)?;
        let key = member.key.to_string();
        let web = self.site().web;
        if let Some(page) = self.rewritten(target, member).await {
            return self.push_message(target, member, page).await;
        }
        let mut inside = self.open(Errand::PassOn(member.address.ip()))?;
        let codings = self.codings();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {web}\r\nlevee-fetch: {key}\r\n\
             Accept-Encoding: {codings}\r\nConnection: close\r\n\r\n"
        );
        let written = inside.write_all(request.as_bytes()).await;
        written.map_err(Trouble::failed)?;
        let first = read_head(&mut inside, self.link.body_bytes_max()).await?;
        (self.charge)(PUSH_BYTES);
        let body = Relay {
            first,
            inside,
            counts: Arc::clone(&self.counts),
        };
        let request = put(target, member, &codings).header("content-type", "message/http");
        let request = request.body(body).map_err(Trouble::refused)?;
        send(member, request).await
    }

    /// Sends a page that is there already, in the place of the page as it is.
    pub(super) async fn push_message(
        &self,
        target: &str,
        member: &Member,
        Rewritten { version, message }: Rewritten,
    ) -> Result<(), Trouble> {
        match judge_push(&message) {
            PushJudgement::MayBeKept { .. } => {}
            PushJudgement::GoesOn | PushJudgement::NotToBeKept => {
                return Err(Trouble::refused("it may not be kept"));
            }
        }
        self.counts.note_bytes(message.len());
        (self.charge)(PUSH_BYTES);
        let request = put(target, member, &self.codings())
            .header("content-type", "message/http")
            .header("if-none-match", version);
        let request = request.body(Full::new(message)).map_err(Trouble::refused)?;
        send(member, request).await?;
        self.renewals.note_sent(member.link, target);
        Ok(())
    }

    /// Has the rescue server get it; a page that is rewritten is sent, because what it has fetched
    /// for visitors is not.
    ///
    /// Cancel safety: dropped half-way, it may have been got.
    pub async fn pull(&self, url: &str, member: &Member) -> Result<(), Trouble> {
        let target = target_of(url)?;
        if let Some(page) = self.rewritten(target, member).await {
            return self.push_message(target, member, page).await;
        }
        let request = put(target, member, &self.codings())
            .header("content-length", "0")
            .header("levee-copy", "pull")
            .body(Empty::<Bytes>::new());
        (self.charge)(PULL_BYTES);
        send(member, request.map_err(Trouble::refused)?).await
    }

    /// The codings that most visitors take: of a response that varies by them, the copy must be the
    /// one that they will ask for.
    fn codings(&self) -> String {
        let usual = self.front.upgrade().and_then(|front| front.usual_codings());
        usual.unwrap_or_else(|| CODINGS.to_owned())
    }

    /// The site, as it is now.
    pub(super) fn site(&self) -> CopiedSite {
        self.site.borrow().clone()
    }

    /// A connection to our own cores.
    pub(super) fn open(&self, errand: Errand) -> Result<UnixStream, Trouble> {
        let front = self.front.upgrade();
        let front = front.ok_or_else(|| Trouble::failed("the server stops"))?;
        let stream = front.visit(errand).map_err(Trouble::failed)?;
        UnixStream::from_std(stream).map_err(Trouble::failed)
    }
}

/// Path and query of a resource that is named by host and path.
pub(super) fn target_of(url: &str) -> Result<&str, Trouble> {
    let slash = url.find('/');
    let target = slash.map(|at| &url[at..]);
    target.ok_or_else(|| Trouble::refused("it has no path"))
}

fn put(target: &str, member: &Member, codings: &str) -> http::request::Builder {
    http::Request::put(target)
        .header("host", member.alias.to_string())
        .header("levee-fetch", member.key.to_string())
        .header("accept-encoding", codings)
        .header("connection", "close")
}

/// The head of a response, and perhaps the beginning of its body. Fails where the rescue server
/// would not keep it, or it is too long.
async fn read_head(inside: &mut UnixStream, bytes_max: u64) -> Result<Bytes, Trouble> {
    let mut bytes = BytesMut::with_capacity(PIECE);
    loop {
        match judge_push(&bytes) {
            PushJudgement::MayBeKept {
                length: Some(length),
            } if length > bytes_max => {
                return Err(Trouble::refused("it is too long for our link"));
            }
            PushJudgement::MayBeKept { .. } => return Ok(bytes.freeze()),
            PushJudgement::NotToBeKept => return Err(Trouble::refused("it may not be kept")),
            PushJudgement::GoesOn if bytes.len() > HEAD_BYTES_MAX => {
                return Err(Trouble::refused("its head is too long"));
            }
            PushJudgement::GoesOn => {}
        }
        let read = inside.read_buf(&mut bytes).await;
        if read.map_err(Trouble::failed)? == 0 {
            return Err(Trouble::failed("our own server has not answered"));
        }
    }
}

async fn send<B>(member: &Member, request: http::Request<B>) -> Result<(), Trouble>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let connecting = timeout(CONNECT_MAX, TcpStream::connect(member.address));
    let stream = connecting.await.map_err(Trouble::failed)?;
    let stream = TokioIo::new(stream.map_err(Trouble::failed)?);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(Trouble::failed)?;
    let answer = sender.send_request(request);
    tokio::pin!(answer);
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // It may close as soon as it has answered, and the answer is there all the same.
        _ = connection => answer.await,
    };
    let status = answer.map_err(Trouble::failed)?.status();
    match status {
        StatusCode::OK | StatusCode::CREATED => Ok(()),
        StatusCode::CONFLICT | StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Trouble::refused(format!("it answers {status}")))
        }
        // An older version leads the PUT back to us. To ask again soon would cost our link as much
        // each time.
        status if status.is_redirection() => Err(Trouble::refused("it does not know copies")),
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            Err(Trouble::refused("it does not know copies"))
        }
        status => Err(Trouble::failed(format!("it answers {status}"))),
    }
}

/// A response on its way from our cores to a rescue server.
struct Relay {
    first: Bytes,
    inside: UnixStream,
    counts: Arc<CopyCounts>,
}

impl Body for Relay {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.first.is_empty() {
            let mut piece = vec![0; PIECE];
            let mut buffer = ReadBuf::new(&mut piece);
            std::task::ready!(Pin::new(&mut self.inside).poll_read(context, &mut buffer))?;
            let read = buffer.filled().len();
            piece.truncate(read);
            self.first = piece.into();
        }
        let piece = std::mem::take(&mut self.first);
        self.counts.note_bytes(piece.len());
        Poll::Ready(match piece.is_empty() {
            true => None,
            false => Some(Ok(Frame::data(piece))),
        })
    }
}
