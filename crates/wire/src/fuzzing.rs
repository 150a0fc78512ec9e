//! What fuzzing holds against the readers of this crate: properties that every input must have.
//!
//! The targets in `fuzz/` call these with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use std::fmt::{Debug, Display};
use std::str::FromStr;

use levee_vocab::{AddressBlock, FetchKey, HostName, Purge, PurgeKind, PurgeTarget};

use crate::registry::ProofWord;
use crate::{
    BackWord, PROXY_HEADER_BYTES_MAX, ProxyHeader, ProxyHeaderFault, cut_back, mesh, push_back,
    registry, rescue,
};

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 4] = [
    ("back", back),
    ("lines", lines),
    ("proxy_header", proxy_header),
    ("words", words),
];

/// Each line is refused, or says the same when it is written and read again: lines of a rescue
/// link, of a registry and its sites, and of registries among themselves.
pub fn lines(data: &[u8]) {
    for line in data.split(|&byte| byte == b'\n') {
        if let Ok(message) = rescue::parse(line) {
            let mut again = Vec::new();
            message.encode(&mut again);
            same(&message, rescue::parse(without_end(&again)));
        }
        if let Ok((number, request)) = registry::parse_request(line) {
            let mut again = Vec::new();
            request.encode(number, &mut again);
            let read = registry::parse_request(without_end(&again));
            same(&(number, request), read);
        }
        if let Ok((number, reply)) = registry::parse_reply_line(line) {
            let mut again = Vec::new();
            reply.encode(number, &mut again);
            let read = registry::parse_reply_line(without_end(&again));
            same(&(number, reply), read);
        }
        if let Ok(message) = mesh::parse(line) {
            let mut again = Vec::new();
            message.encode(1, &mut again);
            same(&message, mesh::parse(without_end(&again)));
        }
        if let Ok((number, welcome)) = mesh::parse_welcome(line) {
            let mut again = Vec::new();
            welcome.encode(number, &mut again);
            let read = mesh::parse_welcome(without_end(&again));
            same(&(number, welcome), read);
        }
        if let Some((number, serial)) = registry::parse_list_request(line) {
            let mut again = Vec::new();
            registry::encode_list_request(number, serial, &mut again);
            let read = registry::parse_list_request(without_end(&again));
            assert_eq!(read, Some((number, serial)));
        }
        if let Ok(registry::ListLine::Piece(piece)) = registry::parse_list_line(1, line) {
            assert!(piece.len() <= line.len());
        }
        if let Ok(text) = std::str::from_utf8(line)
            && let Some((covered, _)) = registry::split_answer(text)
        {
            assert!(text.starts_with(covered));
        }
        // No value of ours: who begins a link between registries says no more than its name.
        let _ = mesh::parse_hello(line);
    }
}

/// A target with the word of the way back in it: what is cut out leaves a target without one, and
/// what is put in is what is cut out.
pub fn back(data: &[u8]) {
    let Ok(target) = std::str::from_utf8(data) else {
        return;
    };
    let (left, word) = match cut_back(target) {
        Some(cut) => {
            assert!(cut.target.len() < target.len());
            (cut.target.into_owned(), cut.word)
        }
        None => (target.to_owned(), BackWord::Unsigned),
    };
    assert_eq!(cut_back(&left), None, "{target}");
    let mut again = Vec::new();
    push_back(&left, word, &mut again);
    let again = String::from_utf8(again).expect("texts of ours");
    let cut = cut_back(&again).expect("it was put in just now");
    assert_eq!((cut.target.as_ref(), cut.word), (left.as_str(), word));
}

/// A PROXY header: however it is cut, it is read alike or more is waited for, and what follows it
/// does not matter.
pub fn proxy_header(data: &[u8]) {
    let whole = ProxyHeader::parse(data);
    let longest = data.len().min(PROXY_HEADER_BYTES_MAX + 1);
    for cut in (0..longest).step_by(1 + longest / 64) {
        match (ProxyHeader::parse(&data[..cut]), &whole) {
            (Ok(None), _) => {}
            (Ok(Some(part)), Ok(Some(whole))) => assert_eq!(part, *whole, "at {cut}"),
            (Err(_), Err(_)) => {}
            (part, whole) => panic!("at {cut} {part:?}, and then {whole:?}"),
        }
    }
    match whole {
        Ok(Some(header)) => {
            assert!(header.length <= data.len().min(PROXY_HEADER_BYTES_MAX));
            let behind = [&data[..header.length], b"GET / HTTP/1.1"].concat();
            assert_eq!(ProxyHeader::parse(&behind), Ok(Some(header)));
        }
        Ok(None) => assert!(data.len() < PROXY_HEADER_BYTES_MAX),
        Err(fault) => assert!(fault != ProxyHeaderFault::Signature || !data.is_empty()),
    }
}

/// The words that lines, settings and command lines are made of, one a line: each is refused, or
/// reads again as it is printed.
pub fn words(data: &[u8]) {
    for line in data.split(|&byte| byte == b'\n') {
        let Ok(text) = std::str::from_utf8(line) else {
            continue;
        };
        prints_and_reads::<HostName>(text);
        prints_and_reads::<AddressBlock>(text);
        prints_and_reads::<FetchKey>(text);
        prints_and_reads::<ProofWord>(text);
        if let Ok(target) = text.parse::<PurgeTarget>() {
            assert_eq!(target.as_str().parse(), Ok(target));
        }
        if let Ok(purge) = Purge::tags(text, PurgeKind::Soft) {
            let shown = purge.scope.to_string();
            let words = shown.strip_prefix("keys ").expect("keys were asked for");
            assert_eq!(Purge::tags(words, PurgeKind::Soft), Ok(purge));
        }
    }
}

fn prints_and_reads<T: FromStr<Err: Debug + PartialEq> + Display + Debug + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string().parse(), Ok(value));
    }
}

fn same<T: Debug + PartialEq, E: Debug + PartialEq>(value: &T, again: Result<T, E>) {
    assert_eq!(again.as_ref(), Ok(value));
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
