//! Rules about the pages in the repository: what they name must be there.

use super::{Tree, Violation};
use crate::layers::LAYERS;

/// What a crate's README tells, in this order, so that whoever has read one can read all.
const README_HEADINGS: &[&str] = &[
    "Purpose",
    "How it works",
    "Invariants",
    "Settings",
    "Metrics",
    "Examples",
];

/// Endings by which a name in `ARCHITECTURE.md` is known to be a file of the repository.
const FILE_ENDINGS: &[&str] = &[".rs", ".md", ".scn", ".vtc", ".golden"];

/// Relative links of every page lead to a file or folder.
pub fn links_resolve(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for (path, text) in tree.with_ending(".md") {
        for (index, line) in lines_outside_code(text) {
            for target in link_targets(line) {
                let file = target.split('#').next().unwrap_or_default();
                if !file.is_empty() && !tree.has_path(&resolve(path, file)) {
                    broken.push(Violation::at(
                        path,
                        index,
                        format!("no file behind ({target})"),
                    ));
                }
            }
        }
    }
    broken
}

/// The map names every crate, and every file that it names exists.
pub fn architecture_is_true(tree: &Tree) -> Vec<Violation> {
    let path = "ARCHITECTURE.md";
    if !tree.has(path) {
        return vec![Violation::new(path, "is missing")];
    }
    let text = tree.text(path);
    let mut broken: Vec<Violation> = LAYERS
        .iter()
        .filter(|layer| !names_crate(text, layer.folder))
        .map(|layer| Violation::new(path, format!("does not name {}", layer.folder)))
        .collect();
    for (index, line) in lines_outside_code(text) {
        for name in line.split('`').skip(1).step_by(2) {
            let is_file = FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
                || (name.starts_with("crates/") && !name.contains(' '));
            if is_file && !is_named_in(tree, name) {
                broken.push(Violation::at(
                    path,
                    index,
                    format!("names `{name}`, which is not there"),
                ));
            }
        }
    }
    broken
}

/// Every crate has a page, with the fixed headings in order.
pub fn crate_readmes_have_their_headings(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for layer in LAYERS
        .iter()
        .filter(|layer| layer.folder.starts_with("crates/"))
    {
        let path = format!("{}/README.md", layer.folder);
        if !tree.has(&path) {
            broken.push(Violation::new(&path, "is missing"));
            continue;
        }
        let all = all_headings(tree.text(&path));
        let Some(start) = all.iter().position(|one| *one == README_HEADINGS[0]) else {
            let what = format!("has no heading `{}`", README_HEADINGS[0]);
            broken.push(Violation::new(&path, what));
            continue;
        };
        if !all[..start].iter().any(|one| is_name(one, layer.package)) {
            let what = format!("opens neither with `Name` nor with `{}`", layer.package);
            broken.push(Violation::at(&path, 0, what));
        }
        if all[start..] != *README_HEADINGS {
            let wanted = README_HEADINGS.join(", ");
            let what = format!("headings after the name are not {wanted}, in this order");
            broken.push(Violation::new(&path, what));
        }
    }
    broken
}

/// Texts of the second-level headings.
pub fn headings(text: &str) -> Vec<&str> {
    lines_outside_code(text)
        .filter_map(|(_, line)| line.strip_prefix("## "))
        .map(str::trim)
        .collect()
}

/// Texts of the headings of the first two levels.
fn all_headings(text: &str) -> Vec<&str> {
    lines_outside_code(text)
        .filter_map(|(_, line)| line.strip_prefix("## ").or(line.strip_prefix("# ")))
        .map(str::trim)
        .collect()
}

/// The first section of a crate's page is called `Name`, or by the name itself.
fn is_name(heading: &str, package: &str) -> bool {
    heading == "Name" || heading.trim_matches('`') == package
}

/// Whether the map has the crate's folder, or the last part of it as code: `vocab`.
fn names_crate(map: &str, folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    map.contains(folder) || map.contains(&format!("`{name}`"))
}

/// Lines with their indices, without those in fenced blocks.
fn lines_outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// What stands in `](…)`, without addresses of other hosts.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// A path relative to the page `from`, as one relative to the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Whether a file or folder has this path, or ends in it: `gate.rs` names `crates/…/gate.rs`.
fn is_named_in(tree: &Tree, name: &str) -> bool {
    tree.has_path(name)
        || tree.paths().any(|path| {
            path.strip_suffix(name)
                .is_some_and(|rest| rest.ends_with('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn a_dead_link_is_found() {
        let page = "[a](b.md) [c](../x/y.rs#L1) [d](gone.md)\n[e](https://example.org) [f](#g)\n\
                    ```text\n[h](also-gone.md)\n```\n[i](../x)";
        let files = [("docs/a.md", page), ("docs/b.md", ""), ("x/y.rs", "")];
        expect(
            links_resolve,
            &files,
            &["docs/a.md:1: no file behind (gone.md)"],
        );
    }

    #[test]
    fn a_map_that_names_what_is_not_there_is_found() {
        let mut map = "`gate.rs` `gone.rs` `crates/gone` `levee.toml`\n".to_owned();
        for layer in LAYERS {
            map.push_str(layer.folder);
            map.push('\n');
        }
        let files = [
            ("ARCHITECTURE.md", map.as_str()),
            ("crates/control/src/gate.rs", ""),
        ];
        let expected = ["`gone.rs`, which is not there", "`crates/gone`"];
        expect(architecture_is_true, &files, &expected);
        let cut = map
            .replace("crates/wire\n", "")
            .replace("crates/net\n", "`net`\n");
        let files = [
            ("ARCHITECTURE.md", cut.as_str()),
            ("crates/gone/gate.rs", ""),
        ];
        let expected = ["does not name crates/wire", "`gone.rs`"];
        expect(architecture_is_true, &files, &expected);
        expect(architecture_is_true, &[], &["is missing"]);
    }

    #[test]
    fn a_crate_page_without_its_headings_is_found() {
        let mut files = Vec::new();
        let pages: Vec<(String, String)> = LAYERS
            .iter()
            .map(|layer| {
                let sections: Vec<String> = README_HEADINGS
                    .iter()
                    .map(|one| format!("## {one}\n"))
                    .collect();
                let page = format!("# {}\n{}", layer.package, sections.concat());
                (format!("{}/README.md", layer.folder), page)
            })
            .collect();
        for (path, page) in &pages {
            files.push((path.as_str(), page.as_str()));
        }
        expect(crate_readmes_have_their_headings, &files, &[]);
        let unnamed = "# control\n".to_owned() + pages[0].1.split_once('\n').unwrap().1;
        files.retain(|(path, _)| *path != "crates/registry/README.md");
        for (path, page) in &mut files {
            match *path {
                "crates/vocab/README.md" => *page = "# levee-vocab\n## Purpose\n",
                "crates/wire/README.md" => *page = "# wire\n",
                "crates/control/README.md" => *page = &unnamed,
                _ => {}
            }
        }
        let expected = [
            "crates/vocab/README.md: headings",
            "crates/wire/README.md: has no heading `Purpose`",
            "crates/registry/README.md: is missing",
            "crates/control/README.md:1: opens",
        ];
        expect(crate_readmes_have_their_headings, &files, &expected);
    }
}
