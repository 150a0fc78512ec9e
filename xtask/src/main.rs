//! The front door of the repository: `cargo xtask` prints what it can do.
//!
//! It exists so that a red build can be repeated at home: continuous integration calls these
//! commands and nothing else. Each file holds one concern; the list of commands is the one table
//! below. It uses the standard library only, so that it builds in seconds on a fresh clone.

mod bench;
mod cache_tests;
mod check;
mod command;
mod deb;
mod forward;
mod fuzz;
mod h2spec;
mod http_scripts;
mod install;
mod layers;
mod page;
mod room;
mod server;
mod steps;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use command::Failure;
use workspace::Workspace;

/// One command of the front door.
struct Entry {
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
    needs: Needs,
    run: fn(&Workspace, &[String]) -> Result<(), Failure>,
}

/// Without what a command could not work; it is not listed then.
enum Needs {
    Nothing,
    /// A file.
    File(&'static str),
    /// A subcommand of the lab, as its command line spells it.
    LabCommand(&'static str),
}

impl Needs {
    fn are_met(&self, workspace: &Workspace) -> bool {
        match self {
            Self::Nothing => true,
            Self::File(file) => workspace.has(file),
            Self::LabCommand(name) => {
                let main = workspace.root.join("crates/lab/src/main.rs");
                std::fs::read_to_string(main).is_ok_and(|text| text.contains(name))
            }
        }
    }
}

/// Every command, in the order in which a newcomer meets them.
const ENTRIES: &[Entry] = &[
    Entry {
        name: "check",
        arguments: "",
        does: "format, clippy, tidy, fast tests, API docs: run it before each commit",
        needs: Needs::Nothing,
        run: check::run,
    },
    Entry {
        name: "test",
        arguments: "",
        does: "check and everything else, installing what it needs: what CI runs",
        needs: Needs::Nothing,
        run: test::run,
    },
    Entry {
        name: "demo",
        arguments: "[--seed N] [--duration T] [--keep]",
        does: "the main job on one machine: a crowd, with and without the community",
        needs: Needs::LabCommand("Demo"),
        run: forward::demo,
    },
    Entry {
        name: "story",
        arguments: "NAME",
        does: "one scenario under the virtual clock, verbosely",
        needs: Needs::LabCommand("Story"),
        run: forward::story,
    },
    Entry {
        name: "storm",
        arguments: "[--seed N] [--runs N]",
        does: "seeded simulations; prints the first failing seed",
        needs: Needs::LabCommand("Storm"),
        run: forward::storm,
    },
    Entry {
        name: "soak",
        arguments: "[--time 60s] [--clients N] [--seed N]",
        does: "a server under load, reloads and dying applications: no wrong byte, no leak",
        needs: Needs::LabCommand("Soak"),
        run: forward::soak,
    },
    Entry {
        name: "lab",
        arguments: "[list | run NAME... [--compressed] | report]",
        does: "experiments of the papers with real servers on emulated hosts; needs root",
        needs: Needs::LabCommand("Run("),
        run: forward::experiments,
    },
    Entry {
        name: "bench",
        arguments: "[cost | signing | peers [OPTION...] | eviction [TRACE] | memory]",
        does: "what a request costs, beside other servers; what the cache keeps and weighs",
        needs: Needs::File("crates/proxy/examples/request_cost/main.rs"),
        run: bench::run,
    },
    Entry {
        name: "deb",
        arguments: "",
        does: "a Debian package of the release build",
        needs: Needs::Nothing,
        run: deb::run_packing,
    },
    Entry {
        name: "cache-tests",
        arguments: "[--levee FILE]",
        does: "what the npm package http-cache-tests says of levee as a cache",
        needs: Needs::Nothing,
        run: cache_tests::run,
    },
    Entry {
        name: "h2spec",
        arguments: "[--levee FILE]",
        does: "what h2spec says of levee's HTTP/2, in the clear and over TLS",
        needs: Needs::Nothing,
        run: h2spec::run,
    },
    Entry {
        name: "differential",
        arguments: "",
        does: "odd requests to levee, nginx and HAProxy: who takes what",
        needs: Needs::File("crates/levee/tests/real_differential/main.rs"),
        run: forward::differential,
    },
    Entry {
        name: "fuzz",
        arguments: "TARGET|all [--time 60s]",
        does: "libFuzzer on one parser or all; the corpus and what broke it are kept",
        needs: Needs::File("fuzz/Cargo.toml"),
        run: fuzz::run,
    },
    Entry {
        name: "slow-visitors",
        arguments: "",
        does: "slowhttptest against levee: who else is served, and how much memory it takes",
        needs: Needs::File("crates/levee/tests/real_slow_visitors.rs"),
        run: forward::slow_visitors,
    },
    Entry {
        name: "tidy",
        arguments: "",
        does: "the rules of the house that no compiler knows",
        needs: Needs::Nothing,
        run: tidy::run,
    },
    Entry {
        name: "page",
        arguments: "FILE.md...",
        does: "runs the examples of guide pages against the built levee",
        needs: Needs::Nothing,
        run: page::run,
    },
    Entry {
        name: "docs",
        arguments: "[--open]",
        does: "API docs of every crate, private items too",
        needs: Needs::Nothing,
        run: check::docs,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match answer(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn answer(arguments: &[String]) -> Result<(), Failure> {
    let workspace = Workspace::find()?;
    match arguments.split_first() {
        None => {
            print!("{}", overview(&workspace));
            Ok(())
        }
        Some((name, _)) if matches!(name.as_str(), "help" | "--help" | "-h") => {
            print!("{}", overview(&workspace));
            Ok(())
        }
        Some((name, rest)) => match ENTRIES.iter().find(|entry| entry.name == name) {
            Some(entry) => (entry.run)(&workspace, rest),
            None => Err(Failure::UnknownCommand { name: name.clone() }),
        },
    }
}

fn overview(workspace: &Workspace) -> String {
    let mut text = String::from("cargo xtask COMMAND\n\n");
    for entry in ENTRIES {
        if !entry.needs.are_met(workspace) {
            continue;
        }
        let call = format!("{} {}", entry.name, entry.arguments);
        text.push_str(&format!("  {:<40} {}\n", call.trim_end(), entry.does));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_names_every_command_that_works() {
        let workspace = Workspace::find().unwrap();
        let text = overview(&workspace);
        for name in ["check", "test", "tidy"] {
            assert!(text.contains(&format!("  {name} ")) || text.contains(&format!("  {name}\n")));
        }
        for entry in ENTRIES {
            let works = entry.needs.are_met(&workspace);
            assert_eq!(text.contains(entry.does), works, "{}", entry.name);
        }
    }

    #[test]
    fn an_unknown_command_is_refused_by_name() {
        let failure = answer(&["tset".to_owned()]).unwrap_err();
        assert!(failure.to_string().contains("tset"));
    }
}
