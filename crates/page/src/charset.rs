//! In which encoding a page is, as far as its URLs depend on it.
//!
//! Tags are ASCII in all encodings of the web but UTF-16, so a page is cut without knowing its
//! encoding. Only a URL with other letters needs it: browsers send its path in UTF-8 and its query
//! in the page's own encoding.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// What is known of a page's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Nobody has said anything: UTF-8 where it can be.
    Unknown,
    /// As the response or the page says.
    Known(&'static Encoding),
}

impl Charset {
    /// The one that a `Content-Type` names.
    pub fn of_content_type(content_type: &str) -> Self {
        let mut parameters = content_type.split(';').skip(1);
        let label = parameters.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_charset = name.trim().eq_ignore_ascii_case("charset");
            is_charset.then(|| value.trim().trim_matches('"'))
        });
        Self::Unknown.or(label.unwrap_or_default().as_bytes())
    }

    /// What the page says of itself counts only if the response said nothing.
    pub fn or(self, label: &[u8]) -> Self {
        match (self, Encoding::for_label(label)) {
            (Self::Unknown, Some(encoding)) if encoding.is_ascii_compatible() => {
                Self::Known(encoding)
            }
            // A page that names UTF-16 in letters that can be read is not in UTF-16.
            (Self::Unknown, Some(_)) => Self::Known(UTF_8),
            (kept, _) => kept,
        }
    }

    /// What is said second counts only if nothing was said first.
    pub const fn or_else(self, second: Self) -> Self {
        match self {
            Self::Unknown => second,
            Self::Known(_) => self,
        }
    }

    /// The text of some bytes, and the encoding in which its queries are sent.
    pub fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, &'static Encoding) {
        let encoding = match self {
            Self::Known(encoding) => encoding,
            Self::Unknown => match std::str::from_utf8(bytes) {
                Ok(_) => UTF_8,
                Err(_) => WINDOWS_1252,
            },
        };
        (encoding.decode_without_bom_handling(bytes).0, encoding)
    }
}
