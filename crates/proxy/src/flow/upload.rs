//! The request body's way out of a connection: to an upstream, or into a buffer of ours.

use bytes::{Bytes, BytesMut};
use levee_vocab::LinkId;

use super::{BROKEN_OFF, Closing, Flow, Source};
use crate::flight::{BodySender, Pushed};
use crate::trailers;

/// A request body that is being read.
#[derive(Debug)]
pub(crate) struct Upload {
    to: To,
    /// What there was no room for.
    held: Option<Bytes>,
    /// The lines behind the body, as far as they have come.
    trailers: Vec<u8>,
}

/// Log lines that are being handed over.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub link: LinkId,
    pub lines: BytesMut,
    pub bytes_max: u64,
}

#[derive(Debug)]
enum To {
    Upstream(BodySender),
    Gathering(Gathering),
}

/// What became of a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    Taken,
    /// It is held; no more before the connection is woken.
    Full,
    /// Nobody wants the rest.
    Closed,
}

impl Upload {
    /// To an upstream.
    pub const fn new(sender: BodySender) -> Self {
        Self {
            to: To::Upstream(sender),
            held: None,
            trailers: Vec::new(),
        }
    }

    pub(super) const fn gather(gathering: Gathering) -> Self {
        Self {
            to: To::Gathering(gathering),
            held: None,
            trailers: Vec::new(),
        }
    }
}

impl Flow {
    /// Whether the visitor's body is still being read.
    pub const fn is_uploading(&self) -> bool {
        self.upload.is_some()
    }

    /// Whether the body waits for its upstream, not for the visitor.
    pub fn is_upload_held(&self) -> bool {
        self.upload
            .as_ref()
            .is_some_and(|upload| upload.held.is_some())
    }

    /// Bytes of the body that were passed on.
    pub const fn uploaded(&self) -> u64 {
        self.uploaded
    }

    /// Offers what was held again.
    pub fn feed_held(&mut self) -> Fed {
        match self.upload.as_mut().and_then(|upload| upload.held.take()) {
            Some(held) => self.push(held),
            None => Fed::Taken,
        }
    }

    /// Passes the next piece of the body on.
    pub fn feed(&mut self, data: &[u8]) -> Fed {
        self.uploaded += data.len() as u64;
        self.push(Bytes::copy_from_slice(data))
    }

    /// Takes the next bytes of the lines behind the body; whoever reads the body limits them.
    pub fn feed_trailers(&mut self, lines: &[u8]) {
        if let Some(upload) = &mut self.upload {
            upload.trailers.extend_from_slice(lines);
        }
    }

    fn push(&mut self, piece: Bytes) -> Fed {
        let Some(upload) = &mut self.upload else {
            return Fed::Closed;
        };
        match &mut upload.to {
            To::Upstream(sender) => match sender.push(piece) {
                Pushed::Taken => return Fed::Taken,
                Pushed::Full(piece) => {
                    upload.held = Some(piece);
                    return Fed::Full;
                }
                Pushed::Closed => {}
            },
            To::Gathering(gathering) => {
                gathering.lines.extend_from_slice(&piece);
                if gathering.lines.len() as u64 <= gathering.bytes_max {
                    return Fed::Taken;
                }
                self.source = Source::Gathering { done: Some(413) };
            }
        }
        self.upload = None;
        Fed::Closed
    }

    /// The body is whole. Gives what was gathered here.
    pub fn finish_upload(&mut self) -> Option<(LinkId, Bytes)> {
        let upload = self.upload.take()?;
        match upload.to {
            To::Upstream(sender) => {
                match trailers::read(&upload.trailers) {
                    Some(trailers) => sender.finish_with(trailers),
                    None => sender.finish(),
                }
                None
            }
            To::Gathering(gathering) => {
                self.source = Source::Gathering { done: Some(204) };
                Some((gathering.link, gathering.lines.freeze()))
            }
        }
    }

    /// The body will never be whole, and the connection ends with the response: where the next
    /// request would begin, nobody knows.
    pub fn break_off(&mut self) {
        self.closing = Closing::Close;
        if let Some(Upload {
            to: To::Gathering(_),
            ..
        }) = self.upload.take()
        {
            let done = Some(BROKEN_OFF);
            self.source = Source::Gathering { done };
        }
    }
}
