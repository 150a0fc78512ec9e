//! Rules about all files: their names, and what must not leak into them.

use super::{Tree, Violation};

/// Fewest words in the name of a scenario: what happens, to whom.
const SENTENCE_WORDS: usize = 3;

/// The one registry that packages come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Folders of the machines that we work on. In halves, so that this file does not break its own
/// rule.
const MACHINE_FOLDERS: &[(&str, &str)] = &[("/ro", "ot/"), ("/wo", "rk/")];

/// A scenario's name says what it shows: `rescue_server_dies_mid_rescue.scn`.
pub fn scenarios_are_sentences(tree: &Tree) -> Vec<Violation> {
    let is_scenario = |path: &&str| {
        path.starts_with("scenarios/") && (path.ends_with(".scn") || path.ends_with(".vtc"))
    };
    tree.paths()
        .filter(is_scenario)
        .filter(|path| !is_sentence(path))
        .map(|path| Violation::new(path, "its name is not a sentence in snake_case"))
        .collect()
}

fn is_sentence(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let name = file.split('.').next().unwrap_or_default();
    let words: Vec<&str> = name.split('_').collect();
    let is_word = |word: &&str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !word.is_empty() && word.bytes().all(fits)
    };
    words.len() >= SENTENCE_WORDS && words.iter().all(is_word)
}

/// No file knows the machine on which it was written.
pub fn no_machine_is_named(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending("") {
        for (index, line) in text.lines().enumerate() {
            for (head, tail) in MACHINE_FOLDERS {
                if names_folder(line, &format!("{head}{tail}")) {
                    let what = format!("names a folder of one machine: {head}{tail}");
                    broken.push(Violation::at(path, index, what));
                }
            }
        }
    }
    broken
}

/// Whether the line has this absolute path, and not merely an ending of another one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|one| one.is_alphanumeric() || "._-}*".contains(one))
    })
}

/// Every package comes from the public registry, and cargo is sent nowhere else.
pub fn packages_come_from_one_registry(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (index, line) in tree.text("Cargo.lock").lines().enumerate() {
        let source = line.strip_prefix("source = ");
        if source.is_some_and(|source| source.trim_matches('"') != REGISTRY) {
            broken.push(Violation::at(
                "Cargo.lock",
                index,
                "a package from another registry",
            ));
        }
    }
    for (index, line) in tree.text(".cargo/config.toml").lines().enumerate() {
        if line.starts_with("[source") || line.starts_with("[registries") {
            let what = "a registry is the choice of each machine";
            broken.push(Violation::at(".cargo/config.toml", index, what));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn a_scenario_whose_name_says_nothing_is_found() {
        let files = [
            ("scenarios/c00005.vtc", ""),
            ("scenarios/Rescue_server_dies.scn", ""),
            ("scenarios/rescue_server_dies.scn", ""),
            ("scenarios/README.md", ""),
        ];
        expect(
            scenarios_are_sentences,
            &files,
            &["Rescue_server_dies", "c00005"],
        );
    }

    #[test]
    fn a_folder_of_one_machine_is_found() {
        let planted = format!("see {}{}notes.txt", "/wo", "rk/");
        let harmless = format!(
            "docs{}{}x and https://example.org/site{}{}x",
            "/wo", "rk/", "/wo", "rk/"
        );
        let files = [("a.md", planted.as_str()), ("b.md", harmless.as_str())];
        expect(no_machine_is_named, &files, &["a.md:1: names a folder"]);
    }

    #[test]
    fn a_package_from_elsewhere_is_found() {
        let lock = format!("source = \"{REGISTRY}\"\nsource = \"git+https://example.org/x\"\n");
        let files = [
            ("Cargo.lock", lock.as_str()),
            (".cargo/config.toml", "[source.x]\n"),
        ];
        let expected = [".cargo/config.toml:1", "Cargo.lock:2"];
        let mut found = packages_come_from_one_registry(&Tree::of(&files));
        found.sort_by_key(ToString::to_string);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(text, part)| text.starts_with(part)),
            "{found:?}"
        );
        assert_eq!(found.len(), 2);
    }
}
