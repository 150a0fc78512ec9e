//! What fuzzing holds against the readers of files: settings, access logs of others, and what a
//! server wrote into its state folder before.
//!
//! The targets in `fuzz/` call these with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use std::path::Path;

use crate::replay::line::{LineReader, Said};
use crate::settings::{Settings, SettingsFile};
use crate::{dns, integrity, state};

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 3] = [
    ("replay_line", replay_line),
    ("settings", settings),
    ("state_files", state_files),
];

/// A settings file: it becomes settings, or complaints of which each tells what is wrong, and on
/// which of its lines.
pub fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = SettingsFile::read(&text, Path::new("/srv"));
    let settled = read.and_then(|file| Settings::settle(&file));
    let Err(complaints) = settled else { return };
    assert!(!complaints.is_empty());
    let lines = text.split('\n').count();
    for complaint in complaints {
        assert!(!complaint.text.is_empty());
        let line = complaint.line.unwrap_or(1);
        assert!((1..=lines).contains(&line), "{complaint} of {lines} lines");
    }
}

/// Lines of an access log: each says the same when it is read again by whoever has read others.
pub fn replay_line(data: &[u8]) {
    let mut reader = LineReader::default();
    for line in data.split(|&byte| byte == b'\n') {
        let first = reader.read(line);
        assert_eq!(LineReader::default().read(line), first);
        if let Ok(Said::Visit(visit)) = first {
            assert!(visit.at.fraction.is_none_or(|nanos| nanos < 1_000_000_000));
            assert!(!visit.target.contains('\n'));
        }
    }
}

/// Lines of the state folder: each is read or refused, and none does harm.
pub fn state_files(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        state::fuzzed_line(line);
        dns::fuzzed_line(line);
        integrity::fuzzed_line(line);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
