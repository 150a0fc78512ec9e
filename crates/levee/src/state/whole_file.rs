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
/// When the disk is full or the folder is gone; the old file is still there then, and nothing else.
pub fn replace(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let written = write(&fresh, text, readers).and_then(|()| fs::rename(&fresh, path));
    if let Err(error) = written {
        // What a full disk took of it takes no room from others.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn write(fresh: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Everybody => 0o644,
    };
    // What a crash left behind may have other permissions.
    let left = fs::symlink_metadata(fresh);
    if left.is_ok_and(|left| left.is_file() || left.is_symlink()) {
        fs::remove_file(fresh)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
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

    #[test]
    fn what_cannot_be_replaced_leaves_nothing_half_done() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("list");
        fs::create_dir(&path).expect("a folder in the way");
        replace(&path, "text", Readers::Everybody).expect_err("it is in the way");
        assert!(!folder.path().join("list.new").exists());
    }
}
