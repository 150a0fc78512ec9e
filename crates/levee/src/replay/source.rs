//! Where lines come from: files, compressed or not, one after another, or standard input.
//!
//! A log may be larger than memory: one line is held at a time, and of one that is endless only its
//! beginning. Compressed logs are recognised by their first bytes, not by their names.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// Longest line that is looked at: a request line of 8 kB grows fourfold when it is escaped, and
/// other headers stand beside it.
pub const LINE_BYTES_MAX: usize = 65_536;

/// Large reads, so that a log of ten gigabytes costs few of them.
const BUFFER_BYTES: usize = 256 * 1024;

/// The first bytes of a gzip file (RFC 1952 section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Several logs as one stream of lines.
pub struct Source {
    waiting: VecDeque<PathBuf>,
    current: Option<(PathBuf, u64, Box<dyn BufRead>)>,
    read: Arc<AtomicU64>,
    size: Option<u64>,
}

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The log.
    pub log: PathBuf,
    /// The number of the line, from 1.
    pub line: u64,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A line, whole.
    Line,
    /// The beginning of a line that is too long; the rest was skipped.
    Beginning,
    /// There are no more.
    Nothing,
}

impl Source {
    /// Looks at all logs, so that the last of them is not missed after an hour, and opens the
    /// first.
    ///
    /// # Errors
    /// A sentence about the first log that cannot be read.
    pub fn open(logs: &[PathBuf]) -> Result<Self, String> {
        let mut size = Some(0);
        for log in logs.iter().filter(|log| !is_stdin(log)) {
            let told = |error: &dyn std::fmt::Display| cannot_read(log, error);
            let about = File::open(log).and_then(|file| file.metadata());
            let about = about.map_err(|error| told(&error))?;
            if about.is_dir() {
                return Err(told(&"it is a folder; name the logs in it"));
            }
            size = size.map(|size| size + about.len());
        }
        if logs.iter().any(|log| is_stdin(log)) {
            size = None;
        }
        Ok(Self {
            waiting: logs.iter().cloned().collect(),
            current: None,
            read: Arc::default(),
            size,
        })
    }

    /// Reads the next line into `line`, without its end.
    ///
    /// # Errors
    /// A sentence, when a log breaks off.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<Taken, String> {
        loop {
            line.clear();
            let Some((path, number, reader)) = &mut self.current else {
                let Some(path) = self.waiting.pop_front() else {
                    return Ok(Taken::Nothing);
                };
                let reader = open(&path, &self.read).map_err(|error| cannot_read(&path, &error))?;
                self.current = Some((path, 0, reader));
                continue;
            };
            let taken = take_line(reader, line).map_err(|error| cannot_read(path, &error))?;
            if taken == Taken::Nothing {
                self.current = None;
                continue;
            }
            *number += 1;
            return Ok(taken);
        }
    }

    /// Where the last line stands.
    pub fn place(&self) -> Place {
        match &self.current {
            Some((path, line, _)) => Place {
                log: path.clone(),
                line: *line,
            },
            None => Place {
                log: PathBuf::new(),
                line: 0,
            },
        }
    }

    /// Bytes read so far, of all that there are where that is known; compressed ones as they are.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.read.load(Ordering::Relaxed), self.size)
    }
}

fn is_stdin(log: &Path) -> bool {
    log.as_os_str() == "-"
}

fn cannot_read(log: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot read {}: {error}", log.display())
}

fn open(log: &Path, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead>> {
    let bytes: Box<dyn Read> = if is_stdin(log) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(log)?)
    };
    let counted = Counted {
        bytes,
        read: Arc::clone(read),
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, counted);
    if reader.fill_buf()?.starts_with(&GZIP) {
        let plain = MultiGzDecoder::new(reader);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, plain)));
    }
    Ok(Box::new(reader))
}

fn take_line(reader: &mut Box<dyn BufRead>, line: &mut Vec<u8>) -> io::Result<Taken> {
    let mut taken = Taken::Nothing;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(taken);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if taken == Taken::Nothing {
            taken = Taken::Line;
        }
        let room = LINE_BYTES_MAX - line.len();
        if piece.len() > room {
            taken = Taken::Beginning;
        }
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(taken);
        }
    }
}

/// Counts what is read, compressed or not, so that progress can be told.
struct Counted {
    bytes: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
