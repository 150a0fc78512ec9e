//! The file with this site's secret key: made at the first start, never again.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use levee_trust::Identity;

use crate::state::{Readers, replace};

/// A new identity from the operating system's randomness.
///
/// # Errors
/// When there is none.
pub fn fresh_identity() -> Result<Identity, String> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| format!("no randomness for a key: {error}"))?;
    Ok(Identity::from_seed(&seed))
}

/// The identity in the file `path`; a new one is made and kept there if there is no such file.
///
/// # Errors
/// When the file is damaged, readable by others, or cannot be made.
pub fn identity_at(path: &Path) -> Result<Identity, String> {
    let file = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return make(path),
        Err(error) => {
            let way_out = OWNER_WAY_OUT;
            return Err(format!(
                "cannot read the identity {file}: {error}; {way_out}"
            ));
        }
    };
    let mode = fs::metadata(path).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        return Err(format!(
            "the identity {file} can be read by others than its owner, who could take this site's \
             place: chmod 600 {file}"
        ));
    }
    Identity::from_file_text(&text).map_err(|error| {
        format!("{file}: {error}; mend it, or delete it and ask the authority to add the new key")
    })
}

fn make(path: &Path) -> Result<Identity, String> {
    let identity = fresh_identity()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| {
            format!("cannot make {}: {error}; {OWNER_WAY_OUT}", folder.display())
        })?;
    }
    replace(path, &identity.to_file_text(), Readers::Owner).map_err(|error| {
        format!(
            "cannot write the identity {}: {error}; {OWNER_WAY_OUT}",
            path.display()
        )
    })?;
    Ok(identity)
}

const OWNER_WAY_OUT: &str = "it must belong to the user that Levee runs as, and so must its folder";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_first_start_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("new/identity.key");
        let first = identity_at(&path).expect("made").key();
        assert_eq!(identity_at(&path).expect("read").key(), first);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("identity.key");
        identity_at(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
        let error = identity_at(&path).expect_err("readable by the group");
        assert!(error.contains("chmod 600"), "{error}");
    }
}
