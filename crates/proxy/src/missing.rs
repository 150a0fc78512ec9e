//! What visitors brought back (H5): copies that rescue servers do not have, as far as they say. And
//! hot resources that rescue servers have fetched although they held a copy: because its lifetime
//! was over, or it went.
//!
//! A core notes each once in an interval, and no more than a few: that a copy is missing is soon
//! said again, so what is left out costs one more visitor a detour. Only what a rescue server has
//! signed gets here.

use levee_vocab::LinkId;

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

/// The notes of one core for one interval.
#[derive(Debug, Default)]
pub(crate) struct MissingCopies {
    copies: Vec<MissingCopy>,
    fetched: Vec<MissingCopy>,
    /// One for each rescue server, of which there are few.
    visitors: Vec<CameBack>,
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
