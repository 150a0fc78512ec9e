//! The combined log format of NCSA and Apache, which every log reader knows.
//!
//! `remote ident user [day] "request" status bytes "referer" "user agent"`. The ident field, which
//! nobody has used for decades, names the rescue server on lines that one handed over, and is
//! `fetch` where a rescue server asked for a visitor: his own line comes later, and must not count
//! twice; and `copy` where an origin had a copy made here.

use std::io::Write;
use std::time::SystemTime;

use super::{AccessRecord, RequestClass};
use crate::calendar::Calendar;

/// Appends the line of `record`.
pub(super) fn render(record: &AccessRecord, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{} ", record.remote);
    match record.class {
        RequestClass::Rescue => word(record.rescue_server.as_bytes(), out),
        RequestClass::Fetch => out.extend_from_slice(b"fetch"),
        RequestClass::Copy => out.extend_from_slice(b"copy"),
        RequestClass::Page | RequestClass::Redirect | RequestClass::Refusal => out.push(b'-'),
    }
    let seconds = record
        .at
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let _ = write!(out, " - [{}] \"", Calendar::of(seconds).log_time());
    quoted(record.method.as_bytes(), out);
    out.push(b' ');
    quoted(record.target.as_bytes(), out);
    let _ = write!(
        out,
        " {}\" {} {} \"",
        record.version,
        told(record.status),
        record.bytes
    );
    quoted(record.referer.as_bytes(), out);
    out.extend_from_slice(b"\" \"");
    quoted(record.user_agent.as_bytes(), out);
    out.extend_from_slice(b"\"\n");
}

/// The status. Log readers refuse 0, so a connection that was closed without an answer is told by
/// nginx's number for it.
fn told(status: u16) -> u16 {
    match status {
        0 => 499,
        status => status,
    }
}

/// A text inside quotes: as Apache does it, quotes and backslashes get a backslash, and everything
/// that is not printable ASCII becomes `\xhh`, so that no visitor can forge a line.
fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        out.push(b'-');
    }
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            0..=31 | 127..=255 => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

/// A text outside quotes, which must not hold a space either.
fn word(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    quoted(bytes, out);
    for byte in &mut out[from..] {
        if *byte == b' ' {
            *byte = b'_';
        }
    }
}
