//! Names for things that have no name of their own.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// One rescue link: the connection over which an origin server and a rescue server talk.
///
/// The shell numbers the links that others open, the Brain those that it asks for; the two ranges
/// never meet, so that a late message about a closed link can be told from one about a new link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkId {
    /// A link that we opened to a rescue server.
    Outbound(u64),
    /// A link that an origin server opened to us.
    Inbound(u64),
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outbound(number) => write!(f, "out{number}"),
            Self::Inbound(number) => write!(f, "in{number}"),
        }
    }
}

/// A secret of one rescue: a rescue server shows it when it fetches from the origin server, so that
/// it is never redirected. Made by the shell from the operating system's randomness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchKey([u8; 16]);

/// A fetch key is 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("fetch key is not 32 hexadecimal digits")]
pub struct FetchKeyError;

impl FetchKey {
    /// A key of these random bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The secret itself, to vouch for something with it.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Whether `text` is this key in hexadecimal. Takes the same time for each wrong text of the
    /// right length, so that the key cannot be guessed byte by byte.
    pub fn matches(&self, text: &[u8]) -> bool {
        text.len() == 32
            && self
                .digits()
                .iter()
                .zip(text)
                .fold(0, |seen, (a, b)| seen | (a ^ b))
                == 0
    }

    fn digits(&self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (index, byte) in self.0.iter().enumerate() {
            digits[2 * index] = b"0123456789abcdef"[usize::from(byte >> 4)];
            digits[2 * index + 1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        digits
    }
}

impl FromStr for FetchKey {
    type Err = FetchKeyError;

    fn from_str(text: &str) -> Result<Self, FetchKeyError> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(FetchKeyError);
        }
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| FetchKeyError)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for FetchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

/// Never printed by accident: a log with keys in it is a key given away.
impl fmt::Debug for FetchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_key_survives_its_text_and_hides_in_logs() {
        let key = FetchKey::from_bytes([0xA5; 16]);
        let text = key.to_string();
        assert_eq!(text.parse(), Ok(key));
        assert!(key.matches(text.as_bytes()));
        assert!(!key.matches(&text.as_bytes()[1..]));
        assert_eq!("xyz".parse::<FetchKey>(), Err(FetchKeyError));
        assert_eq!(format!("{key:?}"), "FetchKey(..)");
    }
}
