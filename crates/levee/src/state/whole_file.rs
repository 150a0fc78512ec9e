//! Replaces a file as a whole: whatever moment the power fails at, the old text is there or the new
//! one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner only: it holds a secret.
    Owner,
    /// Whoever the folder lets in.
    Everybody,
}

/// Writes `text` to a second file, flushes it, and renames it to `path`. Blocks for two disk
/// flushes.
///
/// # Errors
/// When the disk is full or the folder is gone; the old file is still there then.
pub fn replace(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everybody => 0o644,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // What a crash left behind may have other permissions.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_replaced_as_a_whole_and_read_by_its_owner_only() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("identity.key");
        // A crash in the middle of an earlier attempt, with other permissions.
        fs::write(folder.path().join("identity.key.new"), "half").expect("written");
        for text in ["one", "two"] {
            replace(&path, text, Readers::Owner).expect("room on the disk");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!folder.path().join("identity.key.new").exists());
    }
}
