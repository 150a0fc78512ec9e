//! One stream of a visitor: what carries the bytes of one request and its response.
//!
//! To the engine it is a transport. Reading gives the body of the request, in the framing that the
//! head promised; the response goes out by [`Stream::send_head`] and [`Stream::send_data`], without
//! a copy of what is in memory. What the visitor's windows or the kernel have no room for is not
//! taken: the engine then waits, as for a full socket, and is woken.

use std::io;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use levee_net::Sent;

use super::Malformed;
use super::head::{self, Follows};
use super::pipe::Pipe;
use super::session::Accepted;
use super::wake::{TokenWaker, WakeList};

/// See the head of this file. Dropping one whose response is not whole tells the visitor so.
#[derive(Debug)]
pub(crate) struct Stream {
    token: u64,
    pipe: Pipe,
    list: WakeList,
    /// Made when the stream first has to wait: most never do.
    waker: Option<TokenWaker>,
    upload: Upload,
    /// A piece of the body that the engine had no room for.
    held: Bytes,
    receiving: RecvStream,
    sending: Sending,
    window: Window,
    end: End,
    /// What goes behind the body.
    trailers: Option<HeaderMap>,
}

/// Whether the visitor has room for more of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Open,
    Shut,
}

/// When the visitor is told that a response is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    AtOnce,
    /// When the request is whole as well. A request that needs no body and was not ended with its
    /// head is ended right behind it, and until then the stream must be able to fail: a response
    /// that came first would hide what is wrong with the rest (RFC 9113 sections 5.1 and 6.9.1).
    WithRequest,
}

/// What a stream is made of.
pub(crate) struct StreamStart {
    pub accepted: Accepted,
    pub pipe: Pipe,
    pub list: WakeList,
}

/// How the body of the request is given to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upload {
    /// As it is; its length was told.
    Plain,
    /// In chunks, with their end still to come.
    Chunks,
    Over,
}

#[derive(Debug)]
enum Sending {
    Head(SendResponse<Bytes>),
    Body(SendStream<Bytes>),
    /// The response is whole.
    Over,
}

/// Whether more of a response follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Middle,
    Last,
}

/// Whether the visitor still wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Wanted,
    /// The stream was reset, or its connection is gone.
    Gone,
}

/// Room that a chunk's frame may take: 16 hexadecimal digits and two line ends.
const CHUNK_FRAME: usize = 20;

impl Stream {
    /// A stream with an accepted request, whose head is written to `text`.
    pub fn new(start: StreamStart, text: &mut Vec<u8>) -> Result<Self, Malformed> {
        let StreamStart {
            accepted: Accepted {
                request,
                mut respond,
            },
            pipe,
            list,
        } = start;
        let (parts, receiving) = request.into_parts();
        let follows = match receiving.is_end_stream() {
            true => Follows::Nothing,
            false => Follows::Body,
        };
        if let Err(malformed) = head::write_request(&parts, follows, text) {
            respond.send_reset(Reason::PROTOCOL_ERROR);
            return Err(malformed);
        }
        let has_length = parts.headers.contains_key(http::header::CONTENT_LENGTH);
        pipe.note_begun();
        Ok(Self {
            token: 0,
            pipe,
            list,
            waker: None,
            upload: match follows {
                Follows::Nothing => Upload::Over,
                Follows::Body if has_length => Upload::Plain,
                Follows::Body => Upload::Chunks,
            },
            held: Bytes::new(),
            end: match follows == Follows::Body && !has_length && parts.method.is_safe() {
                true => End::WithRequest,
                false => End::AtOnce,
            },
            receiving,
            sending: Sending::Head(respond),
            trailers: None,
            window: Window::Open,
        })
    }

    /// Tells the stream under which token it is woken.
    pub const fn set_token(&mut self, token: u64) {
        self.token = token;
    }

    /// Whether the body of the request is over.
    pub fn is_read(&self) -> bool {
        self.upload == Upload::Over || (self.held.is_empty() && self.receiving.is_end_stream())
    }

    /// Reads the next piece of the body; zero bytes are its end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Sent> {
        if self.held.is_empty() {
            match self.upload {
                Upload::Over => return Ok(Sent::Bytes(0)),
                Upload::Plain | Upload::Chunks => {}
            }
            let waker = waker(&mut self.waker, &self.list, self.token);
            let mut context = Context::from_waker(waker.arm());
            match self.receiving.poll_data(&mut context) {
                Poll::Pending => return Ok(Sent::WouldBlock),
                Poll::Ready(Some(Ok(bytes))) => self.held = bytes,
                Poll::Ready(Some(Err(error))) => return Err(io::Error::other(error)),
                Poll::Ready(None) => return self.read_end(buffer),
            }
        }
        let room = buffer.len().saturating_sub(CHUNK_FRAME);
        let length = room.min(self.held.len());
        let given = match self.upload {
            Upload::Chunks if length > 0 => write_chunk(&self.held[..length], buffer),
            Upload::Chunks | Upload::Over => 0,
            Upload::Plain => {
                buffer[..length].copy_from_slice(&self.held[..length]);
                length
            }
        };
        self.held.advance(length);
        self.pipe.note_moved(length);
        // The visitor may send as much again. It fails where the stream is over, and then there is
        // no window any more.
        let _ = self.receiving.flow_control().release_capacity(length);
        match given {
            // An empty DATA frame, which is not the end.
            0 => Ok(Sent::WouldBlock).inspect(|_| self.list.push(self.token)),
            given => Ok(Sent::Bytes(given)),
        }
    }

    fn read_end(&mut self, buffer: &mut [u8]) -> io::Result<Sent> {
        let waker = waker(&mut self.waker, &self.list, self.token);
        let mut context = Context::from_waker(waker.arm());
        let trailers = match self.receiving.poll_trailers(&mut context) {
            Poll::Pending => return Ok(Sent::WouldBlock),
            Poll::Ready(Ok(trailers)) => trailers.unwrap_or_default(),
            Poll::Ready(Err(error)) => return Err(io::Error::other(error)),
        };
        match std::mem::replace(&mut self.upload, Upload::Over) {
            Upload::Chunks => Ok(Sent::Bytes(write_last_chunk(&trailers, buffer))),
            Upload::Plain | Upload::Over => Ok(Sent::Bytes(0)),
        }
    }

    /// Sends the head that `text` begins with; gives its length.
    pub(super) fn send_head(&mut self, text: &[u8], after: Part) -> io::Result<usize> {
        let (response, length) = head::read_response(text).map_err(io::Error::other)?;
        let is_last = self.ends_with(after) && length == text.len();
        let Sending::Head(respond) = &mut self.sending else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if response.status().is_informational() {
            //= RFC 9113 section 8.6: there is no switching of protocols in HTTP/2.
            if response.status() != http::StatusCode::SWITCHING_PROTOCOLS {
                respond
                    .send_informational(response)
                    .map_err(io::Error::other)?;
            }
            return Ok(length);
        }
        let body = respond.send_response(response, is_last);
        self.sending = match is_last {
            true => Sending::Over,
            false => Sending::Body(body.map_err(io::Error::other)?),
        };
        Ok(length)
    }

    /// Whether the head of the response is still to come.
    pub(super) const fn awaits_head(&self) -> bool {
        matches!(self.sending, Sending::Head(_))
    }

    /// How much of `wanted` bytes may be sent now; none where the stream will be woken.
    pub(super) fn room(&mut self, wanted: usize) -> io::Result<Option<usize>> {
        let room = self.room_in_window(wanted)?;
        self.note_window(match room {
            Some(_) => Window::Open,
            None => Window::Shut,
        });
        Ok(room)
    }

    fn note_window(&mut self, window: Window) {
        match (std::mem::replace(&mut self.window, window), window) {
            (Window::Open, Window::Shut) => self.pipe.note_stuck(),
            (Window::Shut, Window::Open) => self.pipe.note_unstuck(),
            (Window::Open, Window::Open) | (Window::Shut, Window::Shut) => {}
        }
    }

    fn room_in_window(&mut self, wanted: usize) -> io::Result<Option<usize>> {
        if self.pipe.is_blocked() {
            self.pipe.wait(self.token);
            return Ok(None);
        }
        let Sending::Body(body) = &mut self.sending else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        body.reserve_capacity(wanted);
        let room = body.capacity();
        if room > 0 {
            return Ok(Some(room.min(wanted)));
        }
        let waker = waker(&mut self.waker, &self.list, self.token);
        let mut context = Context::from_waker(waker.arm());
        loop {
            match body.poll_capacity(&mut context) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Some(Ok(0))) => {}
                Poll::Ready(Some(Ok(room))) => return Ok(Some(room.min(wanted))),
                Poll::Ready(Some(Err(error))) => return Err(io::Error::other(error)),
                Poll::Ready(None) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Sends a piece for which there is room.
    pub(super) fn send_data(&mut self, data: Bytes, part: Part) -> io::Result<()> {
        let is_last = self.ends_with(part);
        let Sending::Body(body) = &mut self.sending else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.pipe.note_moved(data.len());
        body.send_data(data, is_last).map_err(io::Error::other)?;
        if is_last {
            self.sending = Sending::Over;
        }
        Ok(())
    }

    fn ends_with(&self, part: Part) -> bool {
        match (part, self.end) {
            (Part::Middle, _) => false,
            (Part::Last, End::AtOnce) => true,
            (Part::Last, End::WithRequest) => self.is_read(),
        }
    }

    /// These fields go behind the body, and end the response.
    pub fn trail(&mut self, trailers: HeaderMap) {
        self.trailers = Some(trailers);
    }

    /// The response is whole; the request may not be.
    pub fn finish_writing(&mut self) {
        if self.ends_with(Part::Last) {
            self.finish();
        }
    }

    /// The response is whole, and the visitor is told.
    pub fn finish(&mut self) {
        if let Sending::Body(mut body) = std::mem::replace(&mut self.sending, Sending::Over) {
            // It fails where nobody wants the response any more.
            let _ = match self.trailers.take() {
                Some(trailers) => body.send_trailers(trailers),
                None => body.send_data(Bytes::new(), true),
            };
        }
    }

    /// The response will not be whole. A request that has had no answer may be tried again.
    pub fn reset(mut self) {
        match &mut self.sending {
            Sending::Head(respond) => respond.send_reset(Reason::REFUSED_STREAM),
            Sending::Body(body) => body.send_reset(Reason::INTERNAL_ERROR),
            Sending::Over => {}
        }
    }

    /// Looks whether the visitor has taken the request back, and asks to be woken if it does.
    pub fn watch(&mut self) -> Watched {
        let waker = waker(&mut self.waker, &self.list, self.token);
        let mut context = Context::from_waker(waker.arm());
        let told = match &mut self.sending {
            Sending::Head(respond) => respond.poll_reset(&mut context),
            Sending::Body(body) => body.poll_reset(&mut context),
            Sending::Over => return Watched::Wanted,
        };
        match told {
            Poll::Pending => Watched::Wanted,
            Poll::Ready(_) => {
                self.pipe.note_taken_back();
                Watched::Gone
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.note_window(Window::Open);
        self.pipe.note_ended();
    }
}

fn waker<'a>(kept: &'a mut Option<TokenWaker>, list: &WakeList, token: u64) -> &'a TokenWaker {
    kept.get_or_insert_with(|| list.waker(token))
}

/// Writes `data` as one chunk; `buffer` has room.
fn write_chunk(data: &[u8], buffer: &mut [u8]) -> usize {
    let frame = format!("{:x}\r\n", data.len());
    let (start, end) = (frame.len(), frame.len() + data.len());
    buffer[..start].copy_from_slice(frame.as_bytes());
    buffer[start..end].copy_from_slice(data);
    buffer[end..end + 2].copy_from_slice(b"\r\n");
    end + 2
}

/// Writes the end of a body in chunks, with the trailers that there is room for.
fn write_last_chunk(trailers: &HeaderMap, buffer: &mut [u8]) -> usize {
    let mut text = b"0\r\n".to_vec();
    for (name, value) in trailers {
        let line = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat();
        if text.len() + line.len() + 2 <= buffer.len() {
            text.extend_from_slice(&line);
        }
    }
    text.extend_from_slice(b"\r\n");
    let length = text.len().min(buffer.len());
    buffer[..length].copy_from_slice(&text[..length]);
    length
}
