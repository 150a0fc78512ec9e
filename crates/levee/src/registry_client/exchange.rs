//! One connection to a registry, and one exchange after the other on it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{DirectoryError, Nonsense, RegistryClientSettings};
use crate::community_socket;
use crate::rescue_link::LinkCharge;
use crate::trust::{Channel, CommunityStream, Counterpart, Denied, Trust};
use levee_trust::Deed;
use levee_wire::registry::{
    Accusation, Entry, ProofWord, Reply, ReplyLine, Request, Search, parse_reply_line, split_answer,
};
use levee_wire::{LINE_MAX, LineReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An open connection.
pub(super) struct Exchange {
    registry: SocketAddr,
    stream: CommunityStream,
    trust: Arc<Trust>,
    /// Who has proved to be the registry.
    counterpart: Counterpart,
    reader: LineReader,
    number: u32,
    charge: LinkCharge,
}

impl Exchange {
    /// Opens a connection. Dropped half-way, the attempt is given up.
    pub(super) async fn open(
        settings: &RegistryClientSettings,
        registry: SocketAddr,
    ) -> io::Result<Self> {
        let trust = Arc::clone(&settings.trust);
        let stream = community_socket::connect(settings.source, registry).await?;
        let (stream, counterpart) = trust.connect(stream, Channel::Registry).await?;
        may_answer(&trust, counterpart, registry).map_err(io::Error::other)?;
        Ok(Self {
            registry,
            stream,
            trust,
            counterpart,
            reader: LineReader::new(LINE_MAX),
            number: 0,
            charge: settings.charge.clone(),
        })
    }

    /// Asks and waits for the answer. After an error, or dropped half-way, the connection is of no
    /// more use: what comes next on it might belong to this request.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Reply, DirectoryError> {
        self.number = self.number.wrapping_add(1).max(1);
        // It may have been expelled since.
        may_answer(&self.trust, self.counterpart, self.registry).map_err(|why| {
            let registry = self.registry;
            DirectoryError::Denied { registry, why }
        })?;
        let request = &self.signed(request);
        let mut bytes = Vec::with_capacity(128);
        request.encode(self.number, &mut bytes);
        (self.charge)(bytes.len() as u64 + PACKET_OVERHEAD);
        let writing = async {
            self.stream.write_all(&bytes).await?;
            self.stream.flush().await
        };
        if writing.await.is_err() {
            return Err(self.closed());
        }
        let entries_max = match request {
            Request::Search(search) => usize::try_from(search.count).unwrap_or(usize::MAX),
            Request::Query(_) => 1,
            Request::Accusations => ENTRIES_MAX,
            Request::Register(_)
            | Request::Deregister(_)
            | Request::Accuse(_)
            | Request::Unknown(_) => 0,
        };
        let answer = self.read_reply(entries_max.min(ENTRIES_MAX)).await?;
        self.check_answer(request, &answer)?;
        let Answer {
            entries,
            said,
            count,
            ..
        } = answer;
        Ok(match request {
            Request::Register(_) => Reply::Registered(Duration::from_secs(u64::from(count))),
            Request::Search(_) | Request::Query(_) => Reply::Found(self.believed(entries)),
            Request::Accuse(_) => Reply::Noted(count),
            Request::Accusations => Reply::Said(self.proved(said)),
            Request::Deregister(_) | Request::Unknown(_) => Reply::Removed(count),
        })
    }

    /// Waits until the other side closes, or says something that was not asked for. Dropped
    /// half-way, nothing is lost.
    pub(super) async fn lapse(&mut self) {
        let mut byte = [0; 1];
        // Nothing is due: anything at all, an end, an error or a byte, spoils the connection.
        let _ = self.stream.read(&mut byte).await;
    }

    /// The request as it goes out: with a fresh stamp, a proof, or a number that nobody can guess.
    fn signed(&self, request: &Request) -> Request {
        match request {
            Request::Register(entry) => Request::Register(self.trust.signed_entry(entry.clone())),
            Request::Deregister(farewell) => {
                Request::Deregister(self.trust.signed_farewell(farewell.clone()))
            }
            Request::Search(search) if self.trust.is_closed() => Request::Search(Search {
                // Without randomness the answer is bound to the connection alone.
                nonce: Some(getrandom::u64().unwrap_or_default()),
                ..search.clone()
            }),
            Request::Search(_)
            | Request::Query(_)
            | Request::Accuse(_)
            | Request::Accusations
            | Request::Unknown(_) => request.clone(),
        }
    }

    fn check_answer(&self, request: &Request, answer: &Answer) -> Result<(), DirectoryError> {
        let Request::Search(Search {
            nonce: Some(nonce), ..
        }) = request
        else {
            return Ok(());
        };
        let what = format!("answer of registry {}", self.registry);
        let said = (*nonce, answer.lines.as_str());
        let signed = answer.signed.as_ref();
        self.trust
            .check_answer(said, signed, self.counterpart, &what)
            .map_err(|why| {
                let registry = self.registry;
                DirectoryError::Denied { registry, why }
            })
    }

    /// Those entries whose sites have said so themselves. One that was altered costs only itself.
    fn believed(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let registry = format!("registry {}", self.registry);
        entries.retain(|entry| self.trust.check_entry(entry, &registry).is_ok());
        entries
    }

    /// The same of what members say of each other.
    fn proved(&self, mut said: Vec<Accusation>) -> Vec<Accusation> {
        let registry = format!("registry {}", self.registry);
        said.retain(|said| self.trust.check_accusation(said, &registry).is_ok());
        said
    }

    async fn read_reply(&mut self, max: usize) -> Result<Answer, DirectoryError> {
        let mut answer = Answer::default();
        let mut buffer = [0; 4096];
        loop {
            let count = match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return Err(self.closed()),
                Ok(count) => count,
            };
            let mut rest = &buffer[..count];
            loop {
                let (number, line) = match self.reader.next_line(&mut rest) {
                    Ok(Some(line)) => {
                        let read = parse_reply_line(line)
                            .map_err(|error| garbage(self.registry, error.into()))?;
                        answer.note(line, &read.1);
                        read
                    }
                    Ok(None) => break,
                    Err(error) => return Err(garbage(self.registry, error.into())),
                };
                if number != self.number {
                    return Err(garbage(self.registry, Nonsense::WrongNumber));
                }
                match line {
                    ReplyLine::Entry(_) | ReplyLine::Accusation(_) if answer.length() >= max => {
                        return Err(garbage(self.registry, Nonsense::TooManyEntries));
                    }
                    ReplyLine::Entry(entry) => answer.entries.push(entry),
                    ReplyLine::Accusation(said) => answer.said.push(*said),
                    ReplyLine::Done(count) => {
                        answer.count = count;
                        return Ok(answer);
                    }
                    ReplyLine::Refused { code, text } => {
                        let registry = self.registry;
                        return Err(DirectoryError::Refused {
                            registry,
                            code,
                            text,
                        });
                    }
                }
            }
        }
    }

    fn closed(&self) -> DirectoryError {
        let registry = self.registry;
        match self.number == 1 && !self.trust.is_closed() {
            true => DirectoryError::ClosedAtOnce { registry },
            false => DirectoryError::Closed { registry },
        }
    }
}

fn may_answer(trust: &Trust, other: Counterpart, registry: SocketAddr) -> Result<(), Denied> {
    let what = format!("registry at {registry}");
    trust
        .permits(other, Deed::AnswerSearches, &what)
        .map(|_| ())
}

/// An answer as it came.
#[derive(Default)]
struct Answer {
    entries: Vec<Entry>,
    said: Vec<Accusation>,
    count: u32,
    /// Its lines without the signature at the end of the last one, a line end between them.
    lines: String,
    signed: Option<(ProofWord, ProofWord)>,
}

impl Answer {
    const fn length(&self) -> usize {
        self.entries.len() + self.said.len()
    }

    fn note(&mut self, line: &[u8], read: &ReplyLine) {
        let line = String::from_utf8_lossy(line);
        if !self.lines.is_empty() {
            self.lines.push('\n');
        }
        let split = match read {
            ReplyLine::Done(_) => split_answer(&line),
            // What stands at the end of an entry is the proof of its site.
            ReplyLine::Entry(_) | ReplyLine::Accusation(_) | ReplyLine::Refused { .. } => None,
        };
        let (covered, signed) =
            split.map_or((&*line, None), |(covered, signed)| (covered, Some(signed)));
        self.lines.push_str(covered);
        self.signed = signed;
    }
}

const fn garbage(registry: SocketAddr, what: Nonsense) -> DirectoryError {
    DirectoryError::Garbage { registry, what }
}

/// No search of ours asks for more.
const ENTRIES_MAX: usize = 1024;
/// Bytes on the link beside a message: the headers of its packet and of the one that acknowledges
/// it.
const PACKET_OVERHEAD: u64 = 70;
