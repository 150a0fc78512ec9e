//! Free room on disk, told before a whole run: a disk that fills up ends a build in its middle,
//! with an error that names the compiler.
//!
//! It asks `df`, because the standard library cannot. It warns and does not refuse: a target folder
//! that holds builds already needs less.

use std::path::Path;
use std::process::Command;

use crate::command::{Failure, capture};
use crate::workspace::Workspace;

/// What a run from cold takes on disk, in GB, with some to spare (5.3 were measured).
const NEEDED_GB: f64 = 6.0;

/// Prints how much room is left for builds, and warns when a run from cold would not fit.
pub fn tell(workspace: &Workspace) -> Result<(), Failure> {
    let is_there = |folder: &&Path| folder.is_dir();
    let folder = workspace.target.ancestors().find(is_there);
    let folder = folder.unwrap_or(&workspace.root);
    let table = capture(Command::new("df").arg("-Pk").arg(folder))?;
    let free = free_gb(&table).ok_or_else(|| Failure::Unexpected {
        story: format!("df tells no free room:\n{table}"),
    })?;
    println!("{free:.1} GB are free for builds; a run from cold takes {NEEDED_GB:.0}");
    if free < NEEDED_GB {
        println!(
            "WARNING: a run from cold does not fit: make room, or set CARGO_TARGET_DIR to a folder \
             on another disk"
        );
    }
    Ok(())
}

/// The column `Available` of the one line below the heading, which `-P` keeps on one line.
fn free_gb(table: &str) -> Option<f64> {
    let blocks = table.lines().nth(1)?.split_whitespace().nth(3)?;
    let blocks: f64 = blocks.parse().ok()?;
    Some(blocks * 1024.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_read_from_the_table_of_df() {
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                     /dev/vda 263174212 55972548 39062500 59% /\n";
        assert_eq!(free_gb(table), Some(40.0));
        assert_eq!(free_gb("df: no such file\n"), None);
        assert!(Workspace::find().is_ok_and(|workspace| tell(&workspace).is_ok()));
    }
}
