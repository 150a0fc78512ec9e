//! The rules of the house that no compiler knows, each one function with a test that plants its
//! breach.
//!
//! Tidy looks at the files that git knows, so junk beside them does not matter. It prints every
//! violation as `file:line: what`, in one run.

mod documents;
mod lexer;
mod records;
mod sources;
mod whole_tree;

use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;

use crate::command::{Failure, capture};
use crate::layers;
use crate::workspace::Workspace;

/// One rule, asked about the whole tree.
type Rule = fn(&Tree) -> Vec<Violation>;

/// Every rule, cheapest to mend first.
const RULES: &[Rule] = &[
    sources::begin_with_a_header,
    sources::stay_short,
    sources::fit_the_line,
    sources::keep_unsafe_in_net,
    sources::explain_unsafe,
    sources::avoid_banned_code,
    sources::avoid_banned_words,
    sources::use_named_files,
    documents::links_resolve,
    documents::architecture_is_true,
    documents::crate_readmes_have_their_headings,
    records::decisions_have_their_headings,
    records::changelog_begins_with_unreleased,
    whole_tree::scenarios_are_sentences,
    whole_tree::no_machine_is_named,
    whole_tree::packages_come_from_one_registry,
    layers::check_crates,
];

/// Checks every rule.
pub fn run(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    let tree = Tree::read(workspace)?;
    let mut broken: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    broken.extend(layers::check_edges(&layers::edges(workspace)?));
    for violation in &broken {
        println!("{violation}");
    }
    match broken.len() {
        0 => Ok(()),
        violations => Err(Failure::Untidy { violations }),
    }
}

/// Paths of all files that git knows and that are still there.
pub fn tracked_files(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let mut git = Command::new("git");
    // A checkout may belong to another user than the one who tests it; reading names is harmless.
    git.current_dir(&workspace.root)
        .args(["-c", "safe.directory=*", "ls-files", "-z"]);
    let names = capture(&mut git)?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty() && workspace.has(name))
        .map(str::to_owned)
        .collect())
}

/// One broken rule, where it is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    place: String,
    what: String,
}

impl Violation {
    /// In a file as a whole.
    pub fn new(place: &str, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            what: what.into(),
        }
    }

    /// In one line, counted from 0.
    pub fn at(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self::new(&format!("{path}:{}", index + 1), what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The text files of the repository.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    fn read(workspace: &Workspace) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for path in tracked_files(workspace)? {
            let bytes = std::fs::read(workspace.root.join(&path)).map_err(|cause| Failure::Io {
                what: format!("read {path}"),
                cause,
            })?;
            // A picture or a trace has a name to link to, but no lines to judge.
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Self { files })
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self {
            files: files.iter().map(owned).collect(),
        }
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Paths and texts of all files with this ending.
    pub fn with_ending(&self, ending: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Text of a file, empty where there is none.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// Whether there is such a file.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether there is such a file, or a folder with files in it.
    pub fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty()
            || self.has(path)
            || self.paths().any(|one| {
                one.strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
    }
}

/// Asserts that a rule finds exactly these, in these files.
#[cfg(test)]
fn expect(rule: Rule, files: &[(&str, &str)], expected: &[&str]) {
    let found: Vec<String> = rule(&Tree::of(files))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (text, part) in found.iter().zip(expected) {
        assert!(text.contains(part), "`{text}` does not contain `{part}`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_lists_this_very_file() {
        let workspace = Workspace::find().unwrap();
        let files = tracked_files(&workspace).unwrap();
        assert!(files.iter().any(|file| file == "xtask/Cargo.toml"));
        assert!(!files.iter().any(|file| file.starts_with("target/")));
    }

    #[test]
    fn a_folder_is_there_when_a_file_is_in_it() {
        let tree = Tree::of(&[("docs/guide/a.md", "")]);
        assert!(tree.has_path("docs/guide/"));
        assert!(tree.has_path("docs/guide/a.md"));
        assert!(!tree.has_path("docs/gui"));
    }
}
