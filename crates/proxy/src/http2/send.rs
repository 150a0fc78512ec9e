//! A response on its way into a stream.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::{Bytes, BytesMut};
use levee_net::Sent;

use super::stream::{Part, Stream};
use crate::answer::{Answer, Body};

/// Most of a file that is read at once: as much as the library takes for one stream.
const FILE_PIECE: usize = super::session::SEND_BYTES_MAX;

impl Answer {
    /// Gives `stream` what is ready and fits, up to about `limit` bytes: a head goes in one piece.
    pub(crate) fn write_frames(&mut self, stream: &mut Stream, limit: usize) -> io::Result<Sent> {
        let mut sent = 0;
        while sent < limit && self.ready() > 0 {
            let step = match stream.awaits_head() {
                true => {
                    //= RFC 9113 section 8.1: where nothing follows a head, it says so itself; calls
                    // of gRPC that fail are told by that alone.
                    let is_all = self.flow.as_ref().is_none_or(|flow| flow.is_over());
                    let after = match is_all && self.body.length() == 0 {
                        true => Part::Last,
                        false => Part::Middle,
                    };
                    Some(stream.send_head(&self.head[self.head_sent..], after)?)
                }
                false => self.write_data(stream, limit - sent)?,
            };
            match step {
                Some(bytes) => {
                    self.advance(bytes);
                    sent += bytes;
                }
                None if sent == 0 => return Ok(Sent::WouldBlock),
                None => break,
            }
        }
        Ok(Sent::Bytes(sent))
    }

    /// Sends what fits of the text behind the head, or of the body; none where nothing fits.
    fn write_data(&self, stream: &mut Stream, limit: usize) -> io::Result<Option<usize>> {
        let text = &self.head[self.head_sent..];
        let length = match text.len() {
            0 => usize::try_from(self.body.length()).unwrap_or(usize::MAX),
            length => length,
        };
        let Some(room) = stream.room(length.min(limit).min(FILE_PIECE))? else {
            return Ok(None);
        };
        let data = match &self.body {
            _ if !text.is_empty() => Bytes::copy_from_slice(&text[..room]),
            Body::Empty => Bytes::new(),
            Body::Memory(bytes) => bytes.slice(..room),
            Body::File { file, offset, .. } => {
                let mut piece = BytesMut::zeroed(room);
                match file.as_file().read_at(&mut piece, *offset)? {
                    // The file was cut while it was sent.
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => piece.truncate(read),
                }
                piece.freeze()
            }
        };
        let length = data.len();
        let part = match self.flow.is_none() && length as u64 == self.ready() {
            true => Part::Last,
            false => Part::Middle,
        };
        stream.send_data(data, part)?;
        Ok(Some(length))
    }
}
