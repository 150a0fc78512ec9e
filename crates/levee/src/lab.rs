//! `levee lab`: hands over to the program `levee-lab`.
//!
//! The lab is a tool with load generators and plots in it, and no part of a server; the server must
//! not grow by it (docs/decisions/0001). So it is a program of its own, and this only finds it:
//! beside this program first, which is where a build puts both, then on the search path.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the lab's program.
const PROGRAM: &str = "levee-lab";

/// Becomes the lab with these arguments. Comes back only to say why it cannot.
pub fn run(arguments: &[OsString]) -> Result<(), String> {
    let beside = env::current_exe().map_err(|error| format!("cannot find itself: {error}"))?;
    let search = env::var_os("PATH").unwrap_or_default();
    let lab = find(&beside, &env::split_paths(&search).collect::<Vec<_>>())?;
    let error = Command::new(&lab).args(arguments).exec();
    Err(format!("cannot run {}: {error}", lab.display()))
}

fn find(own: &Path, search: &[PathBuf]) -> Result<PathBuf, String> {
    let beside = own.with_file_name(PROGRAM);
    let folders = search.iter().map(|folder| folder.join(PROGRAM));
    let mut places = std::iter::once(beside.clone()).chain(folders);
    places.find(|place| place.is_file()).ok_or_else(|| {
        format!(
            "there is no {PROGRAM}, neither as {} nor on the search path; it comes with the \
             sources: `cargo build --release --package levee-lab`, or `cargo xtask lab`",
            beside.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_beside_the_server_goes_before_one_on_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let [own, elsewhere] = ["own", "elsewhere"].map(|name| folder.path().join(name));
        for place in [&own, &elsewhere] {
            std::fs::create_dir(place).unwrap();
        }
        let search = [elsewhere.clone()];
        let server = own.join("levee");
        let missing = find(&server, &search).unwrap_err();
        assert!(missing.contains("own/levee-lab"), "{missing}");
        assert!(missing.contains("cargo build"), "{missing}");
        std::fs::write(elsewhere.join(PROGRAM), "").unwrap();
        assert_eq!(find(&server, &search), Ok(elsewhere.join(PROGRAM)));
        std::fs::write(own.join(PROGRAM), "").unwrap();
        assert_eq!(find(&server, &search), Ok(own.join(PROGRAM)));
    }
}
