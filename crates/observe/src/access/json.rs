//! One JSON object a line, with everything that is known about the request.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::AccessRecord;
use crate::calendar::Calendar;

/// The object, field by field in the order of the line. Fields are added, never renamed.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) time: String,
    pub(super) remote: IpAddr,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) version: String,
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) referer: String,
    pub(super) user_agent: String,
    pub(super) host: String,
    pub(super) cache: String,
    pub(super) class: String,
    /// Missing in lines that another server of an earlier version hands over.
    #[serde(default)]
    pub(super) visitor: String,
    pub(super) rescue_server: String,
    pub(super) wait_us: u64,
    pub(super) total_us: u64,
    pub(super) request_id: String,
    /// Unix seconds with their fraction: for machines.
    pub(super) at: f64,
}

/// A text as JSON may hold it. JSON escapes the control characters of ASCII but not the others, and
/// some terminals obey those too.
fn text(bytes: &[u8]) -> String {
    let visible = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' => '\u{fffd}',
        letter => letter,
    };
    String::from_utf8_lossy(bytes)
        .chars()
        .map(visible)
        .collect()
}

/// Appends the line of `record`.
pub(super) fn render(record: &AccessRecord, out: &mut Vec<u8>) {
    let since = record
        .at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let line = Line {
        time: Calendar::of(since.as_secs()).rfc3339(),
        remote: record.remote,
        method: text(record.method.as_bytes()),
        target: text(record.target.as_bytes()),
        version: record.version.to_string(),
        status: record.status,
        bytes: record.bytes,
        referer: text(record.referer.as_bytes()),
        user_agent: text(record.user_agent.as_bytes()),
        host: text(record.host.as_bytes()),
        cache: record.cache.to_string(),
        class: record.class.to_string(),
        visitor: record.visitor.to_string(),
        rescue_server: text(record.rescue_server.as_bytes()),
        wait_us: record.wait.as_micros() as u64,
        total_us: record.total.as_micros() as u64,
        request_id: format!("{:016x}", record.request_id),
        at: since.as_micros() as f64 / 1e6,
    };
    // JSON escapes control characters, so the line has no newline of its own; a record has no map
    // and no number that JSON cannot say, so this does not fail.
    let _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}
