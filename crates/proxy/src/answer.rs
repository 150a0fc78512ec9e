//! One response on its way out: its bytes, what it is counted as, and what follows it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;
use levee_control::Visitor;
use levee_net::Sent;
use levee_observe::AccessRecord;
use levee_vocab::Timestamp;

use crate::disk::StoredFile;
use crate::flow::Flow;
use crate::pacer::Class;
use crate::request::Scheme;
use crate::transport::Transport;

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Head, or the framing of the next piece of the body.
    pub head: Vec<u8>,
    pub head_sent: usize,
    pub body: Body,
    /// Where more of the body comes from.
    pub flow: Option<Box<Flow>>,
    pub kind: Kind,
    /// Whose it is.
    pub visitor: Visitor,
    pub cause: Cause,
    pub came_by: Scheme,
    pub status: u16,
    pub after: After,
    /// When the head of the request was complete.
    pub began: Timestamp,
    /// Bytes sent, heads too.
    pub sent: u64,
    /// What is still to be charged to the link beside the bytes.
    pub overhead: u64,
    /// What was admitted to the link and has not been sent.
    pub admitted: u64,
    pub place: Place,
    /// By when the visitor must have moved some bytes, and how many it had when that was set.
    pub progress_by: Timestamp,
    pub progress_from: u64,
    pub record: Option<Box<AccessRecord>>,
}

/// Bytes that follow the head.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    Empty,
    Memory(Bytes),
    File {
        file: FileHandle,
        offset: u64,
        left: u64,
    },
}

/// A file that others may send as well.
#[derive(Clone, Debug)]
pub(crate) enum FileHandle {
    Plain(Arc<File>),
    Stored(Arc<StoredFile>),
}

/// What a response is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page, file or complaint of our own site.
    Own,
    /// A fetch by one of our rescue servers.
    Fetch,
    /// A redirect to a rescue server, by the slot of its link.
    Redirect { slot: u8 },
    /// A response for an origin, by the slot of its link.
    Rescue { slot: u8 },
    /// The same, to another of its rescue servers, which asks us as the object's home.
    Home { slot: u8 },
    /// The answer to an origin that has a copy made here, by the slot of its link.
    Copy { slot: u8 },
    /// A page of our own site that this server reads itself: nothing leaves.
    Look,
    /// A 503 for lack of capacity.
    Refusal,
    /// The same where its origin has had what the operator gives it: there is capacity.
    Withheld,
    /// A 429 to a crawler.
    PuttingOff,
}

/// Why there is a response at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody wants something.
    Visitors,
    /// Our own drill, which is no crowd.
    Drill,
}

/// What becomes of the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request.
    Next,
    /// It is closed.
    Close,
    /// It is closed when the visitor has stopped sending: a close with unread bytes would be a
    /// reset, which could overtake the response.
    Linger,
}

/// Where a response stands towards the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It has something to send and is not in the queue.
    Outside,
    /// In the queue of the link.
    Queued,
    /// The visitor's side of the connection is full; epoll will tell.
    Blocked,
}

impl Kind {
    const fn class(self) -> Class {
        match self {
            Self::Redirect { .. } | Self::Refusal | Self::Withheld | Self::PuttingOff => {
                Class::Redirect
            }
            Self::Fetch | Self::Home { .. } | Self::Copy { .. } => Class::Fetch,
            Self::Own | Self::Rescue { .. } | Self::Look => Class::Page,
        }
    }

    /// Whether it goes out over the link.
    pub const fn is_sent(self) -> bool {
        match self {
            Self::Own
            | Self::Fetch
            | Self::Redirect { .. }
            | Self::Rescue { .. }
            | Self::Home { .. }
            | Self::Copy { .. }
            | Self::Refusal
            | Self::Withheld
            | Self::PuttingOff => true,
            Self::Look => false,
        }
    }
}

impl Body {
    pub fn length(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { left, .. } => *left,
        }
    }
}

impl Answer {
    /// A response of `head` and `body`, not begun.
    pub fn new(head: Vec<u8>, body: Body, kind: Kind, status: u16) -> Self {
        Self {
            head,
            head_sent: 0,
            body,
            flow: None,
            kind,
            visitor: Visitor::Reader,
            cause: Cause::Visitors,
            came_by: Scheme::Http,
            status,
            after: After::Next,
            began: Timestamp::ZERO,
            sent: 0,
            overhead: 0,
            admitted: 0,
            place: Place::Outside,
            progress_by: Timestamp::ZERO,
            progress_from: 0,
            record: None,
        }
    }

    /// What it is to the link. Pages of crawlers come after everything else.
    pub const fn class(&self) -> Class {
        match (self.kind.class(), self.visitor) {
            (Class::Page, Visitor::Crawler(_)) => Class::Crawl,
            (class, Visitor::Crawler(_) | Visitor::Reader) => class,
        }
    }

    /// Whether somebody came by HTTPS for it who is not of our own drill.
    pub fn is_for_visitor_by_https(&self) -> bool {
        (self.cause, self.came_by) == (Cause::Visitors, Scheme::Https)
    }

    /// Whether it is a fetch for a crawler.
    pub fn is_crawlers_fetch(&self) -> bool {
        let is_fetched = self.flow.as_ref().is_some_and(|flow| flow.is_fetched());
        self.visitor.is_crawler() && is_fetched
    }

    /// Bytes that are ready to be sent.
    pub fn ready(&self) -> u64 {
        (self.head.len() - self.head_sent) as u64 + self.body.length()
    }

    /// Whether all of it was sent.
    pub fn is_out(&self) -> bool {
        self.ready() == 0 && self.flow.is_none()
    }

    /// The visitor's side of the connection has room again.
    pub fn unblock(&mut self) {
        if self.place == Place::Blocked {
            self.place = Place::Outside;
        }
    }

    /// Bytes that the visitor took, and those of its request that it sent.
    pub fn moved(&self) -> u64 {
        self.sent + self.flow.as_ref().map_or(0, |flow| flow.uploaded())
    }

    /// Whether it is the visitor who is waited for: to take what is ready, or to send the rest of
    /// the request. While it waits for our link, for an application or for a fetch it is not.
    pub fn waits_for_visitor(&self) -> bool {
        match (&self.flow, self.place) {
            (Some(flow), _) if flow.is_uploading() && !flow.is_upload_held() => true,
            (_, Place::Queued) => false,
            (_, Place::Outside | Place::Blocked) => self.ready() > 0,
        }
    }

    /// Writes up to `limit` bytes of what is ready. An error means that the response cannot be
    /// finished.
    pub fn write(&mut self, socket: &mut Transport, limit: u64) -> io::Result<Sent> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if let Transport::Stream(stream) = socket {
            return self.write_frames(stream, limit);
        }
        let head = &self.head[self.head_sent..];
        let head = &head[..head.len().min(limit)];
        let sent = match &mut self.body {
            Body::Memory(body) => {
                let body = &body[..body.len().min(limit - head.len())];
                match (head, body) {
                    (head, []) => socket.write(head)?,
                    ([], body) => socket.write(body)?,
                    (head, body) => {
                        socket.write_pieces(&[IoSlice::new(head), IoSlice::new(body)])?
                    }
                }
            }
            Body::Empty => socket.write(head)?,
            Body::File { .. } if !head.is_empty() => socket.write(head)?,
            Body::File { file, offset, left } => {
                let piece = usize::try_from(*left).unwrap_or(usize::MAX);
                let piece = piece.min(limit).min(FILE_PIECE_MAX);
                match socket.write_file(file.as_file(), *offset, piece)? {
                    // The file was cut while it was sent: what we promised does not exist any more.
                    Sent::Bytes(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    sent @ (Sent::Bytes(_) | Sent::WouldBlock) => sent,
                }
            }
        };
        if let Sent::Bytes(bytes) = sent {
            self.advance(bytes);
        }
        Ok(sent)
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        let of_head = bytes.min(self.head.len() - self.head_sent);
        self.head_sent += of_head;
        let of_body = bytes - of_head;
        match &mut self.body {
            Body::Empty => {}
            Body::Memory(body) => {
                // `split_to` and `advance` keep the shared block alive; nothing is copied.
                bytes::Buf::advance(body, of_body);
            }
            Body::File { offset, left, .. } => {
                *offset += of_body as u64;
                *left -= of_body as u64;
            }
        }
        if self.body.length() == 0 {
            self.body = Body::Empty;
        }
    }
}

/// Most of a file in one call, so that one visitor on a fast line does not hold up the others.
const FILE_PIECE_MAX: usize = 1 << 20;

impl FileHandle {
    pub(crate) fn as_file(&self) -> &File {
        match self {
            Self::Plain(file) => file,
            Self::Stored(file) => file,
        }
    }
}
