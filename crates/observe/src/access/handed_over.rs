//! Reads log lines that a rescue server hands over for our site, so that our own log stays whole.
//!
//! A rescue server is a stranger: each line is checked field by field, made anew from its fields
//! (never copied), marked with the name of the server that sent it, and bounded in number and
//! length. What it claims inside a line may still be false; that it claims it stays visible.

use std::time::{Duration, SystemTime};

use super::json::Line;
use super::{AccessRecord, CacheResult, LogText, LogVersion, RequestClass, VisitorKind};
use crate::calendar::Calendar;

/// Most lines of one hand-over. At one hand-over in ten seconds this is 10,000 requests a second.
pub const HANDED_OVER_LINES_MAX: usize = 100_000;

/// Longest line. A request line of 8 kB grows fourfold when each byte is escaped.
pub const HANDED_OVER_LINE_BYTES_MAX: usize = 65_536;

/// The last second that a calendar of four digits can name.
const UNIX_SECONDS_MAX: f64 = 253_402_300_799.0;

/// What a hand-over held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandedOver {
    /// The good lines, of class [`RequestClass::Rescue`] and marked with the rescue server's name.
    pub records: Vec<AccessRecord>,
    /// Lines that were not log lines, too long, or too many.
    pub refused: u64,
}

impl HandedOver {
    /// Reads `body`, lines in either format, as sent by `rescue_server`.
    pub fn parse(body: &[u8], rescue_server: &str) -> Self {
        let mut handed_over = Self::default();
        let lines = body.split(|&byte| byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let room = handed_over.records.len() < HANDED_OVER_LINES_MAX;
            match room.then(|| parse_line(line)).flatten() {
                Some(mut record) => {
                    record.class = RequestClass::Rescue;
                    record.rescue_server = LogText::from(rescue_server);
                    handed_over.records.push(record);
                }
                None => handed_over.refused += 1,
            }
        }
        handed_over
    }
}

fn parse_line(line: &[u8]) -> Option<AccessRecord> {
    if line.len() > HANDED_OVER_LINE_BYTES_MAX {
        return None;
    }
    match line.first()? {
        b'{' => parse_json(line),
        _ => parse_combined(std::str::from_utf8(line).ok()?),
    }
}

fn parse_json(line: &[u8]) -> Option<AccessRecord> {
    let line: Line = serde_json::from_slice(line).ok()?;
    if !(0.0..=UNIX_SECONDS_MAX).contains(&line.at) {
        return None;
    }
    Some(AccessRecord {
        remote: line.remote,
        at: SystemTime::UNIX_EPOCH + Duration::from_micros((line.at * 1e6).round() as u64),
        method: method(line.method.as_bytes())?,
        target: LogText::from(line.target.as_str()),
        version: version(&line.version)?,
        status: status(line.status)?,
        bytes: line.bytes,
        referer: LogText::from(line.referer.as_str()),
        user_agent: LogText::from(line.user_agent.as_str()),
        host: LogText::from(line.host.as_str()),
        cache: CacheResult::ALL
            .into_iter()
            .find(|known| known.as_str() == line.cache)?,
        class: RequestClass::Rescue,
        visitor: VisitorKind::of(&line.visitor),
        rescue_server: LogText::EMPTY,
        wait: Duration::from_micros(line.wait_us),
        total: Duration::from_micros(line.total_us),
        request_id: u64::from_str_radix(&line.request_id, 16).ok()?,
    })
}

/// `remote ident user [day] "request" status bytes "referer" "user agent"`, and nothing after it.
fn parse_combined(line: &str) -> Option<AccessRecord> {
    let (remote, rest) = line.split_once(' ')?;
    let (_ident, rest) = rest.split_once(' ')?;
    let (_user, rest) = rest.split_once(' ')?;
    let (day, rest) = rest.strip_prefix('[')?.split_once("] ")?;
    let (request, rest) = quoted(rest)?;
    let (code, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let (bytes, rest) = rest.split_once(' ')?;
    let (referer, rest) = quoted(rest)?;
    let (user_agent, rest) = quoted(rest.strip_prefix(' ')?)?;
    if !rest.is_empty() {
        return None;
    }
    let mut words = request.splitn(2, |&byte| byte == b' ');
    let (verb, rest) = (words.next()?, words.next()?);
    let space = rest.iter().rposition(|&byte| byte == b' ')?;
    let (target, protocol) = (&rest[..space], &rest[space + 1..]);
    let unix = Calendar::parse_log_time(day)?;
    Some(AccessRecord {
        remote: remote.parse().ok()?,
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(unix),
        method: method(verb)?,
        target: sent(target),
        version: version(std::str::from_utf8(protocol).ok()?)?,
        status: status(code.parse().ok()?)?,
        bytes: bytes.parse().ok()?,
        referer: sent(&referer),
        user_agent: sent(&user_agent),
        host: LogText::EMPTY,
        cache: CacheResult::NotAsked,
        class: RequestClass::Rescue,
        visitor: VisitorKind::Reader,
        rescue_server: LogText::EMPTY,
        wait: Duration::ZERO,
        total: Duration::ZERO,
        request_id: 0,
    })
}

/// A quoted text at the start of `text`, with its escapes undone, and what stands behind it.
fn quoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let inside = text.strip_prefix('"')?.as_bytes();
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        match inside.get(at)? {
            b'"' => return Some((bytes, &text[at + 2..])),
            b'\\' if inside.get(at + 1) == Some(&b'x') => {
                let digits = std::str::from_utf8(inside.get(at + 2..at + 4)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                at += 4;
            }
            b'\\' => {
                bytes.push(*inside.get(at + 1)?);
                at += 2;
            }
            &byte => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// A text of the log; `-` says that nothing was sent.
fn sent<const N: usize>(bytes: &[u8]) -> LogText<N> {
    match bytes {
        b"-" => LogText::EMPTY,
        bytes => LogText::new(bytes),
    }
}

fn method(bytes: &[u8]) -> Option<LogText<8>> {
    let fits = !bytes.is_empty() && bytes.len() <= 32 && bytes.iter().all(u8::is_ascii_alphabetic);
    fits.then(|| LogText::new(bytes))
}

fn version(text: &str) -> Option<LogVersion> {
    LogVersion::ALL
        .into_iter()
        .find(|known| known.as_str() == text)
}

fn status(code: u16) -> Option<u16> {
    (code == 0 || (100..=599).contains(&code)).then_some(code)
}
