//! Whether a file could be made in a folder, found out without leaving one there.
//!
//! Permission bits do not tell: they stop no root, and `/proc` refuses everybody. So a file without
//! a name is made (`O_TMPFILE`): nobody sees it, and it is gone when it is closed, even by a kill.
//! Where a file system knows none, a file with a name is made and removed.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Tries to make a file in `folder`.
///
/// # Errors
/// What the system said.
pub(super) fn make_file(folder: &Path) -> io::Result<()> {
    let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    if openat(CWD, folder, nameless, Mode::RUSR | Mode::WUSR).is_ok() {
        return Ok(());
    }
    let path = folder.join(format!(".levee-check-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)
}

/// Tries to open the file `path` for more at its end. Writes nothing.
///
/// # Errors
/// What the system said.
pub(super) fn open_to_append(path: &Path) -> io::Result<()> {
    // A pipe that nobody reads yet would have us wait.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = OpenOptions::new()
        .append(true)
        .custom_flags(nonblocking)
        .open(path);
    match opened {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => Ok(()),
        opened => opened.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_what_takes_no_files_is_known() {
        let folder = tempfile::tempdir().unwrap();
        make_file(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // Root too is refused there.
        make_file(Path::new("/proc")).unwrap_err();
        make_file(&folder.path().join("none")).unwrap_err();
    }

    #[test]
    fn a_pipe_without_a_reader_is_waited_for_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        open_to_append(&pipe).unwrap();
        open_to_append(folder.path()).unwrap_err();
    }
}
