//! The tags of a response: the words of its `Surrogate-Key` and `Cache-Tag` fields.
//!
//! An application writes them so that it can purge by them later. Visitors never see them; the
//! fetches of our rescue servers do, because those keep our objects and must know what to purge.
//!
//! Tags come from outside and cost memory, so there is a limit to each and to all of a response.
//! A response beyond it is not refused: it counts as carrying every tag, so that a purge removes
//! it too often rather than too seldom.

use bytes::Bytes;
use http::HeaderMap;
use levee_vocab::TAG_BYTES_MAX;

/// Most tags of one response, and their bytes in all.
const TAGS_MAX: usize = 64;
const BYTES_MAX: usize = 2048;
/// What stands for every tag.
const EVERY: &str = "*";
/// The fields, and what stands between their words beside spaces.
pub(crate) const TAG_FIELDS: [&str; 2] = ["surrogate-key", "cache-tag"];

/// The words, each once in the order in which they came, one space between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Bytes);

impl Tags {
    /// The tags of a response with these fields.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = TAG_FIELDS.iter().flat_map(|name| headers.get_all(*name));
        let mut words: Vec<&[u8]> = Vec::new();
        for value in values {
            let cut = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
            for word in value.as_bytes().split(cut).filter(|word| !word.is_empty()) {
                if word.len() > TAG_BYTES_MAX || words.len() == TAGS_MAX {
                    return Self(Bytes::from_static(EVERY.as_bytes()));
                }
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        let text = words.join(&b' ');
        match text.len() > BYTES_MAX || std::str::from_utf8(&text).is_err() {
            true => Self(Bytes::from_static(EVERY.as_bytes())),
            false => Self(text.into()),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each tag.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let text = std::str::from_utf8(&self.0).unwrap_or_default();
        text.split(' ').filter(|word| !word.is_empty())
    }

    /// Whether a purge of `tag` is for a response with these.
    pub(crate) fn has(&self, tag: &str) -> bool {
        self.words().any(|word| word == tag || word == EVERY)
    }

    /// The word under which a response stands that counts as carrying every tag.
    pub(crate) const fn every() -> &'static str {
        EVERY
    }

    /// Bytes of the words.
    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }

    /// The header line for a rescue server that fetches; nothing where there are no tags.
    pub(crate) fn push_line(&self, out: &mut Vec<u8>) {
        if !self.is_empty() {
            out.extend_from_slice(b"surrogate-key: ");
            out.extend_from_slice(&self.0);
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[(&'static str, &str)], expected: &str) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        assert_eq!(Tags::of(&headers).0, expected.as_bytes());
    }

    #[test]
    fn both_fields_are_read_and_each_word_counts_once() {
        check(&[], "");
        check(&[("surrogate-key", "a b  a\tc")], "a b c");
        check(
            &[("cache-tag", "x, y,,x"), ("surrogate-key", "y z")],
            "y z x",
        );
        check(&[("surrogate-key", "a"), ("surrogate-key", "b")], "a b");
    }

    #[test]
    fn a_response_with_too_many_tags_counts_as_having_every_one() {
        let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        check(&[("surrogate-key", &many.join(" "))], "*");
        check(&[("surrogate-key", &"a".repeat(129))], "*");
        let long: Vec<String> = (0..20).map(|number| format!("{number:0>120}")).collect();
        check(&[("surrogate-key", &long.join(" "))], "*");
        let every = Tags(Bytes::from_static(b"*"));
        assert!(every.has("anything") && !Tags::default().has("anything"));
    }
}
