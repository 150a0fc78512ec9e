//! What fuzzing holds against the readers of lines: properties that every input must have.
//!
//! The target in `fuzz/` calls this with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`.

use std::fmt::Debug;

use crate::{mesh, registry, rescue};

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
        // No value of ours: who begins a link between registries says no more than its name.
        let _ = mesh::parse_hello(line);
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
    use std::fs;
    use std::path::Path;

    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        let corpus = fs::read_dir(root.join("corpus/lines")).expect("a corpus");
        let crashes = fs::read_dir(root.join("crashes/lines"));
        let mut tried = 0;
        for entry in corpus.chain(crashes.into_iter().flatten()) {
            let path = entry.expect("a file").path();
            super::lines(&fs::read(&path).expect("readable"));
            tried += 1;
        }
        assert!(tried >= 4, "the corpus has {tried}");
    }
}
