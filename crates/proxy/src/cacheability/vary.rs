//! The Vary field: by which request headers the response to one URL differs.

mod spelling;

use std::cell::RefCell;

use bytes::Bytes;
use http::{HeaderMap, header};

use super::syntax::split_outside_quotes;
use crate::flight::{Purpose, RequestHeaders};
pub use spelling::normal_encodings;
use spelling::{Spelling, push_normal};

/// More names than this make every request a variant of its own; such a response is not worth
/// keeping.
const NAMES_MAX: usize = 8;

/// Where an application of our own reads which Host and scheme a visitor asked for. Both are part
/// of the name of its objects, whether a response varies by them or not.
const IN_THE_NAME: [&str; 3] = ["host", "x-forwarded-host", "x-forwarded-proto"];

/// The names in a Vary field: lower case, sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryNames(Box<[Name]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: Box<str>,
    spelling: Spelling,
}

/// The response varies by more than request headers, or by too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unmatchable;

thread_local! {
    /// Where the values of a request are written while they are looked for: a hit allocates
    /// nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl VaryNames {
    /// The names by which responses to one name of an object vary; none where they do not.
    pub(super) fn of(headers: &HeaderMap, purpose: Purpose) -> Result<Option<Self>, Unmatchable> {
        let mut names: Vec<Box<str>> = Vec::new();
        for value in headers.get_all(header::VARY) {
            for name in split_outside_quotes(value.as_bytes()) {
                let name = std::str::from_utf8(name).map_err(|_| Unmatchable)?;
                if name == "*" {
                    return Err(Unmatchable);
                }
                let name = name.to_ascii_lowercase();
                let is_in_the_name = match purpose {
                    Purpose::Upstream => IN_THE_NAME.contains(&&*name),
                    Purpose::Rescue => false,
                };
                if !is_in_the_name {
                    names.push(name.into());
                }
            }
        }
        // A server that compresses and forgets to say so must not hand packed bytes to all.
        if headers.contains_key(header::CONTENT_ENCODING) {
            names.push(header::ACCEPT_ENCODING.as_str().into());
        }
        names.sort();
        names.dedup();
        let count = names.len();
        let names = names.into_iter().map(|text| Name {
            spelling: Spelling::of(&text),
            text,
        });
        match count {
            0 => Ok(None),
            1..=NAMES_MAX => Ok(Some(Self(names.collect()))),
            _ => Err(Unmatchable),
        }
    }

    /// What a request says under these names. Two requests with the same text get the same variant.
    pub fn variant(&self, request: &(impl RequestHeaders + ?Sized)) -> Bytes {
        let mut text = Vec::new();
        self.write(request, &mut text);
        text.into()
    }

    /// Calls `look` with what a request says under these names. Allocates nothing once this thread
    /// has seen a text as long.
    pub(crate) fn with_variant<R>(
        &self,
        request: &(impl RequestHeaders + ?Sized),
        look: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let mut text = SCRATCH.take();
        text.clear();
        self.write(request, &mut text);
        let found = look(&text);
        SCRATCH.set(text);
        found
    }

    fn write(&self, request: &(impl RequestHeaders + ?Sized), text: &mut Vec<u8>) {
        for name in &self.0 {
            push_normal(name.spelling, &name.text, request, text);
            // Cannot stand in a value, so values cannot run into each other.
            text.push(b'\n');
        }
    }

    /// Bytes on the heap.
    pub(crate) fn weight(&self) -> usize {
        let names = self.0.iter().map(|name| name.text.len());
        size_of_val::<[Name]>(&self.0) + names.sum::<usize>()
    }
}
