//! A file that lets its writer wait until a test has seen that nobody else waits with it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

/// A pipe in the place of a file: whoever opens it to write waits for a reader.
pub struct SlowFile {
    path: PathBuf,
    seen: Sender<()>,
    watch: JoinHandle<Waited>,
}

/// Whether the writer was seen to wait alone.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    Alone,
    WithAll,
}

/// Longest that a writer waits for a test that cannot go on because of it.
const PATIENCE: Duration = Duration::from_secs(20);

impl SlowFile {
    /// Makes it.
    pub fn at(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let (seen, told) = channel();
        let place = path.to_owned();
        let watch = std::thread::spawn(move || match told.recv_timeout(PATIENCE) {
            Ok(()) => Waited::Alone,
            Err(_) => {
                read(&place);
                Waited::WithAll
            }
        });
        Self {
            path: path.into(),
            seen,
            watch,
        }
    }

    /// Somebody else goes on: so does the writer, who is told that a pipe cannot be flushed.
    pub fn release(self) -> Waited {
        let _ = self.seen.send(());
        let waited = self.watch.join().unwrap();
        read(&self.path);
        waited
    }
}

fn read(path: &Path) {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(at_once)
        .open(path);
    // The writer has what it writes in the pipe, which ends with it.
    std::mem::forget(file);
}
