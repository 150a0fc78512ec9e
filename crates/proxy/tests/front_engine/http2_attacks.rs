//! Visitors who speak HTTP/2 to hurt us, with frames made by hand: what each attack costs is
//! bounded, and nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::http2::with_files;
use crate::support::{PATIENCE, Running, Setup, origin};

/// A visitor who makes frames by hand.
struct Raw(TcpStream);

impl Raw {
    fn to(running: &Running) -> Self {
        let socket = TcpStream::connect(running.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut raw = Self(socket);
        raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        raw.send(&frame(4, 0, 0, &[]));
        raw
    }

    /// Sends; a server that has hung up is no mistake here.
    fn send(&mut self, bytes: &[u8]) {
        match self.0.write_all(bytes) {
            Ok(()) => {}
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ),
                "{error}"
            ),
        }
    }

    /// The reason that the server gave for its end, once it has come.
    fn reason(&mut self) -> Option<u32> {
        let mut bytes = Vec::new();
        // A reset may follow the last frame.
        let _ = self.0.read_to_end(&mut bytes);
        let (mut rest, mut reason) = (&bytes[..], None);
        while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if *kind == 7 {
                reason = Some(u32::from_be_bytes(after[4..8].try_into().unwrap()));
            }
            rest = after.get(length..).unwrap_or_default();
        }
        reason
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A GET of `/` as HPACK writes it: three names of the static table and one literal.
fn get_frame(stream: u32) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x84, 0x01, 12];
    block.extend_from_slice(b"site.example");
    frame(1, 0x5, stream, &block)
}

const ENHANCE_YOUR_CALM: Option<u32> = Some(11);

#[test]
fn a_visitor_who_takes_each_request_back_is_told_to_calm_down() {
    let running = with_files();
    let mut raw = Raw::to(&running);
    for number in 0..2000_u32 {
        let stream = number * 2 + 1;
        let taken_back = [get_frame(stream), frame(3, 0, stream, &[0, 0, 0, 8])].concat();
        raw.send(&taken_back);
    }
    assert_eq!(raw.reason(), ENHANCE_YOUR_CALM);
    // Nobody else notices.
    assert_eq!(running.get("/small.txt").text(), "small");
    running.sample_until(|sample| sample.http2_streams == 0);
}

#[test]
fn floods_of_frames_that_lead_to_nothing_are_ended() {
    let pings = frame(6, 0, 0, &[0; 8]).repeat(1000);
    let settings = frame(4, 0, 0, &[]).repeat(1000);
    let windows = frame(8, 0, 0, &[0, 0, 0, 1]).repeat(1000);
    let priorities = frame(2, 0, 1, &[0, 0, 0, 3, 7]).repeat(1000);
    for flood in [pings, settings, windows, priorities] {
        let running = with_files();
        let mut raw = Raw::to(&running);
        let mut reader = Raw(raw.0.try_clone().unwrap());
        // Answers are read, or the flood would stop at our own door.
        let reader = std::thread::spawn(move || reader.reason());
        for _ in 0..400 {
            raw.send(&flood);
        }
        let reason = reader.join().unwrap();
        assert!(
            reason.is_none() || reason == ENHANCE_YOUR_CALM,
            "{reason:?}"
        );
        running.sample_until(|sample| sample.connections == 0);
        assert_eq!(running.get("/small.txt").text(), "small");
    }
}

#[test]
fn an_endless_head_is_ended() {
    let running = with_files();
    let mut raw = Raw::to(&running);
    raw.send(&frame(1, 0x1, 1, &[0x82, 0x86, 0x84]));
    let mut line = vec![0x00, 1, b'a', 0x7f, 0x81, 0x7c];
    line.extend_from_slice(&[b'x'; 16_000]);
    for _ in 0..200 {
        raw.send(&frame(9, 0, 1, &line));
    }
    raw.reason();
    running.sample_until(|sample| sample.connections == 0);
}

#[test]
fn a_visitor_who_opens_no_window_is_let_go_in_time() {
    let mut setup = Setup::default();
    setup.settings.deadlines.progress = Duration::from_millis(50);
    let running = setup.start();
    running.write("index.html", vec![b'x'; 1_000_000]);
    let mut raw = Raw::to(&running);
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    raw.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for number in 0..100_u32 {
        raw.send(&get_frame(number * 2 + 1));
    }
    running.sample_until(|sample| sample.http2_requests == 100);
    running.sample_until(|sample| sample.http2_streams == 0);
}

/// SETTINGS, PING and the like are read by another thread, or a flood would stop at our own door.
fn reason_beside(raw: &Raw) -> std::thread::JoinHandle<Option<u32>> {
    let mut reader = Raw(raw.0.try_clone().unwrap());
    std::thread::spawn(move || reader.reason())
}

#[test]
fn a_visitor_who_makes_us_reset_its_streams_is_told_to_calm_down() {
    let running = with_files();
    let mut raw = Raw::to(&running);
    let reader = reason_beside(&raw);
    for number in 0..2000_u32 {
        let stream = number * 2 + 1;
        // A window larger than any may be is a mistake, for which its stream is reset.
        let window = frame(8, 0, stream, &[0x7F, 0xFF, 0xFF, 0xFF]);
        let mistake = [get_frame(stream), window].concat();
        raw.send(&mistake);
    }
    assert_eq!(reader.join().unwrap(), ENHANCE_YOUR_CALM);
    running.sample_until(|sample| sample.http2_streams == 0 && sample.connections == 0);
    assert_eq!(running.get("/small.txt").text(), "small");
}

#[test]
fn continuations_without_content_and_without_end_are_ended() {
    let running = with_files();
    let mut raw = Raw::to(&running);
    let reader = reason_beside(&raw);
    raw.send(&frame(1, 0x1, 1, &[0x82, 0x86, 0x84]));
    let flood = frame(9, 0, 1, &[]).repeat(1000);
    for _ in 0..400 {
        raw.send(&flood);
    }
    reader.join().unwrap();
    running.sample_until(|sample| sample.connections == 0);
    assert_eq!(running.get("/small.txt").text(), "small");
}

#[test]
fn a_head_that_grows_when_it_is_read_is_refused() {
    let running = with_files();
    let mut raw = Raw::to(&running);
    // One field of 4000 bytes goes into the table of HPACK; each byte after it is that field again.
    let mut block = vec![0x82, 0x86, 0x84, 0x01, 12];
    block.extend_from_slice(b"site.example");
    block.extend_from_slice(&[0x40, 1, b'a', 0x7F, 0xA1, 0x1E]);
    block.extend_from_slice(&[b'x'; 4000]);
    block.extend_from_slice(&[0xBE; 8000]);
    for number in 0..20_u32 {
        raw.send(&frame(1, 0x5, number * 2 + 1, &block));
    }
    raw.0.shutdown(std::net::Shutdown::Write).unwrap();
    raw.reason();
    let sample = running.sample_until(|sample| sample.connections == 0);
    assert_eq!(sample.own_requests, 0);
    assert_eq!(running.get("/small.txt").text(), "small");
}

#[test]
fn empty_pieces_of_a_body_that_never_ends_are_ended() {
    let setup = Setup {
        upstream: Some(origin(|_| String::new())),
        ..Setup::default()
    };
    let running = setup.start();
    let mut raw = Raw::to(&running);
    let reader = reason_beside(&raw);
    let mut block = vec![0x83, 0x86, 0x84, 0x01, 12];
    block.extend_from_slice(b"site.example");
    raw.send(&frame(1, 0x4, 1, &block));
    let flood = frame(0, 0, 1, &[]).repeat(1000);
    for _ in 0..400 {
        raw.send(&flood);
    }
    let reason = reader.join().unwrap();
    assert!(
        reason.is_none() || reason == ENHANCE_YOUR_CALM,
        "{reason:?}"
    );
    running.sample_until(|sample| sample.connections == 0 && sample.http2_streams == 0);
}

#[test]
fn a_visitor_who_takes_byte_by_byte_is_let_go_in_time() {
    let mut setup = Setup::default();
    setup.settings.deadlines.progress = Duration::from_millis(50);
    let running = setup.start();
    running.write("index.html", vec![b'x'; 1_000_000]);
    let mut raw = Raw::to(&running);
    let reader = reason_beside(&raw);
    raw.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    raw.send(&get_frame(1));
    running.sample_until(|sample| sample.http2_requests == 1);
    // A window of one byte after each byte, for as long as the stream is there.
    while running.front.sample().http2_streams > 0 {
        raw.send(&frame(8, 0, 1, &[0, 0, 0, 1]));
    }
    raw.0.shutdown(std::net::Shutdown::Both).unwrap();
    reader.join().unwrap();
    running.sample_until(|sample| sample.connections == 0);
}

#[test]
fn answers_to_a_flood_that_nobody_reads_are_not_collected() {
    let mut setup = Setup::default();
    setup.settings.deadlines.progress = Duration::from_millis(50);
    let running = setup.start();
    let mut raw = Raw::to(&running);
    raw.0
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let pings = frame(6, 0, 0, &[0; 8]).repeat(1000);
    // Until the server hangs up, or takes no more because its own words are not taken.
    while raw.0.write_all(&pings).is_ok() {}
    running.sample_until(|sample| sample.connections == 0);
}
