//! Lines that a rescue server keeps until it hands them over to the origin whose visitors they are.
//!
//! Kept by alias, bounded in lines and in aliases: an origin that does not fetch its log must not
//! cost its helper memory. Always JSON, so that nothing is lost on the way; the origin writes them
//! in its own format.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::access::{AccessRecord, LogFormat};

/// Most bytes that are kept for one alias: 10 s of 1000 requests a second at 400 bytes a line.
pub const HAND_OVER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most aliases for which lines are kept at once; a server helps at most 64 origins.
const ALIASES_MAX: usize = 64;

/// The lines that wait, by alias.
#[derive(Debug, Default)]
pub struct HandOver(Mutex<BTreeMap<String, HandOverLines>>);

/// The lines of one alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandOverLines {
    /// JSON lines, each with its newline.
    pub body: Vec<u8>,
    /// Lines in it.
    pub lines: u64,
    /// Lines that were left out because there was no room.
    pub left_out: u64,
}

impl HandOver {
    /// Keeps the line of `record` for the alias that stands in its host. `host` may carry a port.
    pub(crate) fn note(&self, record: &AccessRecord) {
        let host = String::from_utf8_lossy(record.host.as_bytes());
        let alias = name_of(&host);
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= ALIASES_MAX && !waiting.contains_key(&alias) {
            return;
        }
        let kept = waiting.entry(alias).or_default();
        let before = kept.body.len();
        record.render(LogFormat::Json, &mut kept.body);
        if kept.body.len() > HAND_OVER_BYTES_MAX {
            kept.body.truncate(before);
            kept.left_out += 1;
        } else {
            kept.lines += 1;
        }
    }

    /// Takes all lines of `alias`; none where there are none.
    pub fn take(&self, alias: &str) -> Option<HandOverLines> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&name_of(alias))
    }

    /// Keeps lines of `alias` that were taken and could not be handed over, before those that came
    /// since. What there is no room for is left out.
    pub fn give_back(&self, alias: &str, mut earlier: HandOverLines) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = waiting.entry(name_of(alias)).or_default();
        if earlier.body.len() + kept.body.len() > HAND_OVER_BYTES_MAX {
            kept.left_out += earlier.lines;
            return;
        }
        earlier.body.append(&mut kept.body);
        kept.body = earlier.body;
        kept.lines += earlier.lines;
    }

    /// The aliases for which lines wait.
    pub fn aliases(&self) -> Vec<String> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.keys().cloned().collect()
    }
}

/// The name without its port and the dot of the root, in lower case.
fn name_of(host: &str) -> String {
    let name = host.split(':').next().unwrap_or(host);
    name.trim_end_matches('.').to_ascii_lowercase()
}
