//! One connection to a registry, and one exchange after the other on it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use levee_wire::registry::{Entry, Reply, ReplyLine, Request, parse_reply_line};
use levee_wire::{LINE_MAX, LineReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{DirectoryError, Nonsense, RegistryClientSettings};
use crate::community_socket;
use crate::rescue_link::LinkCharge;

/// An open connection.
pub(super) struct Exchange {
    registry: SocketAddr,
    stream: TcpStream,
    reader: LineReader,
    number: u32,
    charge: LinkCharge,
}

impl Exchange {
    /// Opens a connection. Dropped half-way, the attempt is given up.
    pub(super) async fn open(settings: &RegistryClientSettings) -> io::Result<Self> {
        let registry = settings.registry;
        Ok(Self {
            registry,
            stream: community_socket::connect(settings.source, registry).await?,
            reader: LineReader::new(LINE_MAX),
            number: 0,
            charge: settings.charge.clone(),
        })
    }

    /// Asks and waits for the answer. After an error, or dropped half-way, the connection is of no
    /// more use: what comes next on it might belong to this request.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Reply, DirectoryError> {
        self.number = self.number.wrapping_add(1).max(1);
        let mut bytes = Vec::with_capacity(128);
        request.encode(self.number, &mut bytes);
        (self.charge)(bytes.len() as u64 + PACKET_OVERHEAD);
        if self.stream.write_all(&bytes).await.is_err() {
            return Err(self.closed());
        }
        let entries_max = match request {
            Request::Search(search) => usize::try_from(search.count).unwrap_or(usize::MAX),
            Request::Query(_) => 1,
            Request::Register(_) | Request::Deregister(_) | Request::Unknown(_) => 0,
        };
        let (entries, count) = self.read_reply(entries_max.min(ENTRIES_MAX)).await?;
        Ok(match request {
            Request::Register(_) => Reply::Registered(Duration::from_secs(u64::from(count))),
            Request::Search(_) | Request::Query(_) => Reply::Found(entries),
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

    async fn read_reply(&mut self, max: usize) -> Result<(Vec<Entry>, u32), DirectoryError> {
        let mut entries = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let count = match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return Err(self.closed()),
                Ok(count) => count,
            };
            let mut rest = &buffer[..count];
            loop {
                let (number, line) = match self.reader.next_line(&mut rest) {
                    Ok(Some(line)) => parse_reply_line(line)
                        .map_err(|error| garbage(self.registry, error.into()))?,
                    Ok(None) => break,
                    Err(error) => return Err(garbage(self.registry, error.into())),
                };
                if number != self.number {
                    return Err(garbage(self.registry, Nonsense::WrongNumber));
                }
                match line {
                    ReplyLine::Entry(_) if entries.len() >= max => {
                        return Err(garbage(self.registry, Nonsense::TooManyEntries));
                    }
                    ReplyLine::Entry(entry) => entries.push(entry),
                    ReplyLine::Done(count) => return Ok((entries, count)),
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

    const fn closed(&self) -> DirectoryError {
        let registry = self.registry;
        DirectoryError::Closed { registry }
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
