//! One folder, and what may be opened in it.
//!
//! The kernel itself keeps lookups inside the folder (openat2 with RESOLVE_BENEATH), so neither
//! `..` nor a symbolic link leads out, also when somebody changes links while we look. Where
//! openat2 is forbidden, as in some containers, no link is followed at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use thiserror::Error;

/// A folder whose files are served.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    path: PathBuf,
    /// Device and inode of what is open.
    identity: (u64, u64),
}

/// Why a folder cannot be served.
#[derive(Debug, Error)]
#[error("cannot open folder {path}: {cause}")]
pub struct FolderError {
    /// The folder.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

/// What a file looked like: if this changes, so has its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub modified_seconds: i64,
    pub modified_nanoseconds: u64,
    pub size: u64,
    inode: u64,
}

/// What stands at a path.
#[derive(Debug)]
pub(crate) enum Opened {
    File(File, Stamp),
    Directory,
    Nothing,
    /// Something that this process may not read.
    Forbidden,
    /// Nobody knows: the system has no descriptor or memory left, or the disk fails.
    Unavailable,
}

impl Opened {
    /// What an error says about the path. A server without descriptors must not claim that its
    /// pages are gone: visitors, caches and search engines would believe it.
    const fn failed(why: Errno) -> Self {
        match why {
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::NOBUFS
            | Errno::IO
            | Errno::STALE
            | Errno::AGAIN
            | Errno::INTR => Self::Unavailable,
            _other => Self::Nothing,
        }
    }
}

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    // A pipe somebody put there must not hold the core up.
    .union(OFlags::NONBLOCK);

impl Folder {
    /// Opens `path`; files are looked up beneath what is open.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fail = |errno: Errno| FolderError {
            path: path.to_owned(),
            cause: errno.into(),
        };
        let root = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(fail)?;
        let stat = rustix::fs::fstat(&root).map_err(fail)?;
        Ok(Self {
            root,
            path: path.to_owned(),
            identity: (stat.st_dev, stat.st_ino),
        })
    }

    /// The folder that stands at the same path by now, where it is another one: sites are published
    /// by exchanging a folder or a link to it.
    pub(crate) fn replaced(&self) -> Option<Self> {
        let stat = rustix::fs::stat(&self.path).ok()?;
        let is_same = (stat.st_dev, stat.st_ino) == self.identity;
        // Where it cannot be opened, what was there before is better than nothing.
        (!is_same).then(|| Self::open(&self.path).ok()).flatten()
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what stands at `path`, a relative path made by [`relative`].
    pub(crate) fn find(&self, path: &[u8]) -> Opened {
        let path = if path.is_empty() { b"." } else { path };
        let opened = self.open_beneath(OsStr::from_bytes(path));
        let opened = opened.and_then(|fd| Ok((rustix::fs::fstat(&fd)?, fd)));
        let (stat, fd) = match opened {
            Ok(opened) => opened,
            Err(why) => return Opened::failed(why),
        };
        match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
            rustix::fs::FileType::RegularFile => Opened::File(fd.into(), Stamp::of(&stat)),
            rustix::fs::FileType::Directory => Opened::Directory,
            rustix::fs::FileType::Symlink
            | rustix::fs::FileType::Fifo
            | rustix::fs::FileType::Socket
            | rustix::fs::FileType::CharacterDevice
            | rustix::fs::FileType::BlockDevice
            | rustix::fs::FileType::Unknown => Opened::Nothing,
        }
    }

    /// What the file at `path` looks like now; only to see whether it changed, never to open it.
    pub(crate) fn stamp(&self, path: &[u8]) -> Option<Stamp> {
        let path = OsStr::from_bytes(path);
        let stat = rustix::fs::statat(&self.root, path, AtFlags::empty()).ok()?;
        Some(Stamp::of(&stat))
    }

    fn open_beneath(&self, path: &OsStr) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, path, OPEN, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => self.open_step_by_step(path),
            opened => opened,
        }
    }

    fn open_step_by_step(&self, path: &OsStr) -> Result<OwnedFd, Errno> {
        let mut here = self
            .root
            .as_fd()
            .try_clone_to_owned()
            .map_err(|_| Errno::MFILE)?;
        for step in path.as_bytes().split(|&byte| byte == b'/') {
            let step = OsStr::from_bytes(step);
            let flags = OPEN | OFlags::NOFOLLOW;
            here = rustix::fs::openat(&here, step, flags, Mode::empty())?;
        }
        Ok(here)
    }
}

impl Stamp {
    /// Whether what lies here was written after, or together with, `other`: by whole seconds, since
    /// some tools keep no finer times.
    pub fn is_not_older_than(&self, other: &Self) -> bool {
        self.modified_seconds >= other.modified_seconds
    }

    fn of(stat: &Stat) -> Self {
        Self {
            modified_seconds: stat.st_mtime,
            modified_nanoseconds: stat.st_mtime_nsec,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            inode: stat.st_ino,
        }
    }
}

/// The relative path that the path of a URL names: percent signs decoded, empty steps left out.
/// None where it names something that is never served: a step that begins with a dot (so also `.`
/// and `..`; `.well-known` apart), an encoded slash, a NUL.
pub(crate) fn relative(path: &str) -> Option<Vec<u8>> {
    let mut relative = Vec::with_capacity(path.len());
    for step in path.split('/').filter(|step| !step.is_empty()) {
        let start = relative.len() + usize::from(!relative.is_empty());
        if start > 0 {
            relative.push(b'/');
        }
        relative.extend(percent_encoding::percent_decode_str(step));
        let step = &relative[start..];
        let hidden = step.first() == Some(&b'.') && step != b".well-known";
        if hidden || step.is_empty() || step.iter().any(|&byte| byte == b'/' || byte == 0) {
            return None;
        }
    }
    Some(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_or_into_the_dark_are_refused() {
        let check =
            |path: &str| relative(path).map(|path| String::from_utf8_lossy(&path).into_owned());
        for path in [
            "/../a",
            "/a/%2e%2e/b",
            "/a/%2E./b",
            "/.git/config",
            "/a/.x",
            "/a%2fb",
            "/a%00",
        ] {
            assert_eq!(check(path), None, "{path}");
        }
        assert_eq!(check("//a///b%20c/").as_deref(), Some("a/b c"));
        assert_eq!(check("/").as_deref(), Some(""));
        let challenge = "/.well-known/acme-challenge/x";
        assert_eq!(check(challenge).as_deref(), Some(&challenge[1..]));
    }

    #[test]
    fn a_folder_that_was_exchanged_is_found_at_its_path() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["old", "new"] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("page"), name).unwrap();
        }
        std::os::unix::fs::symlink("old", path("site")).unwrap();
        let folder = Folder::open(&path("site")).unwrap();
        assert!(folder.replaced().is_none());
        std::os::unix::fs::symlink("new", path("next")).unwrap();
        std::fs::rename(path("next"), path("site")).unwrap();
        let next = folder.replaced().unwrap();
        assert_ne!(next.stamp(b"page"), folder.stamp(b"page"));
        std::fs::remove_file(path("site")).unwrap();
        assert!(next.replaced().is_none());
    }

    #[test]
    fn only_what_is_known_to_be_missing_is_missing() {
        let missing = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV];
        for why in missing {
            assert!(matches!(Opened::failed(why), Opened::Nothing), "{why}");
        }
        assert!(matches!(Opened::failed(Errno::ACCESS), Opened::Forbidden));
        for why in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO] {
            assert!(matches!(Opened::failed(why), Opened::Unavailable), "{why}");
        }
    }

    #[test]
    fn links_that_lead_out_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("site");
        std::fs::create_dir_all(root.join("inner")).unwrap();
        std::fs::write(place.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("inner/page"), "p").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("out")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("absolute")).unwrap();
        std::os::unix::fs::symlink("inner/page", root.join("inside")).unwrap();
        let folder = Folder::open(&root).unwrap();
        assert!(matches!(folder.find(b"out"), Opened::Nothing));
        assert!(matches!(folder.find(b"absolute"), Opened::Nothing));
        assert!(matches!(folder.find(b"none"), Opened::Nothing));
        assert!(matches!(folder.find(b"inside"), Opened::File(..)));
        assert!(matches!(folder.find(b"inner/page"), Opened::File(..)));
        assert!(matches!(folder.find(b"inner"), Opened::Directory));
        assert!(matches!(folder.find(b""), Opened::Directory));
        let step_by_step = |path: &str| folder.open_step_by_step(OsStr::new(path));
        assert!(step_by_step("inner/page").is_ok());
        assert!(step_by_step("out").is_err());
        assert!(Folder::open(&root.join("none")).is_err());
    }
}
