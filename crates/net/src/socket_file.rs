//! A listening socket in the file system: how its file comes to be there, and how it goes.
//!
//! The file of a process that was killed stays behind. Whoever binds there next finds out whether
//! somebody still listens, and only where nobody does is the file replaced. What is no socket is
//! never touched.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

/// The file of a socket that this process bound. Dropping it removes the file, unless somebody else
/// has put another in its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // Where it cannot be removed, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Binds at `path` and listens; those may connect whom the bits `mode` let write.
///
/// # Errors
/// Where a running process listens there, where something else is there, and where the folder is
/// missing or may not be written.
pub(crate) fn bind(path: &Path, mode: u32, backlog: i32) -> io::Result<(OwnedFd, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    let address = SockAddr::unix(path)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path, &address)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = SocketFile::of(path)?;
    // Before it listens: nobody can connect earlier.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

/// Removes the file of a socket on which nobody listens any more.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let in_use = |text| Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return in_use("something that is no socket is there already");
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    match probe.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // Its queue may be full, or it may not be for us: somebody is there.
        Ok(()) | Err(_) => in_use("a running process listens there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn what_a_dead_process_left_is_replaced_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("levee.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists() && UnixStream::connect(&path).is_err());
        let (listener, file) = bind(&path, 0o640, 8).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        UnixStream::connect(&path).unwrap();
        let error = bind(&path, 0o640, 8).unwrap_err();
        assert!(error.to_string().contains("running process"), "{error}");
        UnixStream::connect(&path).unwrap();
        drop((listener, file));
        assert!(!path.exists());
        fs::write(&path, "precious").unwrap();
        let error = bind(&path, 0o640, 8).unwrap_err();
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_file_that_somebody_else_put_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("levee.sock");
        let (_listener, file) = bind(&path, 0o600, 8).unwrap();
        // The inode number of a file that is gone may be used again: move it instead.
        fs::rename(&path, folder.path().join("old.sock")).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
    }
}
