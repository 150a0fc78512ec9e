//! What fuzzing has kept, tried by an ordinary test of each crate that has targets.
//!
//! It stands beside the corpus and is no crate: a crate's tests name it by its path, and nothing
//! that is shipped knows of it.

use std::path::Path;
use std::{fs, panic};

/// Fewer than this is no corpus; somebody gave a target a name that its folder does not have.
const FEWEST: usize = 4;

/// The name of a target, and its property.
type Target<'a> = (&'a str, fn(&[u8]));

/// Tries all kept inputs of `targets`: the corpus, and what once broke a property.
///
/// # Panics
/// At the first input that breaks its property, by the file's name; at a target without a corpus.
pub fn try_all(targets: &[Target<'_>]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for (name, property) in targets {
        let corpus = fs::read_dir(root.join("corpus").join(name)).expect("a corpus");
        let crashes = fs::read_dir(root.join("crashes").join(name));
        let mut tried = 0;
        for entry in corpus.chain(crashes.into_iter().flatten()) {
            let path = entry.expect("a file").path();
            let input = fs::read(&path).expect("readable");
            let outcome = panic::catch_unwind(|| property(&input));
            assert!(outcome.is_ok(), "{}", path.display());
            tried += 1;
        }
        assert!(tried >= FEWEST, "the corpus of {name} has {tried}");
    }
}
