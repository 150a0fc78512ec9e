//! Bodies that come in: how much of what was read belongs to the body, and where it ends.
//!
//! ```text
//! Size ── CR LF ──▶ Data ── CR LF ──▶ Size ...
//!   └─ size 0 ──▶ Trailers ── empty line ──▶ Done
//! ```
//!
//! RFC 9112 section 7.1, strictly: line ends are CR LF, sizes are hexadecimal digits and nothing
//! else. Extensions are thrown away, within limits. Trailers must be as well-formed as the lines of
//! a head: half a body followed by a request must not pass for a body with trailers.

use thiserror::Error;

use crate::request::BodyLength;

/// A request body that has not been read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Chunked),
    /// What is no HTTP any more: all of it, until the visitor ends.
    Tunnel,
    /// It made no sense, or was not read on: nobody knows where it ends, so nothing that follows
    /// may be taken for a request.
    Lost,
    /// The body is over, or there was none.
    Done,
}

/// State of the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunked {
    phase: Phase,
    /// Bytes of the current size line or of all trailers.
    line_bytes: u16,
    /// Bytes of size lines that no data makes up for.
    excess: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Size { value: u64, digits: u8 },
    Extension { value: u64 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerEnd,
    BodyEnd,
}

/// One step: `used` bytes of the input are done with, of which the last `data` are body, or the
/// last `trailers` lines behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub used: usize,
    pub data: usize,
    pub trailers: usize,
}

/// A body that is not in the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("bad chunk")]
pub(crate) struct BadChunk;

/// Longest chunk size line with its extensions, and all trailers together: room for a signature,
/// not for a hiding place.
const LINE_BYTES_MAX: u16 = 1024;
/// Size line that every chunk may have, whatever its data: 16 digits and their line ends.
const LINE_BYTES_FREE: u64 = 20;
/// Most bytes of size lines beyond that and beyond the data: a chunk of one byte with an extension
/// of a thousand makes us read a thousand times what arrives (CVE-2023-39326).
const EXCESS_MAX: u64 = 16 * 1024;

impl Incoming {
    /// The body that a head announced.
    pub const fn of(length: BodyLength) -> Self {
        match length {
            BodyLength::None => Self::Done,
            BodyLength::Known(bytes) => Self::Length(bytes),
            BodyLength::Chunked => Self::Chunked(Chunked {
                phase: Phase::Size {
                    value: 0,
                    digits: 0,
                },
                line_bytes: 0,
                excess: 0,
            }),
        }
    }

    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Takes the next piece of the body from the start of `input`. No progress means that more
    /// input is needed, or that the body is over.
    pub fn take(&mut self, input: &[u8]) -> Result<Step, BadChunk> {
        match self {
            Self::Done => Ok(Step::default()),
            Self::Length(left) => {
                let length = cut(input, *left);
                *left -= length as u64;
                if *left == 0 {
                    *self = Self::Done;
                }
                Ok(Step::of_data(length, length))
            }
            Self::Tunnel => Ok(Step::of_data(input.len(), input.len())),
            Self::Lost => Err(BadChunk),
            Self::Chunked(chunked) => {
                let taken = chunked.take(input);
                match taken {
                    Ok((_, End::Reached)) => *self = Self::Done,
                    Ok((_, End::NotYet)) => {}
                    Err(BadChunk) => *self = Self::Lost,
                }
                taken.map(|(step, _)| step)
            }
        }
    }
}

impl Step {
    const fn of_data(used: usize, data: usize) -> Self {
        Self {
            used,
            data,
            trailers: 0,
        }
    }
}

#[derive(PartialEq, Eq)]
enum End {
    NotYet,
    Reached,
}

impl Chunked {
    fn take(&mut self, input: &[u8]) -> Result<(Step, End), BadChunk> {
        let (mut used, mut trailers) = (0, 0);
        while let Some(&byte) = input.get(used) {
            if let Phase::Data { left } = &mut self.phase {
                let length = cut(&input[used..], *left);
                *left -= length as u64;
                if *left == 0 {
                    self.phase = Phase::DataCr;
                }
                return Ok((Step::of_data(used + length, length), End::NotYet));
            }
            used += 1;
            trailers += usize::from(self.phase.is_trailer());
            let Some(phase) = self.next(byte)? else {
                let step = Step {
                    used,
                    data: 0,
                    trailers,
                };
                return Ok((step, End::Reached));
            };
            self.phase = phase;
        }
        let step = Step {
            used,
            data: 0,
            trailers,
        };
        Ok((step, End::NotYet))
    }

    /// The phase after `byte`; none at the end of the body.
    fn next(&mut self, byte: u8) -> Result<Option<Phase>, BadChunk> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(BadChunk);
        }
        let phase = match (self.phase, byte) {
            (Phase::Size { value, digits }, _) => size(value, digits, byte)?,
            (Phase::Extension { value }, b'\r') => Phase::SizeEnd { value },
            (Phase::Extension { value }, _) if is_text(byte) => Phase::Extension { value },
            (Phase::SizeEnd { value: 0 }, b'\n') => Phase::TrailerStart,
            (Phase::SizeEnd { value }, b'\n') => {
                self.note_excess(value)?;
                Phase::Data { left: value }
            }
            (Phase::DataCr, b'\r') => Phase::DataLf,
            (Phase::DataLf, b'\n') => {
                self.line_bytes = 0;
                Phase::Size {
                    value: 0,
                    digits: 0,
                }
            }
            (Phase::TrailerStart, b'\r') => Phase::BodyEnd,
            (Phase::BodyEnd, b'\n') => return Ok(None),
            (Phase::TrailerEnd, b'\n') => Phase::TrailerStart,
            (Phase::TrailerStart | Phase::TrailerName, _) if is_token(byte) => Phase::TrailerName,
            (Phase::TrailerName, b':') => Phase::Trailer,
            (Phase::Trailer, b'\r') => Phase::TrailerEnd,
            (Phase::Trailer, _) if is_text(byte) => Phase::Trailer,
            (
                Phase::Extension { .. }
                | Phase::TrailerStart
                | Phase::TrailerName
                | Phase::Trailer
                | Phase::SizeEnd { .. }
                | Phase::Data { .. }
                | Phase::DataCr
                | Phase::DataLf
                | Phase::TrailerEnd
                | Phase::BodyEnd,
                _,
            ) => return Err(BadChunk),
        };
        Ok(Some(phase))
    }
}

impl Chunked {
    /// A size line for `data` bytes is over.
    fn note_excess(&mut self, data: u64) -> Result<(), BadChunk> {
        let before = u64::from(self.excess) + u64::from(self.line_bytes);
        let excess = before.saturating_sub(data.saturating_add(LINE_BYTES_FREE));
        if excess > EXCESS_MAX {
            return Err(BadChunk);
        }
        self.excess = excess as u16;
        Ok(())
    }
}

impl Phase {
    const fn is_trailer(self) -> bool {
        match self {
            Self::TrailerStart
            | Self::TrailerName
            | Self::Trailer
            | Self::TrailerEnd
            | Self::BodyEnd => true,
            Self::Size { .. }
            | Self::Extension { .. }
            | Self::SizeEnd { .. }
            | Self::Data { .. }
            | Self::DataCr
            | Self::DataLf => false,
        }
    }
}

/// What a value may hold: no control characters but tabs.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

/// What a name may hold (RFC 9110 section 5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.'
        | b'^'..=b'`' | b'|' | b'~')
}

fn size(value: u64, digits: u8, byte: u8) -> Result<Phase, BadChunk> {
    match (byte, digits) {
        (b'\r', 1..) => Ok(Phase::SizeEnd { value }),
        (b';', 1..) => Ok(Phase::Extension { value }),
        // 15 digits are more bytes than anybody has, and can never overflow.
        (_, 0..15) => {
            let digit = (byte as char).to_digit(16).ok_or(BadChunk)?;
            Ok(Phase::Size {
                value: value * 16 + u64::from(digit),
                digits: digits + 1,
            })
        }
        (_, _) => Err(BadChunk),
    }
}

fn cut(input: &[u8], left: u64) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(input.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `input` in pieces of `piece` bytes; the body, and what was left over.
    fn read(input: &[u8], piece: usize) -> Result<(Vec<u8>, usize, Incoming), BadChunk> {
        let mut incoming = Incoming::of(BodyLength::Chunked);
        let mut body = Vec::new();
        let mut used = 0;
        while used < input.len() && !incoming.is_done() {
            let end = input.len().min(used + piece);
            let step = incoming.take(&input[used..end])?;
            used += step.used;
            body.extend_from_slice(&input[used - step.data..used]);
        }
        Ok((body, input.len() - used, incoming))
    }

    #[test]
    fn chunks_are_joined_however_they_are_cut() {
        let input = b"5;a=b\r\nhello\r\n00B\r\n, wide world\r\n"
            .iter()
            .chain(b"0\r\nTrailer: x\r\n\r\nGET");
        // 0xB is 11, the text has 12 bytes: the coding notices.
        let input: Vec<u8> = input.copied().collect();
        assert_eq!(read(&input, 100), Err(BadChunk));
        let good = b"5;a=b\r\nhello\r\n00c\r\n, wide world\r\n0\r\nTrailer: x\r\n\r\nGET";
        for piece in 1..good.len() {
            let (body, left, incoming) = read(good, piece).unwrap();
            assert_eq!(body, b"hello, wide world");
            assert_eq!(left, 3);
            assert!(incoming.is_done());
        }
    }

    #[test]
    fn bad_chunks_are_refused() {
        let table: [&[u8]; 18] = [
            b"x\r\n",
            b"\r\n",
            b"-1\r\n",
            b"0x5\r\nhello\r\n",
            b" 5\r\nhello\r\n",
            b"5 \r\nhello\r\n",
            b"5\nhello\r\n",
            b"5;a\nhello\r\n",
            b"5\r\nhelloo\r\n",
            b"5\r\nhello\n",
            b"1000000000000000\r\n",
            b"0\r\na\nb\r\n\r\n",
            // Trailers that are no header lines; the first is a request.
            b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"0\r\n a: b\r\n\r\n",
            b"0\r\na : b\r\n\r\n",
            b"0\r\n: b\r\n\r\n",
            b"0\r\na: b\r\n c\r\n\r\n",
            b"0\r\na: \x01\r\n\r\n",
        ];
        for input in table {
            assert_eq!(read(input, 100), Err(BadChunk), "{input:?}");
        }
        let long = [b"5;".as_slice(), &[b'a'; 2000]].concat();
        assert_eq!(read(&long, 100), Err(BadChunk));
    }

    #[test]
    fn nothing_makes_up_for_a_bad_chunk() {
        let mut incoming = Incoming::of(BodyLength::Chunked);
        assert_eq!(incoming.take(b"zz\r\n"), Err(BadChunk));
        assert_eq!(incoming.take(b"0\r\n\r\n"), Err(BadChunk));
        assert!(!incoming.is_done());
    }

    #[test]
    fn lines_of_sizes_may_not_outweigh_the_data() {
        let chunk = |extension: usize, data: usize| {
            let (extension, data) = ("e".repeat(extension), "d".repeat(data));
            format!("{:x};{extension}\r\n{data}\r\n", data.len())
        };
        let tiny = chunk(60, 1).repeat(1000) + "0\r\n\r\n";
        assert_eq!(read(tiny.as_bytes(), 1000), Err(BadChunk));
        let signed = chunk(100, 8192).repeat(1000) + "0\r\n\r\n";
        assert!(read(signed.as_bytes(), 1000).unwrap().2.is_done());
        let bare = "1\r\nd\r\n".repeat(10_000) + "0\r\n\r\n";
        assert!(read(bare.as_bytes(), 1000).unwrap().2.is_done());
    }

    #[test]
    fn trailers_are_given_to_whoever_wants_them() {
        let input = b"3\r\nabc\r\n0;x\r\nA: b\r\nC: d\r\n\r\nGET";
        for piece in 1..input.len() {
            let mut incoming = Incoming::of(BodyLength::Chunked);
            let (mut used, mut trailers) = (0, Vec::new());
            while !incoming.is_done() {
                let end = input.len().min(used + piece);
                let step = incoming.take(&input[used..end]).unwrap();
                used += step.used;
                trailers.extend_from_slice(&input[used - step.trailers..used]);
            }
            assert_eq!(trailers, b"A: b\r\nC: d\r\n\r\n");
        }
    }

    #[test]
    fn a_known_length_ends_where_it_says() {
        let mut incoming = Incoming::of(BodyLength::Known(5));
        assert_eq!(incoming.take(b"hel"), Ok(Step::of_data(3, 3)));
        assert_eq!(incoming.take(b"loGET"), Ok(Step::of_data(2, 2)));
        assert!(incoming.is_done());
        assert!(Incoming::of(BodyLength::None).is_done());
    }
}
