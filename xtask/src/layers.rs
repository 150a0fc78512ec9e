//! Who may use whom: the one table of crates and rings, and the check that holds the workspace to
//! it.
//!
//! The pure ring decides, the shell does, the tools play with both. A new arrow needs a changed
//! row here, so it shows in review. Arrows hold for tests and build scripts too.

use crate::command::{Failure, capture, cargo};
use crate::tidy::{Tree, Violation};
use crate::workspace::Workspace;

/// What a crate is for, and so what it may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Decisions: no clock, socket, file, thread, lock or randomness of its own.
    Pure,
    /// The operating system and its libraries.
    Shell,
    /// Programs for those who work on Levee.
    Tools,
}

/// One crate of ours.
pub struct Layer {
    /// Its folder.
    pub folder: &'static str,
    /// Its package.
    pub package: &'static str,
    /// Its ring.
    pub ring: Ring,
    /// Packages of ours that it may use.
    pub may_use: &'static [&'static str],
}

/// Every crate of the workspace, from the words up.
pub const LAYERS: &[Layer] = &[
    Layer {
        folder: "crates/vocab",
        package: "levee-vocab",
        ring: Ring::Pure,
        may_use: &[],
    },
    Layer {
        folder: "crates/wire",
        package: "levee-wire",
        ring: Ring::Pure,
        may_use: &["levee-vocab"],
    },
    Layer {
        folder: "crates/page",
        package: "levee-page",
        ring: Ring::Pure,
        may_use: &[],
    },
    Layer {
        folder: "crates/registry",
        package: "levee-registry",
        ring: Ring::Pure,
        may_use: &["levee-vocab", "levee-wire"],
    },
    Layer {
        folder: "crates/trust",
        package: "levee-trust",
        ring: Ring::Pure,
        may_use: &["levee-vocab"],
    },
    Layer {
        folder: "crates/control",
        package: "levee-control",
        ring: Ring::Pure,
        may_use: &["levee-vocab", "levee-registry"],
    },
    Layer {
        folder: "crates/sim",
        package: "levee-sim",
        ring: Ring::Pure,
        may_use: &[
            "levee-vocab",
            "levee-wire",
            "levee-registry",
            "levee-control",
        ],
    },
    Layer {
        folder: "crates/net",
        package: "levee-net",
        ring: Ring::Shell,
        may_use: &["levee-vocab"],
    },
    Layer {
        folder: "crates/dns",
        package: "levee-dns",
        ring: Ring::Shell,
        may_use: &["levee-vocab", "levee-net"],
    },
    Layer {
        folder: "crates/observe",
        package: "levee-observe",
        ring: Ring::Shell,
        may_use: &["levee-vocab"],
    },
    Layer {
        folder: "crates/proxy",
        package: "levee-proxy",
        ring: Ring::Shell,
        may_use: &[
            "levee-vocab",
            "levee-wire",
            "levee-control",
            "levee-net",
            "levee-observe",
        ],
    },
    Layer {
        folder: "crates/levee",
        package: "levee",
        ring: Ring::Shell,
        may_use: &[
            "levee-vocab",
            "levee-wire",
            "levee-page",
            "levee-registry",
            "levee-trust",
            "levee-control",
            "levee-sim",
            "levee-net",
            "levee-dns",
            "levee-observe",
            "levee-page",
            "levee-proxy",
        ],
    },
    Layer {
        folder: "crates/lab",
        package: "levee-lab",
        ring: Ring::Tools,
        // `net` for the listening socket of the bare loop only: docs/decisions/0018.
        may_use: &["levee-vocab", "levee-control", "levee-sim", "levee-net"],
    },
    Layer {
        folder: "xtask",
        package: "xtask",
        ring: Ring::Tools,
        may_use: &[],
    },
];

/// Packages of others that the pure ring may use: none of them can reach a clock or a socket.
const PURE_MAY_USE: &[&str] = &[
    "aho-corasick",
    "aws-lc-rs",
    "base64",
    "encoding_rs",
    "htmlize",
    "memchr",
    "sfv",
    "thiserror",
    "time",
    "url",
];

/// What `clippy.toml` of each pure crate must forbid.
const PURE_BANS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "std::fs::File",
    "std::sync::Mutex",
    "std::sync::RwLock",
];

/// One arrow: a package uses another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who.
    pub from: String,
    /// Whom.
    pub to: String,
    /// Whether the shipped code does, or only its tests.
    pub kind: EdgeKind,
}

/// In what an arrow is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// The code itself, or its build script.
    Code,
    /// Its tests, examples and benchmarks.
    Tests,
}

/// All direct arrows of the workspace, as cargo sees them.
pub fn edges(workspace: &Workspace) -> Result<Vec<Edge>, Failure> {
    let mut edges = Vec::new();
    for (wanted, kind) in [("normal,build", EdgeKind::Code), ("dev", EdgeKind::Tests)] {
        let call = [
            "tree",
            "--workspace",
            "--depth",
            "1",
            "--prefix",
            "depth",
            "--no-dedupe",
            "--format",
            "{p}",
            "--edges",
            wanted,
        ];
        edges.extend(parse(&capture(&mut cargo(workspace, &call))?, kind));
    }
    Ok(edges)
}

/// Reads `0levee v0.1.0 (…)` and, below it, `1bytes v1.2.3`.
fn parse(tree: &str, kind: EdgeKind) -> Vec<Edge> {
    let mut from = "";
    let mut edges = Vec::new();
    for line in tree.lines() {
        let name = |rest: &'_ str| rest.split(' ').next().unwrap_or_default().to_owned();
        if let Some(rest) = line.strip_prefix('0') {
            from = rest.split(' ').next().unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix('1') {
            edges.push(Edge {
                from: from.to_owned(),
                to: name(rest),
                kind,
            });
        }
    }
    edges
}

/// Arrows that turn back, and strangers in the pure ring.
pub fn check_edges(edges: &[Edge]) -> Vec<Violation> {
    let is_ours = |package: &str| LAYERS.iter().any(|layer| layer.package == package);
    let mut broken = Vec::new();
    for Edge { from, to, kind } in edges {
        let Some(layer) = LAYERS.iter().find(|layer| layer.package == from) else {
            broken.push(Violation::new(
                from,
                "not in the table of xtask/src/layers.rs",
            ));
            continue;
        };
        let allowed = match (is_ours(to), layer.ring, kind) {
            (true, _, _) => layer.may_use.contains(&to.as_str()),
            (false, Ring::Pure, EdgeKind::Code) => PURE_MAY_USE.contains(&to.as_str()),
            (false, Ring::Pure, EdgeKind::Tests) => true,
            (false, Ring::Shell | Ring::Tools, _) => from != "xtask",
        };
        if !allowed {
            let what = format!("may not use {to}: see the table of xtask/src/layers.rs");
            broken.push(Violation::new(layer.folder, what));
        }
    }
    broken
}

/// Crates outside the table, rows without a crate, and pure crates without the whole ban list.
pub fn check_crates(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    for manifest in tree.paths().filter(|path| path.ends_with("/Cargo.toml")) {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        if !LAYERS.iter().any(|layer| layer.folder == folder) && !folder.starts_with("fuzz") {
            let what = "a crate without a row in the table of xtask/src/layers.rs";
            broken.push(Violation::new(manifest, what));
        }
        if tree.text(manifest).lines().any(|line| line == "[features]") {
            let what = "cargo features need a decision record first, and so does this rule";
            broken.push(Violation::new(manifest, what));
        }
    }
    let shared = tree.text("clippy.toml");
    for layer in LAYERS {
        let manifest = format!("{}/Cargo.toml", layer.folder);
        if !tree.has(&manifest) {
            broken.push(Violation::new(
                &manifest,
                "named in the table, but not there",
            ));
        }
        if layer.ring == Ring::Pure {
            broken.extend(check_bans(tree, layer, shared));
        }
    }
    broken
}

/// A crate's own `clippy.toml` replaces that of the root, so it must repeat the shared lines.
fn check_bans(tree: &Tree, layer: &Layer, shared: &str) -> Vec<Violation> {
    let path = format!("{}/clippy.toml", layer.folder);
    let text = tree.text(&path);
    let bans = PURE_BANS
        .iter()
        .filter(|ban| !text.contains(&format!("path = \"{ban}\"")))
        .map(|ban| Violation::new(&path, format!("a pure crate must forbid {ban}")));
    let lines = shared
        .lines()
        .filter(|line| !line.is_empty() && !text.lines().any(|own| own == *line))
        .map(|line| Violation::new(&path, format!("must repeat `{line}` of the root")));
    bans.chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tree: &str, kind: EdgeKind, expected: &[&str]) {
        let broken = check_edges(&parse(tree, kind));
        let texts: Vec<String> = broken.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, part) in texts.iter().zip(expected) {
            assert!(text.contains(part), "{text} does not contain {part}");
        }
    }

    #[test]
    fn an_arrow_that_turns_back_is_found() {
        let tree = "0levee-control v0.1.0 (x)\n1levee-vocab v0.1.0 (x)\n1levee-proxy v0.1.0 (x)\n";
        check(
            tree,
            EdgeKind::Code,
            &["crates/control: may not use levee-proxy"],
        );
        check(tree, EdgeKind::Tests, &["may not use levee-proxy"]);
    }

    #[test]
    fn strangers_stay_out_of_the_pure_ring_but_may_test_it() {
        let tree = "0levee-vocab v0.1.0 (x)\n1thiserror v2.0.0\n1rand v0.9.0\n";
        check(tree, EdgeKind::Code, &["crates/vocab: may not use rand"]);
        check(tree, EdgeKind::Tests, &[]);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        let tree = "0levee-util v0.1.0 (x)\n1bytes v1.0.0\n";
        check(tree, EdgeKind::Code, &["levee-util: not in the table"]);
        let found = check_crates(&Tree::of(&[("crates/util/Cargo.toml", "")]));
        let row = "crates/util/Cargo.toml: a crate without a row";
        assert!(found.iter().any(|one| one.to_string().starts_with(row)));
    }

    #[test]
    fn the_table_itself_turns_only_downwards() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use {
                let row = LAYERS
                    .iter()
                    .position(|other| other.package == *used)
                    .unwrap();
                assert!(row < index, "{} uses {used}", layer.package);
                let pure = LAYERS[row].ring == Ring::Pure;
                assert!(
                    pure || layer.ring != Ring::Pure,
                    "{} uses {used}",
                    layer.package
                );
            }
        }
    }

    #[test]
    fn a_pure_crate_must_forbid_all_that_is_not_pure() {
        let shared = "too-many-lines-threshold = 60\n";
        let mut full = shared.to_owned();
        for ban in PURE_BANS {
            full.push_str(&format!("{{ path = \"{ban}\", reason = \"x\" }},\n"));
        }
        let layer = &LAYERS[0];
        let tree = Tree::of(&[("crates/vocab/clippy.toml", &full)]);
        assert!(check_bans(&tree, layer, shared).is_empty());
        let gap = full.replace("std::sync::RwLock", "std::sync::Once");
        let tree = Tree::of(&[("crates/vocab/clippy.toml", &gap)]);
        assert_eq!(check_bans(&tree, layer, shared).len(), 1);
        let tree = Tree::of(&[]);
        assert_eq!(check_bans(&tree, layer, shared).len(), PURE_BANS.len() + 1);
    }
}
