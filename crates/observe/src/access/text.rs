//! A short text that lives inside its record, so that the usual request costs no allocation.
//!
//! Longer texts go to the heap, and are cut at a length that no honest request needs.

use std::fmt;

/// Bytes that came from outside: up to `N` inside the value, more on the heap, never more than
/// `LOG_TEXT_MAX`. `N` must be below 256.
#[derive(Clone)]
pub struct LogText<const N: usize>(Kept<N>);

/// Longest text that is kept. Servers refuse longer request lines anyway; the log must not grow
/// without limit because of one request.
pub const LOG_TEXT_MAX: usize = 8192;

#[derive(Clone)]
enum Kept<const N: usize> {
    Inside { length: u8, bytes: [u8; N] },
    Outside(Box<[u8]>),
}

impl<const N: usize> LogText<N> {
    /// The empty text: nothing was sent.
    pub const EMPTY: Self = Self(Kept::Inside {
        length: 0,
        bytes: [0; N],
    });

    /// A copy of `bytes`. Allocates only where they are more than `N`.
    pub fn new(bytes: &[u8]) -> Self {
        const { assert!(N < 256, "the length inside the value is one byte") };
        if bytes.len() > N {
            let cut = &bytes[..bytes.len().min(LOG_TEXT_MAX)];
            return Self(Kept::Outside(cut.into()));
        }
        let mut kept = [0; N];
        kept[..bytes.len()].copy_from_slice(bytes);
        Self(Kept::Inside {
            length: bytes.len() as u8,
            bytes: kept,
        })
    }

    /// The bytes, as they were sent.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Inside { length, bytes } => &bytes[..usize::from(*length)],
            Kept::Outside(bytes) => bytes,
        }
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

impl<const N: usize> Default for LogText<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> PartialEq for LogText<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for LogText<N> {}

impl<const N: usize> From<&[u8]> for LogText<N> {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<&str> for LogText<N> {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl<const N: usize> fmt::Debug for LogText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whole_until_it_is_absurd() {
        assert!(LogText::<4>::EMPTY.is_empty());
        assert_eq!(LogText::<4>::from("abcd").as_bytes(), b"abcd");
        assert_eq!(LogText::<4>::from("abcde").as_bytes(), b"abcde");
        let absurd = vec![b'a'; LOG_TEXT_MAX + 1];
        assert_eq!(LogText::<4>::new(&absurd).as_bytes().len(), LOG_TEXT_MAX);
    }
}
