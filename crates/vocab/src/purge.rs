//! What is to go from a cache: one URL, everything that carries a tag, or everything.
//!
//! The same words are used where an operator asks, where caches obey, and on a rescue link. A tag
//! is one word of a response's `Surrogate-Key` field. Both have limits, because both come from
//! outside; a [`Purge`] that exists obeys them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest tag in bytes: enough for any article number with its kind before it.
pub const TAG_BYTES_MAX: usize = 128;
/// Most tags in one purge: what one change of a page touches, and what fits on one line between two
/// servers.
pub const PURGE_TAGS_MAX: usize = 16;
/// Longest path and query that can be purged: as long as a request may ask for.
const TARGET_BYTES_MAX: usize = 8192;

/// What is to go, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// Which objects.
    pub scope: PurgeScope,
    /// What becomes of them.
    pub kind: PurgeKind,
}

/// Which objects are meant. All variants of an object are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeScope {
    /// The one at this path and query.
    Url(PurgeTarget),
    /// All that carry one of these tags; at least one and at most [`PURGE_TAGS_MAX`].
    Tags(Vec<Tag>),
    /// All.
    All,
}

/// What becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeKind {
    /// They are gone.
    Hard,
    /// They are old from now on: shown while newer ones are fetched, and where none can be had.
    Soft,
}

/// Path and query, as a visitor asks for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PurgeTarget(String);

/// One word of a `Surrogate-Key` field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// Why something cannot be purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PurgeError {
    /// It does not begin with a slash, or is no text, or is too long.
    #[error("a URL to purge is a path that begins with `/`, of at most {TARGET_BYTES_MAX} bytes")]
    Target,
    /// It is empty, too long, or has spaces in it.
    #[error("a key is one word of 1 to {TAG_BYTES_MAX} bytes")]
    Tag,
    /// None or too many.
    #[error("a purge takes 1 to {PURGE_TAGS_MAX} keys")]
    TagCount,
}

impl Purge {
    /// A purge of one URL, which may have a scheme and a host before its path.
    pub fn url(url: &str, kind: PurgeKind) -> Result<Self, PurgeError> {
        let scope = PurgeScope::Url(url.parse()?);
        Ok(Self { scope, kind })
    }

    /// A purge of everything that carries one of the words of `tags`.
    pub fn tags(tags: &str, kind: PurgeKind) -> Result<Self, PurgeError> {
        let tags: Vec<Tag> = tags
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        match tags.len() {
            1..=PURGE_TAGS_MAX => {
                let scope = PurgeScope::Tags(tags);
                Ok(Self { scope, kind })
            }
            _ => Err(PurgeError::TagCount),
        }
    }
}

/// `/path?query`, or `http://host/path?query`, of which the path and query count: a site's pages
/// are purged under all of its names.
impl FromStr for PurgeTarget {
    type Err = PurgeError;

    fn from_str(text: &str) -> Result<Self, PurgeError> {
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let path = match rest {
            Some(rest) => match rest.find('/') {
                Some(at) => &rest[at..],
                None => "/",
            },
            None => text,
        };
        let fits = path.len() <= TARGET_BYTES_MAX && path.starts_with('/');
        let is_clean = !path.contains(|letter: char| letter.is_control() || letter == ' ');
        match fits && is_clean {
            true => Ok(Self(path.to_owned())),
            false => Err(PurgeError::Target),
        }
    }
}

impl FromStr for Tag {
    type Err = PurgeError;

    fn from_str(text: &str) -> Result<Self, PurgeError> {
        let is_word = !text.contains(|letter: char| letter.is_control() || letter.is_whitespace());
        match is_word && (1..=TAG_BYTES_MAX).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(PurgeError::Tag),
        }
    }
}

impl PurgeTarget {
    /// Path and query.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tag {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// For people: `/news`, `keys a b`, `everything`.
impl fmt::Display for PurgeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(target) => f.write_str(target.as_str()),
            Self::Tags(tags) => {
                f.write_str("keys")?;
                tags.iter().try_for_each(|tag| write!(f, " {}", tag.0))
            }
            Self::All => f.write_str("everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_the_path_and_query_count() {
        let target = |url: &str| url.parse().map(|PurgeTarget(path)| path);
        assert_eq!(target("/a?b=c"), Ok("/a?b=c".into()));
        assert_eq!(target("http://example.org/a"), Ok("/a".into()));
        assert_eq!(target("https://example.org"), Ok("/".into()));
        for bad in ["", "a", "ftp://example.org/", "/a b", "/a\r\nb"] {
            assert_eq!(target(bad), Err(PurgeError::Target), "{bad:?}");
        }
        let long = format!("/{}", "a".repeat(TARGET_BYTES_MAX));
        assert_eq!(target(&long), Err(PurgeError::Target));
    }

    #[test]
    fn tags_are_words_and_few() {
        let count = |tags: &str| match Purge::tags(tags, PurgeKind::Hard)?.scope {
            PurgeScope::Tags(tags) => Ok(tags.len()),
            PurgeScope::Url(_) | PurgeScope::All => Ok(0),
        };
        assert_eq!(count(" a  b\tc "), Ok(3));
        assert_eq!(count(""), Err(PurgeError::TagCount));
        assert_eq!(count(&"a ".repeat(17)), Err(PurgeError::TagCount));
        assert_eq!(count(&"a".repeat(129)), Err(PurgeError::Tag));
    }
}
