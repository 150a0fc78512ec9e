//! Where the repository lies and where its builds go.

use std::path::{Path, PathBuf};

use crate::command::Failure;

/// The repository on this machine.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The folder with the root `Cargo.toml`.
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
    /// Whether our own crates are built for people who go on working with them: what makes the next
    /// build of the same crate faster is kept, and test programs carry what debuggers read. Without
    /// both, the builds for tests take a quarter of the room, and less time.
    pub is_for_work: bool,
}

impl Workspace {
    /// The workspace that holds the current folder, or that cargo started us from.
    pub fn find() -> Result<Self, Failure> {
        let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => std::env::current_dir().map_err(|cause| Failure::Io {
                what: "find the current folder".to_owned(),
                cause,
            })?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join("xtask").is_dir() && folder.join("Cargo.toml").is_file())
            .ok_or(Failure::NoWorkspace)?
            .to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Self {
            root,
            target,
            is_for_work: true,
        })
    }

    /// The same for a run that builds everything once, and of which people read what it prints.
    pub fn built_once(&self) -> Self {
        Self {
            is_for_work: false,
            ..self.clone()
        }
    }

    /// Whether a file of this path, relative to the root, is there.
    pub fn has(&self, file: &str) -> bool {
        self.root.join(file).is_file()
    }

    /// A program of ours, built for release.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// A fresh, empty folder below the target folder. What an earlier run left there is removed.
    pub fn fresh_folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.target.join("xtask").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed("empty", &folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        Ok(folder)
    }
}

/// Says what was tried on which path when the operating system refuses.
pub fn failed(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let what = format!("{verb} {}", path.display());
    move |cause| Failure::Io { what, cause }
}
