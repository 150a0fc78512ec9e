//! The Vary field: by which request headers the response to one URL differs.

use bytes::Bytes;
use http::{HeaderMap, header};

use super::syntax::split_outside_quotes;
use crate::flight::{Purpose, RequestHeaders};

/// More names than this make every request a variant of its own; such a response is not worth
/// keeping.
const NAMES_MAX: usize = 8;

/// The codings that browsers ask for, in the order in which we pass them on.
const CODINGS: [&str; 3] = ["br", "gzip", "zstd"];

/// The names in a Vary field: lower case, sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryNames(Box<[Box<str>]>);

/// The response varies by more than request headers, or by too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unmatchable;

impl VaryNames {
    /// The names by which a response varies; none where it does not.
    ///
    /// An application of our own may answer each Host differently (a redirect to its main name,
    /// links to itself), and a visitor can send any; so its responses always vary by Host. A
    /// rescued origin gets the one Host that its objects are kept under.
    pub(super) fn of(headers: &HeaderMap, purpose: Purpose) -> Result<Option<Self>, Unmatchable> {
        let mut names: Vec<Box<str>> = match purpose {
            Purpose::Upstream => vec![header::HOST.as_str().into()],
            Purpose::Rescue => Vec::new(),
        };
        for value in headers.get_all(header::VARY) {
            for name in split_outside_quotes(value.as_bytes()) {
                let name = std::str::from_utf8(name).map_err(|_| Unmatchable)?;
                if name == "*" {
                    return Err(Unmatchable);
                }
                names.push(name.to_ascii_lowercase().into());
            }
        }
        // A server that compresses and forgets to say so must not hand packed bytes to all.
        if headers.contains_key(header::CONTENT_ENCODING) {
            names.push(header::ACCEPT_ENCODING.as_str().into());
        }
        names.sort();
        names.dedup();
        match names.len() {
            0 => Ok(None),
            1..=NAMES_MAX => Ok(Some(Self(names.into()))),
            _ => Err(Unmatchable),
        }
    }

    /// What a request says under these names. Two requests with the same text get the same variant.
    pub fn variant(&self, request: &(impl RequestHeaders + ?Sized)) -> Bytes {
        let mut text = Vec::new();
        for name in &self.0 {
            if **name == *header::ACCEPT_ENCODING.as_str() {
                text.extend_from_slice(normal_encodings(request).as_bytes());
            } else {
                request.each(name, &mut |value| {
                    text.extend_from_slice(value.trim_ascii());
                    text.push(b',');
                });
            }
            // Cannot stand in a value, so values cannot run into each other.
            text.push(b'\n');
        }
        text.into()
    }

    /// Bytes on the heap.
    pub(crate) fn weight(&self) -> usize {
        let names = self.0.iter().map(|name| name.len());
        size_of_val::<[Box<str>]>(&self.0) + names.sum::<usize>()
    }
}

/// The codings that a request accepts, in one spelling: `br, gzip`. Empty where it wants none.
pub fn normal_encodings(request: &(impl RequestHeaders + ?Sized)) -> String {
    let mut named = [None; CODINGS.len()];
    let mut others = None;
    request.each("accept-encoding", &mut |value| {
        for member in split_outside_quotes(value) {
            let mut parts = member.split(|&byte| byte == b';');
            let coding = parts.next().unwrap_or_default().trim_ascii();
            let wanted = !parts.any(|parameter| is_zero_quality(parameter.trim_ascii()));
            let known = |name: &&str| coding.eq_ignore_ascii_case(name.as_bytes());
            if let Some(index) = CODINGS.iter().position(known) {
                named[index] = Some(wanted);
            } else if coding == b"*" {
                others = Some(wanted);
            }
        }
    });
    let chosen = named.iter().zip(CODINGS);
    let chosen = chosen.filter(|(wanted, _)| wanted.or(others) == Some(true));
    chosen.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

fn is_zero_quality(parameter: &[u8]) -> bool {
    let Some(value) = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))
    else {
        return false;
    };
    value.first() == Some(&b'0') && value[1..].iter().all(|byte| matches!(byte, b'.' | b'0'))
}
