//! Which URLs are asked for most, in constant memory (space-saving, Metwally et al. 2005).
//!
//! The table keeps a few dozen URLs. One that is not in it takes the place of the rarest and
//! inherits its count, so whatever is asked for more often than once in as many requests as there
//! are places is sure to be found.

use crate::sample::HotCount;

/// Places in the table.
const PLACES: usize = 64;
/// Longest text kept of a URL.
const TEXT_MAX: usize = 120;

/// The table of one core.
#[derive(Debug)]
pub(crate) struct HotTable {
    hashes: [u64; PLACES],
    counts: [u32; PLACES],
    /// What of each count was inherited.
    inherited: [u32; PLACES],
    texts: Box<[Text; PLACES]>,
}

#[derive(Clone, Copy, Debug)]
struct Text {
    bytes: [u8; TEXT_MAX],
    length: u8,
}

impl HotTable {
    /// An empty table.
    pub fn new() -> Self {
        let empty = Text {
            bytes: [0; TEXT_MAX],
            length: 0,
        };
        Self {
            hashes: [0; PLACES],
            counts: [0; PLACES],
            inherited: [0; PLACES],
            texts: Box::new([empty; PLACES]),
        }
    }

    /// Notes one request for `path` at `host`; `hash` is of both.
    pub fn note(&mut self, hash: u64, host: &str, path: &str) {
        if let Some(place) = self.hashes.iter().position(|&known| known == hash) {
            self.counts[place] += 1;
            return;
        }
        let counts = self.counts.iter().enumerate();
        let place = counts
            .min_by_key(|(_, count)| **count)
            .map_or(0, |(at, _)| at);
        self.hashes[place] = hash;
        self.inherited[place] = self.counts[place];
        self.counts[place] += 1;
        self.texts[place].set(host, path);
    }

    /// Takes what was noted since the last call.
    pub fn take(&mut self) -> Vec<HotCount> {
        let hot = (0..PLACES)
            .filter(|&place| self.counts[place] > self.inherited[place])
            .map(|place| HotCount {
                url: self.texts[place].to_text(),
                count: u64::from(self.counts[place] - self.inherited[place]),
            })
            .collect();
        self.hashes = [0; PLACES];
        self.counts = [0; PLACES];
        self.inherited = [0; PLACES];
        hot
    }
}

impl Text {
    fn set(&mut self, host: &str, path: &str) {
        let mut length = 0;
        for part in [host.as_bytes(), path.as_bytes()] {
            let fits = part.len().min(TEXT_MAX - length);
            self.bytes[length..length + fits].copy_from_slice(&part[..fits]);
            length += fits;
        }
        self.length = length as u8;
    }

    fn to_text(self) -> String {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)]).into_owned()
    }
}

/// Adds the counts of several cores by URL, most first, and keeps the first `places`.
pub(crate) fn merge(tables: Vec<Vec<HotCount>>, places: usize) -> Vec<HotCount> {
    let mut all: Vec<HotCount> = tables.into_iter().flatten().collect();
    all.sort_by(|a, b| a.url.cmp(&b.url));
    all.dedup_by(|next, first| {
        let same = next.url == first.url;
        if same {
            first.count += next.count;
        }
        same
    });
    all.sort_by_key(|hot| std::cmp::Reverse(hot.count));
    all.truncate(places);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_url_is_found_among_a_thousand_cold_ones() {
        let mut table = HotTable::new();
        for round in 0..1000_u64 {
            table.note(round + 10, "a.example", "/cold");
            if round % 4 == 0 {
                table.note(1, "a.example", "/hot");
            }
        }
        let hot = merge(vec![table.take(), table.take()], 3);
        assert_eq!(hot.len(), 2);
        let found = hot.iter().find(|hot| hot.url == "a.example/hot").unwrap();
        assert!((200..=250).contains(&found.count), "{found:?}");
        assert!(table.take().is_empty());
    }
}
