//! rustls's part of one connection: records to plaintext and back. It touches no socket.
//!
//! This is rustls's unbuffered interface, which keeps no buffer of its own: an idle connection
//! costs a third of what it does with the other one, because ciphertext passes through buffers that
//! all connections of a core share (record 0017). What it asks in return is kept here: bytes that
//! it did not use are shown to it again, and what it wants sent is sent in order.

use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, WriteTraffic};
use rustls::{Error, HandshakeKind, ProtocolVersion, ServerConfig};

/// Most plaintext in one record (RFC 8446 section 5.1).
pub(super) const RECORD: usize = 16 * 1024;
/// What a record has beside its plaintext, at most: header, content type, nonce and tag are 29
/// bytes; the rest is for a message of the protocol that goes before the first one.
pub(super) const RECORD_EXTRA: usize = 64;
/// Room for a message of the protocol before the first record, an answer to a key update.
pub(super) const MESSAGE_EXTRA: usize = 512;

/// See the head of this file.
pub(super) struct Session(UnbufferedServerConnection);

/// What a finished handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub version: Version,
    pub resumption: Resumption,
}

/// The protocol's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Tls12,
    Tls13,
}

/// Whether a connection began with what an earlier one had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// With a signature.
    Full,
    /// By a ticket.
    Resumed,
}

/// What became of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digested {
    /// Bytes from the start of the input that are done with.
    pub used: usize,
    /// The other side said that it sends no more.
    pub is_closed: bool,
}

/// Where plaintext goes: into the reader's room, and what does not fit into a buffer.
pub(super) struct Plaintext<'a> {
    pub room: &'a mut [u8],
    pub filled: usize,
    pub rest: &'a mut Vec<u8>,
}

impl Plaintext<'_> {
    fn take(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(self.room.len() - self.filled);
        self.room[self.filled..self.filled + fits].copy_from_slice(&bytes[..fits]);
        self.filled += fits;
        self.rest.extend_from_slice(&bytes[fits..]);
    }
}

impl Session {
    pub fn new(settings: Arc<ServerConfig>) -> Result<Self, Error> {
        UnbufferedServerConnection::new(settings).map(Self)
    }

    /// What the handshake agreed on, once it is done.
    pub fn agreed(&self) -> Option<Agreed> {
        if self.0.is_handshaking() {
            return None;
        }
        // Nothing older than these two is offered.
        let version = match self.0.protocol_version()? == ProtocolVersion::TLSv1_3 {
            true => Version::Tls13,
            false => Version::Tls12,
        };
        let resumption = match self.0.handshake_kind()? {
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => Resumption::Full,
            HandshakeKind::Resumed => Resumption::Resumed,
        };
        Some(Agreed {
            version,
            resumption,
        })
    }

    /// Takes the whole records at the start of `input`: gives their plaintext to `plaintext` and
    /// appends to `out` what must be sent. After an error what `out` has, an alert, is the last
    /// word.
    pub fn digest(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        plaintext: &mut Plaintext<'_>,
    ) -> Result<Digested, Error> {
        let mut used = 0;
        let mut is_closed = false;
        loop {
            let status = self.0.process_tls_records(&mut input[used..]);
            let discard = status.discard;
            let state = match status.state {
                Ok(state) => state,
                Err(error) => {
                    self.last_word(out);
                    return Err(error);
                }
            };
            let mut more = 0;
            let go_on = match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        more += record.discard;
                        plaintext.take(record.payload);
                    }
                    true
                }
                ConnectionState::EncodeTlsData(mut message) => {
                    append(out, |room| message.encode(room))?;
                    true
                }
                ConnectionState::TransmitTlsData(message) => {
                    // It goes out with whatever is written next, and in this order.
                    message.done();
                    true
                }
                ConnectionState::PeerClosed => {
                    is_closed = true;
                    true
                }
                ConnectionState::Closed => {
                    is_closed = true;
                    false
                }
                ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake => false,
                // We do not offer early data: whoever records it can play it again.
                ConnectionState::ReadEarlyData(_) | _ => {
                    return Err(Error::General("early data that was not offered".into()));
                }
            };
            used += discard + more;
            if !go_on {
                return Ok(Digested { used, is_closed });
            }
        }
    }

    /// Encrypts `pieces` one after another into `out` and gives the number of its bytes that are
    /// used. `partial` is what [`Session::digest`] left of its last input.
    pub fn encrypt(
        &mut self,
        partial: &mut [u8],
        pieces: [&[u8]; 2],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut filled = 0;
        let mut writer = self.writer(partial)?;
        for piece in pieces {
            if !piece.is_empty() {
                filled += writer.encrypt(piece, &mut out[filled..]).map_err(told)?;
            }
        }
        Ok(filled)
    }

    /// Appends the words "I send no more" to `out`.
    pub fn say_goodbye(&mut self, partial: &mut [u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let mut writer = self.writer(partial)?;
        let start = out.len();
        out.resize(start + MESSAGE_EXTRA, 0);
        let length = writer.queue_close_notify(&mut out[start..]);
        out.truncate(start + *length.as_ref().unwrap_or(&0));
        length.map(drop).map_err(told)
    }

    fn writer(&mut self, partial: &mut [u8]) -> Result<Writer<'_>, Error> {
        match self.0.process_tls_records(partial).state? {
            ConnectionState::WriteTraffic(writer) => Ok(writer),
            ConnectionState::ReadTraffic(_)
            | ConnectionState::PeerClosed
            | ConnectionState::Closed
            | ConnectionState::ReadEarlyData(_)
            | ConnectionState::EncodeTlsData(_)
            | ConnectionState::TransmitTlsData(_)
            | ConnectionState::BlockedHandshake
            | _ => Err(Error::HandshakeNotComplete),
        }
    }

    /// Appends the alert that rustls has ready after an error.
    fn last_word(&mut self, out: &mut Vec<u8>) {
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) =
            self.0.process_tls_records(&mut []).state
        {
            // Without it the visitor learns less, and nothing else is lost.
            let _ = append(out, |room| alert.encode(room));
        }
    }
}

type Writer<'a> = WriteTraffic<'a, rustls::server::ServerConnectionData>;

/// Appends what `encode` writes into a room that is large enough.
fn append(
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let start = out.len();
    let mut room = MESSAGE_EXTRA;
    loop {
        out.resize(start + room, 0);
        match encode(&mut out[start..]) {
            Ok(length) => {
                out.truncate(start + length);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(needs)) if needs.required_size > room => {
                room = needs.required_size;
            }
            Err(error @ (EncodeError::InsufficientSize(_) | EncodeError::AlreadyEncoded)) => {
                out.truncate(start);
                return Err(Error::General(error.to_string()));
            }
        }
    }
}

fn told(error: EncryptError) -> Error {
    Error::General(error.to_string())
}
