//! Text files that hold an entry a line: how all of them are read.
//!
//! Comments (`#`) and empty lines are passed over. A line that is not understood stops the reading:
//! it is the operator's to mend, and the sentence names the file and the line.

use std::fs;
use std::io;
use std::path::Path;

use super::StateError;

/// What `parse` makes of each line of the file at `path`; nothing where there is no file. Blocks
/// for the disk.
///
/// # Errors
/// When the file cannot be read, or `parse` makes nothing of a line.
pub fn entries_at<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StateError> {
    let text = text_at(path)?.unwrap_or_default();
    let is_entry = |(_, line): &(usize, &str)| !line.starts_with('#') && !line.is_empty();
    let lines = text.lines().enumerate().filter(is_entry);
    let entries = lines.map(|(index, line)| {
        parse(line).ok_or_else(|| StateError::Damaged {
            path: path.into(),
            line: index + 1,
            text: line.into(),
        })
    });
    entries.collect()
}

/// The text of the file at `path`; none where there is no such file. Blocks for the disk.
///
/// # Errors
/// When it cannot be read.
pub(super) fn text_at(path: &Path) -> Result<Option<String>, StateError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::Read {
            path: path.into(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(path: &Path) -> Result<Vec<u8>, String> {
        entries_at(path, |line| line.parse().ok()).map_err(|error| error.to_string())
    }

    #[test]
    fn comments_and_empty_lines_are_no_entries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        assert_eq!(numbers(&path), Ok(vec![]), "there is no file yet");
        fs::write(&path, "# numbers 1\n\n7\n# more\n8\n").unwrap();
        assert_eq!(numbers(&path), Ok(vec![7, 8]));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_file_and_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let shown = path.display();
        fs::write(&path, "# numbers 1\n\n7\neight\n").unwrap();
        let told = format!("{shown} line 4 is damaged: `eight`; mend or delete that line");
        assert_eq!(numbers(&path), Err(told));
        fs::write(&path, b"7\n\xff\n").unwrap();
        let told = numbers(&path).unwrap_err();
        assert!(
            told.starts_with(&format!("cannot read {shown}: ")),
            "{told}"
        );
        assert!(told.ends_with("; mend or delete the file"), "{told}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let told = numbers(&path).unwrap_err();
        assert!(
            told.starts_with(&format!("cannot read {shown}: ")),
            "{told}"
        );
        assert!(told.ends_with("; move it away"), "{told}");
    }
}
