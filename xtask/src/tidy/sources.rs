//! Rules about Rust files.

use super::lexer::Split;
use super::{Tree, Violation};

/// Longest file in lines, tests apart (STYLE: hard limit). It may be lowered, never raised.
const LINES_MAX: usize = 600;

/// Longest line in characters, comments too, which rustfmt leaves alone.
const COLUMNS_MAX: usize = 100;

/// The one crate that may contain `unsafe`.
const UNSAFE_CRATE: &str = "crates/net/";

/// How far above an unsafe block its reason may begin, in lines.
const SAFETY_LINES: usize = 8;

/// Code that says "not finished" or "not switched on".
const BANNED_CODE: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore", "mod util;"];

/// Every file opens with what it is and why it exists.
pub fn begin_with_a_header(tree: &Tree) -> Vec<Violation> {
    tree.with_ending(".rs")
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(path, _)| Violation::new(path, "does not open with `//!`, what it is and why"))
        .collect()
}

/// A file is read top to bottom once.
pub fn stay_short(tree: &Tree) -> Vec<Violation> {
    tree.with_ending(".rs")
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (path, lines_without_tests(text)))
        .filter(|&(_, lines)| lines > LINES_MAX)
        .map(|(path, lines)| Violation::new(path, format!("{lines} lines, most is {LINES_MAX}")))
        .collect()
}

/// No comment runs past the limit, except in a line that is one long word such as an address.
/// Code is rustfmt's business; a sentence in a string may be as long as it needs.
pub fn fit_the_line(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending(".rs") {
        for (index, line) in Split::of(text).comments.lines().enumerate() {
            let columns = line.trim_end().chars().count();
            let is_one_word = line
                .split_whitespace()
                .any(|word| word.len() > COLUMNS_MAX / 2);
            if columns > COLUMNS_MAX && !is_one_word {
                let what = format!("{columns} columns, most is {COLUMNS_MAX}");
                broken.push(Violation::at(path, index, what));
            }
        }
    }
    broken
}

/// `unsafe`, and leave to write it, stay in one crate.
pub fn keep_unsafe_in_net(tree: &Tree) -> Vec<Violation> {
    let outside = tree
        .with_ending(".rs")
        .filter(|(path, _)| !path.starts_with(UNSAFE_CRATE));
    outside
        .flat_map(|(path, text)| {
            let code = Split::of(text).code;
            let found = code
                .lines()
                .enumerate()
                .filter(|(_, line)| has_word(line, "unsafe") || has_word(line, "unsafe_code"));
            let indices: Vec<usize> = found.map(|(index, _)| index).collect();
            indices
                .into_iter()
                .map(|index| Violation::at(path, index, "only crates/net may contain unsafe"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Each unsafe block has its reason above it.
pub fn explain_unsafe(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending(".rs") {
        let split = Split::of(text);
        let comments: Vec<&str> = split.comments.lines().collect();
        for (index, line) in split.code.lines().enumerate() {
            let begins = line.contains("unsafe {") || line.contains("unsafe impl");
            let above = &comments[index.saturating_sub(SAFETY_LINES)..=index];
            if begins && !above.iter().any(|comment| comment.contains("SAFETY:")) {
                broken.push(Violation::at(
                    path,
                    index,
                    "unsafe without a SAFETY comment above",
                ));
            }
        }
    }
    broken
}

/// Nothing unfinished or switched off.
pub fn avoid_banned_code(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending(".rs") {
        for (index, line) in Split::of(text).code.lines().enumerate() {
            for banned in BANNED_CODE.iter().filter(|banned| line.contains(**banned)) {
                broken.push(Violation::at(path, index, format!("`{banned}` is banned")));
            }
        }
    }
    broken
}

/// Comments that promise a later day, and open points without an issue number.
pub fn avoid_banned_words(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending(".rs") {
        for (index, line) in Split::of(text).comments.lines().enumerate() {
            if let Some(what) = banned_words(line) {
                broken.push(Violation::at(path, index, what));
            }
        }
    }
    broken
}

fn banned_words(comment: &str) -> Option<String> {
    let lower = comment.to_lowercase();
    for word in ["fixme", "xxx", "stub", "placeholder"] {
        if has_word(&lower, word) {
            return Some(format!("the word `{word}` is banned from comments"));
        }
    }
    // "The name that it asks for now" promises nothing.
    let promises = |(at, _): (usize, &str)| !lower[..at].trim_end().ends_with("asks");
    if lower.match_indices("for now").any(promises) {
        return Some("`for now` is banned: say what holds".to_owned());
    }
    let numbered = |rest: &str| {
        let number = rest
            .strip_prefix("(#")
            .and_then(|rest| rest.split_once(')'));
        number.is_some_and(|(digits, _)| digits.parse::<u32>().is_ok())
    };
    let mut open = comment.match_indices("TODO");
    open.any(|(at, word)| !numbered(&comment[at + word.len()..]))
        .then(|| "an open point needs its issue: TODO(#12)".to_owned())
}

/// `foo.rs` and `foo/`, never `mod.rs`, so that every tab of an editor has a name.
pub fn use_named_files(tree: &Tree) -> Vec<Violation> {
    tree.with_ending("/mod.rs")
        .map(|(path, _)| Violation::new(path, "name the file after its folder, beside it"))
        .collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Lines before the tests at the end of a file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && !pair[1].ends_with(';')
    });
    tests.unwrap_or(lines.len())
}

/// Whether `word` stands in `line` with no letter, digit or underscore beside it.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |one: char| one.is_alphanumeric() || one == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
