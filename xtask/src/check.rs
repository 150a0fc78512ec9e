//! `check`: what one runs before each commit. Fast tests only: no process of ours is started,
//! nothing is installed, no release build is made.

use std::thread;

use crate::command::{Failure, cargo, run as run_command};
use crate::steps::Steps;
use crate::tidy;
use crate::workspace::Workspace;

/// An integration test with one of these words in its name starts real processes or a browser.
/// `check` leaves it to `test`, because it takes longer than one wants to wait before a commit.
const REAL: &[&str] = &["browser", "process", "processes", "real"];

/// Runs every fast check.
pub fn run(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    let mut steps = Steps::default();
    fast(workspace, &mut steps);
    steps.close()
}

/// The fast steps, cheapest first.
pub fn fast(workspace: &Workspace, steps: &mut Steps) {
    steps.step("format", || {
        run_command(&mut cargo(workspace, &["fmt", "--all", "--check"]))
    });
    steps.step("tidy", || tidy::run(workspace, &[]));
    steps.step("clippy", || {
        let arguments = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        run_command(&mut cargo(workspace, &arguments))
    });
    steps.step("fast tests", || {
        let tests = integration_tests(workspace)?;
        let fast = tests.iter().filter(|name| !is_real(name));
        let mut command = cargo(
            workspace,
            &["test", "--workspace", "--no-fail-fast", "--lib", "--bins"],
        );
        command.args(fast.flat_map(|name| ["--test", name]));
        run_command(&mut command)
    });
    steps.step("doc tests", || {
        run_command(&mut cargo(workspace, &["test", "--workspace", "--doc"]))
    });
    steps.step("docs", || docs(workspace, &[]));
}

/// The tests against real processes, one package after the other.
pub fn real_tests(workspace: &Workspace) -> Result<(), Failure> {
    let tests = integration_tests(workspace)?;
    let real: Vec<&String> = tests.iter().filter(|name| is_real(name)).collect();
    if real.is_empty() {
        return Err(Failure::Missing {
            what: "any test against real processes".to_owned(),
            way_out: format!("one of these words is in its name: {}", REAL.join(", ")),
        });
    }
    // A test of one package may start the program of another. Both packages with programs have
    // such tests, and cargo builds the programs of all that are tried before it runs any.
    let mut command = cargo(workspace, &["test", "--workspace", "--no-fail-fast"]);
    command.args(real.into_iter().flat_map(|name| ["--test", name]));
    // They wait for timers of seconds most of the time.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    command.args(["--", &format!("--test-threads={}", 2 * cores)]);
    run_command(&mut command)
}

/// Builds the API docs; a broken link in them is an error.
pub fn docs(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let call = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    let mut command = cargo(workspace, &call);
    // Only rustdoc reads this, so nothing else is built anew because of it.
    run_command(command.args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

fn is_real(test: &str) -> bool {
    test.split('_').any(|word| REAL.contains(&word))
}

/// Names of all integration tests of our packages, each once.
fn integration_tests(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let files = tidy::tracked_files(workspace)?;
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| integration_test(file))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Name of the integration test whose main file `file` is: a file, or a folder with a `main.rs`.
fn integration_test(file: &str) -> Option<&str> {
    match file.split('/').collect::<Vec<_>>()[..] {
        ["crates", _, "tests", test] => test.strip_suffix(".rs"),
        ["crates", _, "tests", test, "main.rs"] => Some(test),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integration_test_is_found() {
        let found = |file| integration_test(file);
        assert_eq!(
            found("crates/proxy/tests/fetch_disk.rs"),
            Some("fetch_disk")
        );
        assert_eq!(found("crates/proxy/tests/engine/main.rs"), Some("engine"));
        assert_eq!(found("crates/proxy/tests/engine/files.rs"), None);
        assert_eq!(found("crates/proxy/tests/table.golden"), None);
        assert_eq!(found("crates/proxy/src/main.rs"), None);
    }

    #[test]
    fn tests_against_real_processes_are_told_by_their_names() {
        assert!(is_real("real_faults"));
        assert!(is_real("dashboard_browser"));
        assert!(!is_real("rescue_table"));
        assert!(!is_real("surreal"));
    }
}
