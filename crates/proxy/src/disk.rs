//! Large objects on disk.
//!
//! One folder of our own, one file an object, never more than a set number of bytes. The index is
//! in memory, so files of an earlier run are of no use and are removed at the start; that is also
//! the clean-up after a crash. A file is written under a temporary name while it comes and renamed
//! when it is whole. When the disk is full the object is served without being kept.
//!
//! A file lives as long as somebody holds its [`StoredFile`]: the cache, or a visitor who still
//! downloads it. Only then its bytes are free again, which is when they really are.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use crate::flight::lock;

/// Name of a file that is being written.
const UNFINISHED: &str = "part";
/// Name of a file that is whole.
const FINISHED: &str = "object";

/// A folder for large objects.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    limit: u64,
    used: AtomicU64,
    /// Part of both that is for objects of origins that we rescue.
    others_limit: AtomicU64,
    others_used: AtomicU64,
    next: AtomicU64,
    // Held for as long as we live: two servers on one folder would remove each other's files.
    _lock: File,
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOwner {
    /// One of our own sites'.
    Own,
    /// An origin's that we rescue.
    Another,
}

/// Why the folder cannot be used.
#[derive(Debug, Error)]
pub enum DiskError {
    /// It cannot be made, read or written.
    #[error("cannot use the cache folder {folder}: {error}")]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another server has it.
    #[error("the cache folder {folder} is used by another server; give each its own")]
    InUse {
        /// Which folder.
        folder: PathBuf,
    },
}

/// Why a piece was not written.
#[derive(Debug, Error)]
pub enum DiskFull {
    /// Our own limit.
    #[error("the cache folder has reached its limit")]
    Limit,
    /// The system refused.
    #[error("cannot write to the cache folder: {0}")]
    Io(#[from] io::Error),
}

impl Disk {
    /// Takes `folder` (made where it is missing) for at most `limit` bytes, and removes what an
    /// earlier run left there.
    pub fn open(folder: &Path, limit: u64) -> Result<Arc<Self>, DiskError> {
        let problem = |error| DiskError::Folder {
            folder: folder.to_owned(),
            error,
        };
        std::fs::create_dir_all(folder).map_err(problem)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("lock"))
            .map_err(problem)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| DiskError::InUse {
            folder: folder.to_owned(),
        })?;
        remove_leftovers(folder).map_err(problem)?;
        Ok(Arc::new(Self {
            folder: folder.to_owned(),
            limit,
            used: AtomicU64::new(0),
            others_limit: AtomicU64::new(limit),
            others_used: AtomicU64::new(0),
            next: AtomicU64::new(0),
            _lock: lock,
        }))
    }

    /// Bytes of all files, also of those that only a visitor still reads.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most that may be used.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// From now on objects of origins that we rescue have so much of the limit at most.
    pub fn limit_others(&self, bytes: u64) {
        let bytes = bytes.min(self.limit);
        self.others_limit.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of all files of origins that we rescue.
    pub fn used_by_others(&self) -> u64 {
        self.others_used.load(Ordering::Relaxed)
    }

    /// The most that may be kept in one file of `owner`.
    pub fn limit_of(&self, owner: DiskOwner) -> u64 {
        match owner {
            DiskOwner::Own => self.limit,
            DiskOwner::Another => self.others_limit.load(Ordering::Relaxed),
        }
    }

    /// An empty file to be filled.
    pub fn create(self: &Arc<Self>, owner: DiskOwner) -> Result<Arc<StoredFile>, DiskFull> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}.{UNFINISHED}"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Arc::new(StoredFile {
            file,
            disk: Arc::clone(self),
            path: Mutex::new(path),
            owner,
            reserved: AtomicU64::new(0),
        }))
    }

    /// Whose files must make room before `bytes` more of `owner` fit; nobody's where they do.
    pub fn lacks_room(&self, owner: DiskOwner, bytes: u64) -> Option<Room> {
        let over = |used: u64, limit: u64| used.saturating_add(bytes) > limit;
        match owner {
            DiskOwner::Another if over(self.used_by_others(), self.limit_of(owner)) => {
                Some(Room::OfOthers)
            }
            DiskOwner::Another | DiskOwner::Own if over(self.used(), self.limit) => {
                Some(Room::OfAll)
            }
            DiskOwner::Another | DiskOwner::Own => None,
        }
    }

    fn reserve(&self, owner: DiskOwner, bytes: u64) -> Result<(), DiskFull> {
        match owner {
            DiskOwner::Own => add_up_to(&self.used, bytes, self.limit),
            DiskOwner::Another => {
                add_up_to(&self.others_used, bytes, self.limit_of(owner))?;
                let added = add_up_to(&self.used, bytes, self.limit);
                if added.is_err() {
                    self.others_used.fetch_sub(bytes, Ordering::Relaxed);
                }
                added
            }
        }
    }

    fn free(&self, owner: DiskOwner, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        match owner {
            DiskOwner::Own => {}
            DiskOwner::Another => {
                self.others_used.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }
}

/// Which limit is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// That of the folder.
    OfAll,
    /// That of objects of origins that we rescue.
    OfOthers,
}

fn add_up_to(sum: &AtomicU64, bytes: u64, limit: u64) -> Result<(), DiskFull> {
    sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(bytes).filter(|&sum| sum <= limit)
    })
    .map(drop)
    .map_err(|_| DiskFull::Limit)
}

/// An object's file. Reads like a [`File`]; use positioned reads or sendfile, its cursor is shared.
#[derive(Debug)]
pub struct StoredFile {
    file: File,
    disk: Arc<Disk>,
    path: Mutex<PathBuf>,
    owner: DiskOwner,
    reserved: AtomicU64,
}

impl StoredFile {
    /// Writes `bytes` at `offset`; reserves their room first. Blocks on the disk.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskFull> {
        let length = bytes.len() as u64;
        self.disk.reserve(self.owner, length)?;
        self.reserved.fetch_add(length, Ordering::Relaxed);
        Ok(self.file.write_all_at(bytes, offset)?)
    }

    /// Gives the file its final name: it is whole.
    pub fn finish(&self) -> Result<(), DiskFull> {
        let mut path = lock(&self.path);
        let finished = path.with_extension(FINISHED);
        std::fs::rename(&*path, &finished)?;
        *path = finished;
        Ok(())
    }
}

impl Deref for StoredFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        let path = lock(&self.path);
        if let Err(error) = std::fs::remove_file(&*path) {
            tracing::warn!(
                "cannot remove the cached object {}: {error}",
                path.display()
            );
        }
        self.disk
            .free(self.owner, self.reserved.load(Ordering::Relaxed));
    }
}

/// Removes files that carry our endings, and nothing else: the folder may have been a mistake.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let ours = |end| path.extension().is_some_and(|extension| extension == end);
        let numbered = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .is_some_and(|stem| stem.parse::<u64>().is_ok());
        if numbered && (ours(UNFINISHED) || ours(FINISHED)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_crash_are_removed_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["7.part", "8.object", "notes.object", "9.txt"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let disk = Disk::open(folder.path(), 100).unwrap();
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["9.txt", "lock", "notes.object"]);
        assert!(matches!(
            Disk::open(folder.path(), 100),
            Err(DiskError::InUse { .. })
        ));
        drop(disk);
        assert!(Disk::open(folder.path(), 100).is_ok());
    }

    #[test]
    fn the_limit_holds_and_room_comes_back_with_the_last_reader() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), 10).unwrap();
        let file = disk.create(DiskOwner::Own).unwrap();
        file.write(0, b"12345678").unwrap();
        assert!(matches!(file.write(8, b"abc"), Err(DiskFull::Limit)));
        file.finish().unwrap();
        let reader = Arc::clone(&file);
        drop(file);
        assert_eq!(disk.used(), 8);
        let mut bytes = [0; 4];
        reader.read_exact_at(&mut bytes, 4).unwrap();
        assert_eq!(&bytes, b"5678");
        drop(reader);
        assert_eq!(disk.used(), 0);
        assert_eq!(disk.lacks_room(DiskOwner::Own, 10), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn others_have_their_part_and_it_may_change() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), 10).unwrap();
        disk.limit_others(4);
        let another = disk.create(DiskOwner::Another).unwrap();
        another.write(0, b"1234").unwrap();
        assert!(matches!(another.write(4, b"5"), Err(DiskFull::Limit)));
        let room = |owner| disk.lacks_room(owner, 1);
        assert_eq!(room(DiskOwner::Another), Some(Room::OfOthers));
        assert_eq!(room(DiskOwner::Own), None);
        let own = disk.create(DiskOwner::Own).unwrap();
        own.write(0, b"123456").unwrap();
        disk.limit_others(100);
        assert_eq!(room(DiskOwner::Another), Some(Room::OfAll));
        assert!(matches!(another.write(4, b"5"), Err(DiskFull::Limit)));
        assert_eq!((disk.used(), disk.used_by_others()), (10, 4));
        drop(another);
        assert_eq!((disk.used(), disk.used_by_others()), (6, 0));
    }
}
