//! What visitors brought back (H5): copies that rescue servers do not have, as far as they say. And
//! hot resources that rescue servers have fetched although they held a copy: because its lifetime
//! was over, or it went.
//!
//! A core notes each once in an interval, and no more than a few: that a copy is missing is soon
//! said again, so what is left out costs one more visitor a detour. Only what a rescue server has
//! signed gets here.

use std::time::Duration;

use levee_control::Marks;
use levee_vocab::{LinkId, Timestamp};

/// A copy that is not where we thought it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCopy {
    /// Link of the rescue server that does not hold it.
    pub link: LinkId,
    /// Host and path, as hot spots are told.
    pub url: String,
}

/// Visitors whom a rescue server sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CameBack {
    /// Its link.
    pub link: LinkId,
    /// How many there were since the last look.
    pub visitors: u64,
}

/// Visitors without a signature, and those whom we marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedVisitors {
    /// Who came back with a word that has no signature.
    pub unsigned: u64,
    /// By the link of the rescue server that they were redirected to with a mark.
    pub marks: Vec<(LinkId, Marks)>,
}

impl MarkedVisitors {
    /// Adds what another core has counted.
    pub fn add(&mut self, other: &Self) {
        self.unsigned += other.unsigned;
        for (link, marks) in &other.marks {
            let known = self.of(*link);
            known.sent += marks.sent;
            known.returned += marks.returned;
        }
    }

    fn of(&mut self, link: LinkId) -> &mut Marks {
        let index = match self.marks.iter().position(|(known, _)| *known == link) {
            Some(index) => index,
            None => {
                self.marks.push((link, Marks::default()));
                self.marks.len() - 1
            }
        };
        &mut self.marks[index].1
    }
}

/// What is noted of a visitor without a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MarkNote {
    /// He came without one.
    Unsigned,
    /// He was redirected with a mark.
    Sent(LinkId),
    /// He brought it back.
    Returned(LinkId),
}

/// Each note counts once a second for each block of addresses, so that who forges visits counts for
/// one. By a table of bits: where two blocks share one, the second is not counted.
#[derive(Debug)]
struct Counted {
    bits: [u64; 64],
    until: Timestamp,
}

impl Counted {
    fn is_new(&mut self, now: Timestamp, hash: u64) -> bool {
        if now >= self.until {
            self.bits = [0; 64];
            self.until = now + Duration::from_secs(1);
        }
        let (word, bit) = (hash as usize / 64 % 64, hash % 64);
        let is_new = self.bits[word] >> bit & 1 == 0;
        self.bits[word] |= 1 << bit;
        is_new
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            bits: [0; 64],
            until: Timestamp::ZERO,
        }
    }
}

/// The notes of one core for one interval.
#[derive(Debug, Default)]
pub(crate) struct MissingCopies {
    copies: Vec<MissingCopy>,
    fetched: Vec<MissingCopy>,
    /// One for each rescue server, of which there are few.
    visitors: Vec<CameBack>,
    marked: MarkedVisitors,
    counted: Counted,
}

/// Most notes of a core: a crowd wants some thirty resources.
const NOTES_MAX: usize = 64;
/// Longest URL that is noted: longer ones are never copied either.
const URL_BYTES_MAX: usize = 240;

impl MissingCopies {
    /// Notes that the rescue server at `link` lacks the resource at `host` and `path`.
    pub fn note(&mut self, link: LinkId, host: &str, path: &str) {
        add(&mut self.copies, link, host, path);
    }

    /// Notes that the rescue server at `link` has fetched a resource of which there are copies.
    pub fn note_fetched(&mut self, link: LinkId, host: &str, path: &str) {
        add(&mut self.fetched, link, host, path);
    }

    /// Gives the resources that were fetched and begins anew.
    pub fn take_fetched(&mut self) -> Vec<MissingCopy> {
        std::mem::take(&mut self.fetched)
    }

    /// Notes that the rescue server at `link` sent a visitor back, for whatever reason.
    pub fn note_visitor(&mut self, link: LinkId) {
        match self.visitors.iter_mut().find(|one| one.link == link) {
            Some(known) => known.visitors += 1,
            None => self.visitors.push(CameBack { link, visitors: 1 }),
        }
    }

    /// Notes what became of a visitor without a signature; `hash` is of the note and of his block
    /// of addresses.
    pub fn note_marked(&mut self, now: Timestamp, hash: u64, note: MarkNote) {
        if self.counted.is_new(now, hash) {
            match note {
                MarkNote::Unsigned => self.marked.unsigned += 1,
                MarkNote::Sent(link) => self.marked.of(link).sent += 1,
                MarkNote::Returned(link) => self.marked.of(link).returned += 1,
            }
        }
    }

    /// Gives what was counted of visitors without a signature and begins anew.
    pub fn take_marked(&mut self) -> MarkedVisitors {
        std::mem::take(&mut self.marked)
    }

    /// Gives the notes and begins anew.
    pub fn take(&mut self) -> (Vec<MissingCopy>, Vec<CameBack>) {
        (
            std::mem::take(&mut self.copies),
            std::mem::take(&mut self.visitors),
        )
    }
}

fn add(copies: &mut Vec<MissingCopy>, link: LinkId, host: &str, path: &str) {
    let is_it = |note: &MissingCopy| {
        note.link == link && note.url.strip_prefix(host).is_some_and(|rest| rest == path)
    };
    let fits = copies.len() < NOTES_MAX && host.len() + path.len() <= URL_BYTES_MAX;
    if fits && !copies.iter().any(is_it) {
        let url = format!("{host}{path}");
        copies.push(MissingCopy { link, url });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_noted_once_and_the_notes_are_few() {
        let mut missing = MissingCopies::default();
        let link = LinkId::Outbound(1);
        for _ in 0..3 {
            missing.note(link, "a.example", "/x");
            missing.note(LinkId::Outbound(2), "a.example", "/x");
            missing.note(link, "a.example", &"/x".repeat(200));
        }
        let (notes, _) = missing.take();
        assert_eq!(notes.len(), 2);
        assert_eq!((notes[0].link, &*notes[0].url), (link, "a.example/x"));
        for number in 0..1000 {
            missing.note(link, "a.example", &format!("/{number}"));
        }
        assert_eq!(missing.take().0.len(), NOTES_MAX);
        assert!(missing.take().0.is_empty());
    }

    #[test]
    fn each_block_counts_once_a_second_among_visitors_without_a_signature() {
        let mut missing = MissingCopies::default();
        let link = LinkId::Outbound(1);
        let at = Timestamp::from_milliseconds;
        for (now, hash, note) in [
            (0, 1, MarkNote::Unsigned),
            (500, 1, MarkNote::Unsigned),
            (999, 2, MarkNote::Sent(link)),
            (999, 3, MarkNote::Returned(link)),
            (1000, 1, MarkNote::Unsigned),
            (1001, 2, MarkNote::Sent(link)),
        ] {
            missing.note_marked(at(now), hash, note);
        }
        let marks = Marks {
            sent: 2,
            returned: 1,
        };
        let told = missing.take_marked();
        assert_eq!((told.unsigned, &*told.marks), (2, &[(link, marks)][..]));
        let mut both = told.clone();
        both.add(&told);
        assert_eq!((both.unsigned, both.marks[0].1.sent), (4, 4));
        assert_eq!(missing.take_marked(), MarkedVisitors::default());
    }

    #[test]
    fn visitors_are_counted_by_who_sent_them() {
        let mut missing = MissingCopies::default();
        let links = [LinkId::Outbound(1), LinkId::Outbound(2)];
        for link in [links[0], links[1], links[0]] {
            missing.note_visitor(link);
        }
        let counted = [(links[0], 2), (links[1], 1)];
        let counted = counted.map(|(link, visitors)| CameBack { link, visitors });
        assert_eq!(missing.take().1, counted);
        assert!(missing.take().1.is_empty());
    }
}
