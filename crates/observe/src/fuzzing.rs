//! What fuzzing holds against the reader of log lines that others hand over: properties that every
//! input must have.
//!
//! The target in `fuzz/` calls this with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use crate::{HandedOver, LogFormat};

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 1] = [("handed_over", handed_over)];

/// Each line is refused or read; what is read is one line when it is written, and is read again as
/// the same, whatever bytes were in it.
pub fn handed_over(data: &[u8]) {
    let read = HandedOver::parse(data, "r.example");
    let lines = data
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    assert_eq!(
        read.records.len() as u64 + read.refused,
        lines.count() as u64
    );
    for record in &read.records {
        for format in [LogFormat::Json, LogFormat::Combined] {
            let mut line = Vec::new();
            record.render(format, &mut line);
            let text = std::str::from_utf8(&line).expect("a log is text");
            assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
            let again = HandedOver::parse(&line, "r.example");
            assert_eq!(again.refused, 0, "{text}");
            let mut twice = Vec::new();
            again.records[0].render(format, &mut twice);
            assert_eq!(text, String::from_utf8_lossy(&twice));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
