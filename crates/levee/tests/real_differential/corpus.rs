//! The corpus: files of requests that are odd in one way each, and the reason in a line.
//!
//! ```text
//! # What the file is about.
//!
//! = Why this request is odd; nothing is said about what must become of it.
//! GET / HTTP/1.1\r\n
//! Host: a\r\n\r\n
//!
//! + One that every server must take.
//! - One that must be refused.
//! ! nginx: why levee takes more than nginx does, with the section of the RFC.
//! ```
//!
//! Only escapes make bytes that cannot be seen: `\r`, `\n`, `\t`, `\\`, `\xHH`; `\{N*text}` is
//! `text` N times. The ends of the file's own lines do not count.

use std::path::Path;

/// One request, or several in one stream.
#[derive(Debug)]
pub struct Case {
    pub file: String,
    pub reason: String,
    pub stance: Stance,
    /// By peer: why levee is other than it.
    pub explained: Vec<(String, String)>,
    pub request: Vec<u8>,
}

/// What must become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    Open,
    Taken,
    Refused,
}

/// All cases, by file.
pub fn read() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/requests");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().flat_map(|file| cases(file)).collect()
}

fn cases(path: &Path) -> Vec<Case> {
    let file = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let begins = |stance, reason: &str| Case {
            file: file.clone(),
            reason: reason.to_owned(),
            stance,
            explained: Vec::new(),
            request: Vec::new(),
        };
        match line.split_at_checked(2) {
            Some(("= ", reason)) => cases.push(begins(Stance::Open, reason)),
            Some(("+ ", reason)) => cases.push(begins(Stance::Taken, reason)),
            Some(("- ", reason)) => cases.push(begins(Stance::Refused, reason)),
            Some(("# ", _)) => {}
            Some(("! ", why)) => {
                let (peer, why) = why.split_once(": ").expect("a peer and a reason");
                assert!(why.contains("RFC "), "{file}: {why} names no RFC");
                let explained = (peer.to_owned(), why.to_owned());
                cases.last_mut().unwrap().explained.push(explained);
            }
            _ if line.is_empty() => {}
            _ => cases.last_mut().unwrap().request.extend(bytes(line)),
        }
    }
    cases
}

/// The bytes of a line.
fn bytes(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let used = match escape.as_bytes()[0] {
            b'r' => push(&mut bytes, b"\r", 1),
            b'n' => push(&mut bytes, b"\n", 1),
            b't' => push(&mut bytes, b"\t", 1),
            b'\\' => push(&mut bytes, b"\\", 1),
            b'x' => {
                let byte = u8::from_str_radix(&escape[1..3], 16).unwrap();
                push(&mut bytes, &[byte], 3)
            }
            b'{' => {
                let (times, text) = escape[1..].split_once('*').unwrap();
                let (text, _) = text.split_once('}').unwrap();
                let repeated = text.repeat(times.parse().unwrap());
                push(
                    &mut bytes,
                    &self::bytes(&repeated),
                    times.len() + text.len() + 3,
                )
            }
            other => panic!("no such escape: {:?} in {line}", other as char),
        };
        rest = &escape[used..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

fn push(bytes: &mut Vec<u8>, piece: &[u8], used: usize) -> usize {
    bytes.extend_from_slice(piece);
    used
}
