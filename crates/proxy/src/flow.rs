//! A response that comes in pieces from somewhere else, and the request body that goes there.
//!
//! ```text
//!  visitor ──body──▶ Upload ──▶ upstream       (or gathered here: handed-over log lines)
//!     ▲                            │
//!     └─── head, chunks ◀── Flow ◀─┘ flight
//! ```
//!
//! A flow gives the next bytes when the last ones are out, so what waits for a slow visitor is one
//! piece, not a response.

mod parts;
mod tunnel;
mod upload;
mod wanted;

use bytes::Bytes;
use http::HeaderMap;
use levee_vocab::Timestamp;

use crate::answer::{Body, FileHandle};
use crate::files::Judgement;
use crate::flight::{
    CacheResult, Fault, FetchError, Progress, Reading, ResponseHead, Waiting, push_forwarded,
};
use crate::request::Expectation;
use crate::response::{Closing, Plain, push_number, push_status};
use crate::trailers;

pub(crate) use parts::{Parts, Whole};
use tunnel::Settled;
pub(crate) use tunnel::Tunnel;
pub(crate) use upload::{Fed, Gathering, Upload};
pub(crate) use wanted::Wanted;
use wanted::Window;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Flow {
    source: Source,
    state: State,
    /// Header lines of ours.
    lines: Vec<u8>,
    /// Another, for a response that says nothing of who may read it.
    reading: Vec<u8>,
    closing: Closing,
    is_head: bool,
    knows_chunks: bool,
    early: Early,
    trailing: Trailing,
    tags: TagLine,
    status: u16,
    upload: Option<Upload>,
    uploaded: u64,
    interim: Interim,
    tunnel: Tunnel,
    wanted: Option<Box<Wanted>>,
    way_back: WayBack,
    window: Option<Window>,
}

/// What a flow begins with.
pub(crate) struct FlowStart {
    pub waiting: Waiting,
    pub upload: Option<Upload>,
    /// Whether a tunnel is asked for, and how it begins.
    pub tunnel: Tunnel,
    /// Conditions that the fetch does not know of.
    pub wanted: Option<Box<Wanted>>,
    /// Lines of a redirect back to the origin, where the visitor may be sent back.
    pub way_back: Option<String>,
    pub expectation: Expectation,
    /// Header lines of ours.
    pub lines: Vec<u8>,
    /// Another, for a response that says nothing of who may read it.
    pub reading: Vec<u8>,
    pub closing: Closing,
    pub is_head: bool,
    pub knows_chunks: bool,
    pub early: Early,
    pub trailing: Trailing,
    pub tags: TagLine,
}

/// Whether the tags of the response are shown: to our rescue servers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagLine {
    Hidden,
    Shown,
}

/// What becomes of interim responses of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    PassedOn,
    /// HTTP/1.0 does not know them.
    Dropped,
}

/// What becomes of the fields behind the body of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trailing {
    PassedOn,
    /// The visitor did not say that it takes them.
    Dropped,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Flowed {
    /// Bytes were written to the head, and this body follows them.
    More(Body),
    /// Nothing yet; the connection will be woken.
    Nothing,
    /// Nothing more comes, but the visitor may go on sending.
    HalfEnd,
    /// The response is whole.
    End,
    /// The response cannot be finished, and the visitor must see that.
    Broken,
}

#[derive(Debug)]
enum Source {
    Flight(Waiting),
    Parts(Parts),
    /// Not done until the status is there.
    Gathering {
        done: Option<u16>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// The body goes as it comes: its length was told, or the end of the connection tells it.
    Plain,
    Chunks,
    /// As `Chunks`, and a chunk waits for its end.
    InChunks,
    /// Nothing more comes.
    Over,
}

/// Whether the visitor may go back to the origin where a fetch fails and the fault is ours.
#[derive(Debug)]
enum WayBack {
    Closed,
    /// By a redirect with these lines.
    Open(String),
    Taken,
}

/// Whether the visitor waits to be told to send its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interim {
    None,
    Wanted,
}

impl Interim {
    fn of(expectation: Expectation, upload: Option<&Upload>) -> Self {
        match (expectation, upload) {
            (Expectation::Continue, Some(_)) => Self::Wanted,
            (Expectation::Continue, None) | (Expectation::None | Expectation::Odd, _) => Self::None,
        }
    }
}

/// Status of a request whose sender never finished it.
const BROKEN_OFF: u16 = 400;
/// Status of a visitor who is sent back to the origin.
const SENT_BACK: u16 = 302;
/// Status of what only the origin may ask a visitor's password for.
const UNAUTHORIZED: u16 = 401;

impl Flow {
    /// A flow from a flight.
    pub fn new(start: FlowStart) -> Self {
        let interim = Interim::of(start.expectation, start.upload.as_ref());
        Self {
            lines: start.lines,
            reading: start.reading,
            closing: start.closing,
            is_head: start.is_head,
            knows_chunks: start.knows_chunks,
            early: start.early,
            trailing: start.trailing,
            tags: start.tags,
            upload: start.upload,
            interim,
            tunnel: start.tunnel,
            wanted: start.wanted,
            way_back: start.way_back.map_or(WayBack::Closed, WayBack::Open),
            ..Self::empty(Source::Flight(start.waiting))
        }
    }

    /// A flow that gathers the request's body and answers it with 204.
    pub fn gather(gathering: Gathering, closing: Closing, expectation: Expectation) -> Self {
        let upload = Upload::gather(gathering);
        Self {
            closing,
            interim: Interim::of(expectation, Some(&upload)),
            upload: Some(upload),
            ..Self::empty(Source::Gathering { done: None })
        }
    }

    /// A flow from `source` that has nothing else.
    fn empty(source: Source) -> Self {
        Self {
            source,
            state: State::Head,
            lines: Vec::new(),
            reading: Vec::new(),
            closing: Closing::Stay,
            is_head: false,
            knows_chunks: true,
            early: Early::Dropped,
            trailing: Trailing::Dropped,
            tags: TagLine::Hidden,
            status: 0,
            upload: None,
            uploaded: 0,
            interim: Interim::None,
            tunnel: Tunnel::None,
            wanted: None,
            way_back: WayBack::Closed,
            window: None,
        }
    }

    /// Status of the response; 0 while there is none.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether its visitor is sent back to the origin, because of a failure of ours.
    pub const fn is_sent_back(&self) -> bool {
        matches!(self.way_back, WayBack::Taken)
    }

    /// What part the cache has in it.
    pub fn result(&self) -> CacheResult {
        match &self.source {
            Source::Flight(waiting) => waiting.result(),
            Source::Gathering { .. } | Source::Parts(_) => CacheResult::Passed,
        }
    }

    /// Whether it is from elsewhere.
    pub const fn is_fetched(&self) -> bool {
        match &self.source {
            Source::Flight(_) => true,
            Source::Gathering { .. } | Source::Parts(_) => false,
        }
    }

    /// Whether only the end of the connection tells the end of the response.
    pub fn ends_connection(&self) -> bool {
        self.closing == Closing::Close
    }

    /// Whether nothing more comes of the response than what was written last.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Writes the next bytes to `out`, or gives them as a body.
    pub fn advance(&mut self, now: Timestamp, date: &[u8], sent: u64, out: &mut Vec<u8>) -> Flowed {
        if self.interim == Interim::Wanted && self.state == State::Head {
            self.interim = Interim::None;
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            return Flowed::More(Body::Empty);
        }
        loop {
            if self.state == State::Over {
                return ended(out);
            }
            let progress = match &mut self.source {
                Source::Flight(waiting) => waiting.read(),
                Source::Parts(parts) => match parts.next(out) {
                    Some(body) => return Flowed::More(body),
                    None => {
                        self.state = State::Over;
                        continue;
                    }
                },
                Source::Gathering { done: None } => Progress::Nothing,
                Source::Gathering { done: Some(status) } => {
                    let status = *status;
                    return self.say(&gathered(status), date, out);
                }
            };
            match self.cut(progress) {
                Progress::Nothing if out.is_empty() => return Flowed::Nothing,
                Progress::Nothing => return Flowed::More(Body::Empty),
                Progress::Early(early) if self.early == Early::PassedOn => {
                    out.extend_from_slice(&early);
                }
                Progress::Early(_) => {}
                Progress::Head(head) if self.is_theirs(&head) => return self.turn_back(date, out),
                Progress::Head(head) => self.write_head(&head, now, out),
                Progress::Body(bytes) => {
                    self.begin_chunk(bytes.len() as u64, out);
                    return Flowed::More(Body::Memory(bytes));
                }
                Progress::File {
                    file,
                    offset,
                    length,
                } => {
                    self.begin_chunk(length, out);
                    return Flowed::More(stored(file, offset, length));
                }
                Progress::End if self.is_half_open() && out.is_empty() => return Flowed::HalfEnd,
                Progress::End if self.is_half_open() => return Flowed::More(Body::Empty),
                Progress::End => return self.end(out),
                Progress::Failed(error) => return self.fail(error, date, sent, out),
            }
        }
    }

    fn write_head(&mut self, head: &ResponseHead, now: Timestamp, out: &mut Vec<u8>) {
        let (status, length) = match self.judge(head) {
            Judgement::NotModified => (304, None),
            Judgement::Part { start, end } => {
                self.window = Some(Window::new(start, end));
                (206, Some(end - start))
            }
            Judgement::Unsatisfiable => (416, Some(0)),
            Judgement::Whole | Judgement::Parts(_) | Judgement::Failed => {
                (head.status.as_u16(), head.length)
            }
        };
        self.status = status;
        push_status(status, out);
        out.extend_from_slice(&head.lines);
        self.push_window(head.length, out);
        if self.settle_tunnel(status) == Settled::Open {
            out.extend_from_slice(b"\r\n");
            self.state = State::Plain;
            return;
        }
        out.extend_from_slice(&self.lines);
        if head.reading == Reading::Unsaid {
            out.extend_from_slice(&self.reading);
        }
        if self.tags == TagLine::Shown {
            head.tags.push_line(out);
        }
        push_forwarded(head, self.result(), now, out);
        let age = head.age(now).as_secs();
        if age > 0 {
            out.extend_from_slice(b"age: ");
            push_number(age, out);
            out.extend_from_slice(b"\r\n");
        }
        let has_body = !self.is_head && status != 204 && status != 304;
        match length {
            Some(length) if status != 204 => {
                out.extend_from_slice(b"content-length: ");
                push_number(length, out);
                out.extend_from_slice(b"\r\n");
            }
            None if has_body && self.knows_chunks => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            None if has_body => self.closing = Closing::Close,
            Some(_) | None => {}
        }
        self.state = match (has_body, length) {
            (false, _) | (true, Some(0)) => State::Over,
            (true, None) if self.knows_chunks => State::Chunks,
            (true, _) => State::Plain,
        };
        out.extend_from_slice(self.closing.line());
        out.extend_from_slice(b"\r\n");
        if self.state == State::Over {
            // Whoever waits only for a head leaves; the flight goes on for the others.
            self.lines.clear();
        }
    }

    /// Whether only the origin may show a response, and its visitor can go there.
    fn is_theirs(&self, head: &ResponseHead) -> bool {
        head.status.as_u16() == UNAUTHORIZED && matches!(self.way_back, WayBack::Open(_))
    }

    fn turn_back(&mut self, date: &[u8], out: &mut Vec<u8>) -> Flowed {
        let lines = self.take_way_back().unwrap_or_default();
        self.say(&Plain::with(SENT_BACK, lines), date, out)
    }

    /// The lines of the redirect back to the origin, where the visitor may go there.
    fn take_way_back(&mut self) -> Option<String> {
        match &mut self.way_back {
            WayBack::Open(lines) => {
                let lines = std::mem::take(lines);
                self.way_back = WayBack::Taken;
                Some(lines)
            }
            WayBack::Closed | WayBack::Taken => None,
        }
    }

    fn begin_chunk(&mut self, length: u64, out: &mut Vec<u8>) {
        match self.state {
            State::Chunks => self.state = State::InChunks,
            State::InChunks => out.extend_from_slice(b"\r\n"),
            State::Head | State::Plain | State::Over => return,
        }
        out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    }

    /// The fields behind the body that go to the visitor, once the body is over.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        match (&self.source, self.trailing) {
            (Source::Flight(waiting), Trailing::PassedOn) => waiting.trailers(),
            (Source::Flight(_) | Source::Parts(_) | Source::Gathering { .. }, _) => None,
        }
    }

    fn end_chunks(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"0\r\n");
        if let Some(trailers) = self.trailers() {
            trailers::push_lines(trailers, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Flowed {
        match self.state {
            State::Chunks => self.end_chunks(out),
            State::InChunks => {
                out.extend_from_slice(b"\r\n");
                self.end_chunks(out);
            }
            State::Head | State::Plain | State::Over => {}
        }
        self.state = State::Over;
        match out.is_empty() {
            true => Flowed::End,
            false => Flowed::More(Body::Empty),
        }
    }

    fn fail(&mut self, error: FetchError, date: &[u8], sent: u64, out: &mut Vec<u8>) -> Flowed {
        // An interim 100 is no head: those 25 bytes do not commit us.
        if self.state != State::Head || (sent > 0 && self.status != 0) {
            return Flowed::Broken;
        }
        if error.fault() == Fault::Ours
            && let Some(lines) = self.take_way_back()
        {
            return self.say(&Plain::with(SENT_BACK, lines), date, out);
        }
        let status = error.status().as_u16();
        let again = match status {
            503 => "Retry-After: 5\r\n",
            _ => "",
        };
        //= RFC 9209 section 2.1
        let why = error.proxy_status();
        let lines = format!("{again}Proxy-Status: levee; error={why}\r\n");
        self.say(&Plain::with(status, lines), date, out)
    }

    fn say(&mut self, plain: &Plain, date: &[u8], out: &mut Vec<u8>) -> Flowed {
        self.status = plain.status;
        self.state = State::Over;
        let text = plain.write_head(date, self.closing, out);
        let text = match self.is_head {
            true => "",
            false => text,
        };
        Flowed::More(match text {
            "" => Body::Empty,
            text => Body::Memory(Bytes::from_static(text.as_bytes())),
        })
    }
}

/// The answer to a body that was gathered, or could not be.
fn gathered(status: u16) -> Plain {
    match status {
        503 => Plain::with(503, "Retry-After: 5\r\n".into()),
        status => Plain::new(status),
    }
}

/// A response without a body is over with its head, which still has to go out.
const fn ended(out: &[u8]) -> Flowed {
    match out.is_empty() {
        true => Flowed::End,
        false => Flowed::More(Body::Empty),
    }
}

/// A piece of a body that lies on the disk.
const fn stored(file: std::sync::Arc<crate::disk::StoredFile>, offset: u64, left: u64) -> Body {
    let file = FileHandle::Stored(file);
    Body::File { file, offset, left }
}
