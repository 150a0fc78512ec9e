//! The share of a core that a host gets: a control group with a quota.
//!
//! Both generations of control groups are known. Groups lie in a folder that bears the id of the
//! process that made it, so that a later run can tell what a killed one left behind from what is in
//! use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::LabError;

/// Folders in which groups with a processor controller can be, newest generation first.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"];
/// How long the quota is divided by, in microseconds: the kernel's own default.
const PERIOD: u32 = 100_000;
/// First part of the folders' names; the owner's id follows.
const PREFIX: &str = "levee-lab-";

/// A limit that holds for the processes that were put under it. Dropped, it is gone.
#[derive(Debug)]
pub struct Limit {
    folder: PathBuf,
}

impl Limit {
    /// A limit of `share` of one core for `host`, among those of `owner`.
    pub fn new(owner: u32, host: &str, share: f64) -> Result<Self, LabError> {
        let (root, generation) = root()?;
        let parent = root.join(format!("{PREFIX}{owner}"));
        let folder = parent.join(host);
        fs::create_dir_all(&folder).map_err(LabError::machine("make a control group"))?;
        let limit = Self { folder };
        let quota = (share * f64::from(PERIOD)).round() as u32;
        match generation {
            Generation::Two => {
                // Already on where the parent's parent says so; then this changes nothing.
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
                limit.write("cpu.max", &format!("{quota} {PERIOD}"))?;
            }
            Generation::One => {
                limit.write("cpu.cfs_period_us", &PERIOD.to_string())?;
                limit.write("cpu.cfs_quota_us", &quota.to_string())?;
            }
        }
        Ok(limit)
    }

    /// Puts a process, with all its threads and later children, under the limit.
    pub fn hold(&self, process: u32) -> Result<(), LabError> {
        self.write("cgroup.procs", &process.to_string())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), LabError> {
        let path = self.folder.join(file);
        fs::write(path, text).map_err(LabError::machine("limit a host's processor"))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // One with processes in it stays until the owner sweeps.
        let _ = fs::remove_dir(&self.folder);
    }
}

#[derive(Clone, Copy)]
enum Generation {
    Two,
    One,
}

fn root() -> Result<(PathBuf, Generation), LabError> {
    let unified = fs::read_to_string(Path::new(ROOTS[0]).join("cgroup.controllers"));
    if unified.is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "cpu")) {
        return Ok((ROOTS[0].into(), Generation::Two));
    }
    if Path::new(ROOTS[1]).join("cpu.cfs_quota_us").exists() {
        return Ok((ROOTS[1].into(), Generation::One));
    }
    let missing = io::Error::new(
        io::ErrorKind::NotFound,
        "there is no cpu controller under /sys/fs/cgroup",
    );
    Err(LabError::machine("limit a host's processor")(missing))
}

/// Removes the groups of `owner`, whose processes have ended.
pub fn remove_groups_of(owner: u32) {
    for root in ROOTS {
        let parent = Path::new(root).join(format!("{PREFIX}{owner}"));
        for host in fs::read_dir(&parent).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(host.path());
        }
        let _ = fs::remove_dir(parent);
    }
}

/// Owners of groups that there are.
pub fn owners() -> Vec<u32> {
    let folders = ROOTS.iter().flat_map(fs::read_dir).flatten().flatten();
    folders
        .filter_map(|folder| {
            folder
                .file_name()
                .to_str()?
                .strip_prefix(PREFIX)?
                .parse()
                .ok()
        })
        .collect()
}
