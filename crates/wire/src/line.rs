//! Cuts a stream of bytes into lines, and never holds more than one line of limited length.
//!
//! A peer decides how its bytes are chopped up, so the reader must not care: any chunking of the
//! same bytes gives the same lines. A line without an end costs at most the limit, then the stream
//! is given up for good: what follows an endless line has no meaning.

use thiserror::Error;

/// Longest line that both protocols accept, without its line end. An SOS with a name of 253
/// characters and every parameter we know has under 400, so this leaves room for those to come.
pub const LINE_MAX: usize = 1024;

/// Cuts chunks into lines that end with `\n`, with or without `\r` before it.
#[derive(Clone, Debug)]
pub struct LineReader {
    line: Vec<u8>,
    limit: usize,
    progress: Progress,
}

/// A line was longer than the limit. The stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("line is longer than {0} bytes")]
pub struct LineTooLong(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// `line` holds the beginning of a line, or nothing.
    Collecting,
    /// `line` was handed out and goes at the next call.
    HandedOut,
    /// A line was too long.
    GivenUp,
}

impl LineReader {
    /// A reader for lines of at most `limit` bytes before their end.
    pub const fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
            progress: Progress::Collecting,
        }
    }

    /// The next whole line without its end, or none when `rest` has no more; takes from `rest` what
    /// it has used. Call until none is given. After an error every call gives the same error.
    pub fn next_line(&mut self, rest: &mut &[u8]) -> Result<Option<&[u8]>, LineTooLong> {
        match self.progress {
            Progress::Collecting => {}
            Progress::HandedOut => {
                self.line.clear();
                self.progress = Progress::Collecting;
            }
            Progress::GivenUp => return Err(LineTooLong(self.limit)),
        }
        let end = rest.iter().position(|&byte| byte == b'\n');
        let piece = &rest[..end.unwrap_or(rest.len())];
        // One more than the limit may be held, because the last byte may be the `\r` of the end.
        if self.line.len() + piece.len() > self.limit + 1 {
            return self.give_up();
        }
        self.line.extend_from_slice(piece);
        if end.is_none() {
            *rest = &[];
            // A full buffer can only become a line if what came last is the `\r` of its end.
            return match self.line.len() > self.limit && self.line.last() != Some(&b'\r') {
                true => self.give_up(),
                false => Ok(None),
            };
        }
        *rest = &rest[piece.len() + 1..];
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.line.len() > self.limit {
            return self.give_up();
        }
        self.progress = Progress::HandedOut;
        Ok(Some(&self.line))
    }

    /// Whether a line has begun and not ended.
    pub fn is_inside_line(&self) -> bool {
        self.progress == Progress::Collecting && !self.line.is_empty()
    }

    /// Bytes held now; at most the limit and one.
    pub fn held(&self) -> usize {
        self.line.len()
    }

    fn give_up(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        self.progress = Progress::GivenUp;
        self.line = Vec::new();
        Err(LineTooLong(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> (Vec<String>, Result<(), LineTooLong>) {
        let mut reader = LineReader::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            loop {
                match reader.next_line(&mut rest) {
                    Ok(Some(line)) => found.push(String::from_utf8_lossy(line).into_owned()),
                    Ok(None) => break,
                    Err(error) => return (found, Err(error)),
                }
            }
        }
        (found, Ok(()))
    }

    #[test]
    fn lines_end_with_a_newline_and_perhaps_a_return() {
        assert_eq!(lines(9, &[b"one\ntwo\r\n\nthr"]).0, ["one", "two", ""]);
        assert_eq!(
            lines(9, &[b"on", b"e\r", b"\ntwo", b"\n"]).0,
            ["one", "two"]
        );
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(lines(3, &[b"abc\nabc\r\n"]).0, ["abc", "abc"]);
        assert_eq!(lines(3, &[b"abc", b"\r", b"\n"]).0, ["abc"]);
        assert_eq!(
            lines(3, &[b"a\nabcd\n"]),
            (vec!["a".into()], Err(LineTooLong(3)))
        );
        assert_eq!(lines(3, &[b"abcd"]).1, Err(LineTooLong(3)));
        assert_eq!(lines(3, &[b"abc\rd\n"]).1, Err(LineTooLong(3)));
    }

    #[test]
    fn a_reader_that_gave_up_stays_so_and_holds_nothing() {
        let mut reader = LineReader::new(3);
        assert!(reader.next_line(&mut &b"abcdefgh"[..]).is_err());
        assert!(reader.next_line(&mut &b"a\n"[..]).is_err());
        assert_eq!(reader.held(), 0);
        assert!(!reader.is_inside_line());
    }
}
