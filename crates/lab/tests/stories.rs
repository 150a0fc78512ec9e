//! Plays every story in `scenarios/` under the virtual clock and compares its trace.
//!
//! `UPDATE_GOLDEN=1 cargo test -p levee-lab --test stories` writes the traces anew. Only commit the
//! changes if you understand what caused them and if they are desired.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use levee_lab::story::Story;

/// Any seed would do; this one stands in the traces.
const SEED: u64 = 1;

fn story_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(story_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "scn") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn every_story_goes_as_it_is_written() {
    let files = story_files(&scenarios());
    assert!(!files.is_empty(), "there are no stories");
    let mut complaints = String::new();
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy();
        let told = Story::read(&path).unwrap().tell(SEED);
        if let Some(failure) = told.failure {
            complaints += &format!("{name}: {failure}\n{}\n", told.text);
        } else if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, told.text).unwrap();
        } else if let Some(difference) = told.difference {
            complaints += &format!("{name}: {difference}\n");
        }
    }
    assert!(
        complaints.is_empty(),
        "{complaints}\nto replay: levee-lab story scenarios/NAME.scn --seed {SEED}"
    );
}

#[test]
fn a_story_told_twice_gives_the_same_trace_byte_for_byte() {
    for path in story_files(&scenarios()) {
        let story = Story::read(&path).unwrap();
        let (first, second) = (story.tell(SEED), story.tell(SEED));
        assert_eq!(first, second, "{}", path.display());
    }
}
