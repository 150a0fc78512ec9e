//! The authority of the community: a person at a desk, with a key, a list and `levee community`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::super::LabError;

/// Name of the community: one that nobody can own (RFC 2606).
const COMMUNITY: &str = "mutual-aid.example";
/// File with the members, at the desk and at each registry.
pub const LIST: &str = "members.list";

/// The desk, and the public key of who sits at it.
#[derive(Debug)]
pub struct Desk {
    levee: PathBuf,
    folder: PathBuf,
    /// The authority's public key.
    pub authority: String,
}

/// What a member may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It serves, and helps.
    Site,
    /// It keeps the list of who can help.
    Registry,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Registry => "registry",
        }
    }
}

impl Desk {
    /// Founds the community, with its things in `folder`.
    pub fn found(levee: &Path, folder: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(folder).map_err(LabError::machine("make the authority's folder"))?;
        let mut desk = Self {
            levee: levee.to_owned(),
            folder: folder.to_owned(),
            authority: String::new(),
        };
        let told = desk.levee(&["community", "init", COMMUNITY])?;
        desk.authority = told.split('"').nth(1).unwrap_or_default().to_owned();
        Ok(desk)
    }

    /// Makes `name` a member, whose key is made in its own folder `state`.
    pub fn add(&self, name: &str, state: &Path, role: Role) -> Result<(), LabError> {
        fs::create_dir_all(state).map_err(LabError::machine("make a member's folder"))?;
        let key = state.join("identity.key").display().to_string();
        let key = self.levee(&["community", "identity", &key])?;
        let call = ["community", "add", name, key.trim(), "--role", role.name()];
        self.levee(&call).map(drop)
    }

    /// Expels `name`, and tells everybody why.
    pub fn expel(&self, name: &str, reason: &str) -> Result<(), LabError> {
        let call = ["community", "expel", name, "--reason", reason];
        self.levee(&call).map(drop)
    }

    /// Hands the newest list to the registry whose things are in `home`.
    pub fn hand_list_to(&self, home: &Path) -> Result<(), LabError> {
        // Put there at once, as whole: it may be read at any moment.
        let beside = home.join("members.new");
        fs::copy(self.folder.join(LIST), &beside)
            .and_then(|_| fs::rename(&beside, home.join(LIST)))
            .map_err(LabError::machine("copy the member list"))
    }

    /// Makes a certificate for `names`, by an authority for tests; its files are in the folder that
    /// is given back, named after the first one.
    pub fn certify(&self, names: &[&str]) -> Result<PathBuf, LabError> {
        let call = [&["certificate", "local", "--folder", "certificates"], names].concat();
        self.levee(&call)?;
        Ok(self.folder.join("certificates"))
    }

    fn levee(&self, arguments: &[&str]) -> Result<String, LabError> {
        let output = Command::new(&self.levee)
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .map_err(LabError::machine("run levee"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(LabError::Refused {
                command: format!("levee {}", arguments.join(" ")),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}
