//! A folder in memory for the length of a bench, that goes away however the bench ends.
//!
//! In memory, because a disk that is busy with logs or a cache would be measured, too. A small
//! shell waits beside us for the end of its input: that comes when we are done, and also when we
//! are killed. Then it removes the folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::Failure;
use crate::workspace::{Workspace, failed};

/// The folder. Dropped, it is removed.
#[derive(Debug)]
pub struct Scratch {
    /// Where it is.
    pub folder: PathBuf,
    guard: Child,
}

/// A file system in memory, on any Linux of today.
const MEMORY: &str = "/dev/shm";
/// The guard: servers that were told to end may still be writing for a moment.
const GUARD: &str = "read -r line; for try in 1 2 3 4 5 6 7 8; do \
    rm -rf -- \"$1\" 2>/dev/null && exit; sleep 1; done";

impl Scratch {
    /// An empty folder, and its guard.
    pub fn new(workspace: &Workspace) -> Result<Self, Failure> {
        let folder = match Path::new(MEMORY).is_dir() {
            true => Path::new(MEMORY).join(format!("levee-bench-{}", std::process::id())),
            false => workspace.fresh_folder("bench")?,
        };
        fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        let guard = Command::new("setsid")
            .args(["sh", "-c", GUARD, "sh"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .map_err(failed("guard", &folder))?;
        Ok(Self { folder, guard })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It ends by itself in any case.
        let _ = self.guard.wait();
    }
}

/// Lets servers that run as nobody write into `folder`.
pub fn open_to_all(folder: &Path) -> Result<(), Failure> {
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed("open", path))
    };
    set(folder, 0o777)?;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            set(&entry.path(), 0o777)?;
        }
    }
    Ok(())
}
