//! A purge as the parameters of a line: `url=/news?page=2`, `tags=news,sport`, and `soft=1`.
//!
//! Without `url` and `tags`, or with another that we do not know yet, a purge is about everything:
//! a receiver that removes too much is slower for a moment, one that removes too little shows what
//! was taken back. For the same reason a purge that does not fit on a line, or could not be read
//! back from it, is sent as one of everything.

use std::fmt;

use levee_vocab::{PURGE_TAGS_MAX, Purge, PurgeKind, PurgeScope, Tag};

use crate::grammar::{ParseError, Words, fill, flag};

/// Longest text of a scope: with number, command and `soft=1` it leaves room on a line.
const TEXT_MAX: usize = 900;

/// The purge as it can be sent: itself, or one of everything.
pub fn sendable(purge: Purge) -> Purge {
    let text = purge_words(&purge).to_string();
    let fits = text.len() <= TEXT_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    match fits {
        true => purge,
        false => Purge {
            scope: PurgeScope::All,
            ..purge
        },
    }
}

/// The parameters, each with a space before it.
pub(crate) const fn purge_words(purge: &Purge) -> PurgeWords<'_> {
    PurgeWords(purge)
}

pub(crate) struct PurgeWords<'a>(&'a Purge);

impl fmt::Display for PurgeWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.scope {
            PurgeScope::Url(target) => write!(f, " url={}", target.as_str())?,
            PurgeScope::Tags(tags) => {
                for (index, tag) in tags.iter().enumerate() {
                    f.write_str(if index == 0 { " tags=" } else { "," })?;
                    escape(tag, f)?;
                }
            }
            PurgeScope::All => {}
        }
        match self.0.kind {
            PurgeKind::Hard => Ok(()),
            PurgeKind::Soft => f.write_str(" soft=1"),
        }
    }
}

pub(crate) fn parse_purge(words: Words<'_>) -> Result<Purge, ParseError> {
    let (mut url, mut tags, mut soft) = (None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "url" => fill(&mut url, "url", value.parse().ok().map(PurgeScope::Url))?,
            "tags" => fill(&mut tags, "tags", parse_tags(value))?,
            "soft" => fill(&mut soft, "soft", flag(value))?,
            _ => {}
        }
    }
    let scope = match (url, tags) {
        (Some(_), Some(_)) => return Err(ParseError::Surplus),
        (Some(scope), None) | (None, Some(scope)) => scope,
        (None, None) => PurgeScope::All,
    };
    let kind = match soft {
        Some(true) => PurgeKind::Soft,
        Some(false) | None => PurgeKind::Hard,
    };
    Ok(Purge { scope, kind })
}

fn parse_tags(text: &str) -> Option<PurgeScope> {
    let tags: Option<Vec<Tag>> = text.split(',').map(unescape).collect();
    tags.filter(|tags| tags.len() <= PURGE_TAGS_MAX)
        .map(PurgeScope::Tags)
}

/// `%2C` for a comma and so on (RFC 3986 section 2.1).
fn escape(tag: &Tag, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in tag.as_str().bytes() {
        match byte.is_ascii_graphic() && byte != b',' && byte != b'%' {
            true => write!(f, "{}", char::from(byte))?,
            false => write!(f, "%{byte:02X}")?,
        }
    }
    Ok(())
}

fn unescape(text: &str) -> Option<Tag> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()?.parse().ok()
}
