//! A client of HTTP/2 that makes its frames by hand: ten requests at a time on one connection.
//!
//! It allocates nothing while it asks, so that what is counted is the server's. Of what comes it
//! looks at the ends of streams and the statuses of heads; SETTINGS and PING need no answer here,
//! and windows are opened as far as they go at the start.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::Failure;

/// Requests that are under way at a time.
const AT_A_TIME: u32 = 10;
/// HEADERS and DATA.
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const END_STREAM: u8 = 1;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 5;
/// `:status: 200`, an entry of HPACK's static table.
const OK: u8 = 0x88;
/// SETTINGS_INITIAL_WINDOW_SIZE as large as it may be.
const SETTINGS: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7F, 0xFF, 0xFF, 0xFF];
const FRAME_HEAD: usize = 9;
/// What a connection's window is without our doing (RFC 9113 section 6.9.2).
const FIRST_WINDOW: u32 = 65_535;

/// A connection.
struct Streams {
    stream: TcpStream,
    next: u32,
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes that came since the server was last given a window.
    taken: u32,
}

/// Asks `count` times for a page that is there.
pub fn ask(address: SocketAddr, count: u32) -> Result<(), Failure> {
    let mut streams = Streams::open(address)?;
    let block = header_block();
    let mut left = count;
    while left > 0 {
        let batch = left.min(AT_A_TIME);
        streams.send(&block, batch)?;
        streams.receive(batch)?;
        left -= batch;
    }
    Ok(())
}

/// The fields of a browser: names of the static table where there are such, and values as they are.
fn header_block() -> Vec<u8> {
    // GET, http, and literals that are not indexed: `:path`, `:authority` and others by index.
    let mut block = vec![0x82, 0x86];
    let fields: [(u8, &str); 6] = [
        (4, "/page"),
        (1, "site.example"),
        (
            58,
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ),
        (19, "text/html,*/*;q=0.8"),
        (17, "en-US,en;q=0.5"),
        (16, "gzip, deflate"),
    ];
    for (name, value) in fields {
        match name {
            // An index below 15 fits its four bits; others go on in a second byte.
            0..15 => block.push(name),
            _ => block.extend_from_slice(&[0x0F, name - 15]),
        }
        // All values here are shorter than the 127 that a length of one byte can tell.
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

impl Streams {
    fn open(address: SocketAddr) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        stream.write_all(&SETTINGS)?;
        Ok(Self {
            stream,
            next: 1,
            buffer: vec![0; 256 * 1024],
            filled: 0,
            taken: 0,
        })
    }

    /// Sends `count` requests in one piece.
    fn send(&mut self, block: &[u8], count: u32) -> Result<(), Failure> {
        let mut length = 0;
        for _ in 0..count {
            length += self.put(length, HEADERS, WHOLE, self.next);
            self.buffer[length..length + block.len()].copy_from_slice(block);
            let size = (block.len() as u32).to_be_bytes();
            self.buffer[length - FRAME_HEAD..length - FRAME_HEAD + 3].copy_from_slice(&size[1..]);
            length += block.len();
            self.next += 2;
        }
        if self.taken > FIRST_WINDOW / 2 {
            length += self.put(length, 8, 0, 0);
            self.buffer[length - FRAME_HEAD + 2] = 4;
            self.buffer[length..length + 4].copy_from_slice(&self.taken.to_be_bytes());
            length += 4;
            self.taken = 0;
        }
        self.stream.write_all(&self.buffer[..length])?;
        Ok(())
    }

    /// Writes the head of a frame without its length.
    fn put(&mut self, at: usize, kind: u8, flags: u8, stream: u32) -> usize {
        let [a, b, c, d] = stream.to_be_bytes();
        let head = [0, 0, 0, kind, flags, a, b, c, d];
        self.buffer[at..at + FRAME_HEAD].copy_from_slice(&head);
        FRAME_HEAD
    }

    /// Reads until `count` streams have ended.
    fn receive(&mut self, count: u32) -> Result<(), Failure> {
        let mut ended = 0;
        self.filled = 0;
        while ended < count {
            let read = self.stream.read(&mut self.buffer[self.filled..])?;
            if read == 0 {
                return Err("the connection ended too early".into());
            }
            self.filled += read;
            ended += self.look()?;
        }
        Ok(())
    }

    /// Looks at the whole frames that have come; gives the number of streams that ended.
    fn look(&mut self) -> Result<u32, Failure> {
        let (mut at, mut ended) = (0, 0);
        while let [a, b, c, kind, flags, _, _, _, _, payload @ ..] = &self.buffer[at..self.filled] {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if payload.len() < length {
                break;
            }
            match *kind {
                HEADERS if payload.first() != Some(&OK) => return Err("200 expected".into()),
                HEADERS | DATA if flags & END_STREAM != 0 => ended += 1,
                _ => {}
            }
            if *kind == DATA {
                self.taken += length as u32;
            }
            at += FRAME_HEAD + length;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(ended)
    }
}
