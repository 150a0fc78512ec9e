//! What visitors brought back (H5): copies that rescue servers do not have, as far as they say.
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

/// The notes of one core for one interval.
#[derive(Debug, Default)]
pub(crate) struct MissingCopies(Vec<MissingCopy>);

/// Most notes of a core: a crowd wants some thirty resources.
const NOTES_MAX: usize = 64;
/// Longest URL that is noted: longer ones are never copied either.
const URL_BYTES_MAX: usize = 240;

impl MissingCopies {
    /// Notes that the rescue server at `link` lacks the resource at `host` and `path`.
    pub fn note(&mut self, link: LinkId, host: &str, path: &str) {
        let is_it = |note: &MissingCopy| {
            note.link == link && note.url.strip_prefix(host).is_some_and(|rest| rest == path)
        };
        let fits = self.0.len() < NOTES_MAX && host.len() + path.len() <= URL_BYTES_MAX;
        if fits && !self.0.iter().any(is_it) {
            let url = format!("{host}{path}");
            self.0.push(MissingCopy { link, url });
        }
    }

    /// Gives the notes and begins anew.
    pub fn take(&mut self) -> Vec<MissingCopy> {
        std::mem::take(&mut self.0)
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
        let notes = missing.take();
        assert_eq!(notes.len(), 2);
        assert_eq!((notes[0].link, &*notes[0].url), (link, "a.example/x"));
        for number in 0..1000 {
            missing.note(link, "a.example", &format!("/{number}"));
        }
        assert_eq!(missing.take().len(), NOTES_MAX);
        assert!(missing.take().is_empty());
    }
}
