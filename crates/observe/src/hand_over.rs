//! Lines that a rescue server keeps until it hands them over to the origin whose visitors they are.
//!
//! Kept by alias, bounded in lines and in aliases: an origin that does not fetch its log must not
//! cost its helper memory. Where all places are taken, the lines of an origin that did not take
//! them give way to those of one that may; what there is no room for is counted, and said once
//! until all that waits has gone. Always JSON, so that nothing is lost on the way; the origin
//! writes them in its own format.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::access::{AccessRecord, LogFormat};

/// Most bytes that are kept for one alias: 10 s of 1000 requests a second at 400 bytes a line.
pub const HAND_OVER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most aliases for which lines are kept at once; a server helps at most 64 origins.
pub const HAND_OVER_ALIASES_MAX: usize = 64;

/// The lines that wait, by alias.
#[derive(Debug, Default)]
pub struct HandOver(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    aliases: BTreeMap<String, Place>,
    /// How often lines were given back: who gave some back first gives way first.
    returns: u64,
    /// Lines left out since the start.
    left_out: u64,
    /// Whether it was said that lines are left out.
    told: bool,
}

/// What is kept for one alias.
#[derive(Debug, Default)]
struct Place {
    lines: HandOverLines,
    /// The number of the return since which they wait; none where nobody was asked yet.
    refused: Option<u64>,
}

/// The lines of one alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandOverLines {
    /// JSON lines, each with its newline.
    pub body: Vec<u8>,
    /// Lines in it.
    pub lines: u64,
}

/// Lines for which there was no room, and whether to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    /// None, or it was said.
    Silent,
    /// The first ones since nothing waited.
    First,
}

impl HandOver {
    /// Keeps the line of `record` for the alias that stands in its host. `host` may carry a port.
    pub(crate) fn note(&self, record: &AccessRecord) {
        let host = String::from_utf8_lossy(record.host.as_bytes());
        let alias = name_of(&host);
        let left_out = self.with(|waiting| waiting.note(&alias, record));
        say(&alias, left_out);
    }

    /// Takes all lines of `alias`; none where there are none. Its place is free then.
    pub fn take(&self, alias: &str) -> Option<HandOverLines> {
        self.with(|waiting| {
            let taken = waiting.aliases.remove(&name_of(alias));
            waiting.told &= !waiting.aliases.is_empty();
            taken.map(|place| place.lines)
        })
    }

    /// Keeps lines of `alias` that were taken and could not be handed over, before those that came
    /// since. What there is no room for is left out.
    pub fn give_back(&self, alias: &str, earlier: HandOverLines) {
        // Nothing to hand over needs no place.
        if earlier.lines == 0 {
            return;
        }
        let alias = name_of(alias);
        let left_out = self.with(|waiting| waiting.give_back(&alias, earlier));
        say(&alias, left_out);
    }

    /// The aliases for which lines wait.
    pub fn aliases(&self) -> Vec<String> {
        self.with(|waiting| waiting.aliases.keys().cloned().collect())
    }

    /// Lines for which there was no room, since the start.
    pub fn left_out(&self) -> u64 {
        self.with(|waiting| waiting.left_out)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Waiting {
    fn note(&mut self, alias: &str, record: &AccessRecord) -> LeftOut {
        let left_before = self.left_out;
        let Some(place) = self.place_of(alias) else {
            self.left_out += 1;
            return self.told_of(left_before);
        };
        let kept = &mut place.lines;
        let before = kept.body.len();
        record.render(LogFormat::Json, &mut kept.body);
        if kept.body.len() > HAND_OVER_BYTES_MAX {
            kept.body.truncate(before);
            self.left_out += 1;
        } else {
            kept.lines += 1;
        }
        self.told_of(left_before)
    }

    fn give_back(&mut self, alias: &str, mut earlier: HandOverLines) -> LeftOut {
        let left_before = self.left_out;
        self.returns += 1;
        let returns = self.returns;
        let is_known = self.aliases.contains_key(alias);
        // Lines that somebody refused take nobody's place.
        if !is_known && self.aliases.len() >= HAND_OVER_ALIASES_MAX {
            self.left_out += earlier.lines;
            return self.told_of(left_before);
        }
        let place = self.aliases.entry(alias.to_owned()).or_default();
        place.refused = place.refused.or(Some(returns));
        let kept = &mut place.lines;
        if earlier.body.len() + kept.body.len() > HAND_OVER_BYTES_MAX {
            self.left_out += earlier.lines;
        } else {
            earlier.body.append(&mut kept.body);
            kept.body = earlier.body;
            kept.lines += earlier.lines;
        }
        self.told_of(left_before)
    }

    /// The place of `alias`, which may be a new one; none where all are taken by origins that may
    /// take their lines.
    fn place_of(&mut self, alias: &str) -> Option<&mut Place> {
        if self.aliases.len() >= HAND_OVER_ALIASES_MAX && !self.aliases.contains_key(alias) {
            let refused = self.aliases.iter();
            let refused = refused.filter_map(|(name, place)| Some((place.refused?, name)));
            let (_, oldest) = refused.min()?;
            let oldest = oldest.clone();
            let gone = self.aliases.remove(&oldest);
            self.left_out += gone.map_or(0, |place| place.lines.lines);
        }
        Some(self.aliases.entry(alias.to_owned()).or_default())
    }

    fn told_of(&mut self, left_before: u64) -> LeftOut {
        if self.left_out == left_before || self.told {
            return LeftOut::Silent;
        }
        self.told = true;
        LeftOut::First
    }
}

/// Says it outside of the lock: who reads the log may be slow.
fn say(alias: &str, left_out: LeftOut) {
    match left_out {
        LeftOut::Silent => {}
        LeftOut::First => tracing::warn!(
            alias,
            aliases_max = HAND_OVER_ALIASES_MAX,
            bytes_max = HAND_OVER_BYTES_MAX,
            "there is no room for log lines of those whom we help: some are left out and counted"
        ),
    }
}

/// The name without its port and the dot of the root, in lower case.
fn name_of(host: &str) -> String {
    let name = host.split(':').next().unwrap_or(host);
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_lines_are_left_out_is_said_once_until_all_that_waits_has_gone() {
        let log = HandOver::default();
        let refused = || HandOverLines {
            body: b"{}\n".to_vec(),
            lines: 1,
        };
        let back = |number: usize| log.with(|all| all.give_back(&format!("vh{number}"), refused()));
        for _ in 0..2 {
            for number in 0..HAND_OVER_ALIASES_MAX {
                assert_eq!(back(number), LeftOut::Silent);
            }
            assert_eq!(back(HAND_OVER_ALIASES_MAX), LeftOut::First);
            assert_eq!(back(HAND_OVER_ALIASES_MAX + 1), LeftOut::Silent);
            for alias in log.aliases() {
                assert_eq!(log.take(&alias), Some(refused()));
            }
        }
        assert_eq!(log.left_out(), 4);
    }
}
