//! `test`: everything that can be tested, on a fresh machine, without a question.
//!
//! All steps share two builds, one for tests and one for release: nothing here changes flags or
//! profiles between steps, and nothing is kept for a second build of the same crate. A step that
//! fails does not stop the others, so that one run shows every fault.

use std::process::Command;

use crate::command::{Failure, run as run_command};
use crate::steps::Steps;
use crate::workspace::Workspace;
use crate::{
    bench, cache_tests, check, deb, forward, fuzz, h2spec, http_scripts, install, page, room,
};

/// Simulations of the storm step: enough to meet every kind of fault many times, in seconds.
const STORM_RUNS: &str = "200";

/// Runs every test there is.
pub fn run(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    let workspace = &workspace.built_once();
    let mut steps = Steps::default();
    steps.step("room", || room::tell(workspace));
    steps.step("install", install::run_installation);
    check::fast(workspace, &mut steps);
    steps.step("real processes", || check::real_tests(workspace));
    steps.step("fuzz", || fuzz::test(workspace));
    if steps.step("release build", || forward::build(workspace)) {
        with_release(workspace, &mut steps);
    } else {
        for name in [
            "http scripts",
            "cache tests",
            "h2spec",
            "guide",
            "storm",
            "request cost",
            "bench peers",
            "deb",
            "lab",
            "demo",
        ] {
            steps.skip(name, "the release build failed");
        }
    }
    steps.close()
}

/// The steps that use the programs as people get them.
fn with_release(workspace: &Workspace, steps: &mut Steps) {
    steps.step("http scripts", || http_scripts::run(workspace));
    steps.step("cache tests", || {
        cache_tests::test(workspace, &workspace.program("levee"))
    });
    steps.step("h2spec", || {
        h2spec::test(workspace, &workspace.program("levee"))
    });
    steps.step("guide", || page::run_all(workspace));
    steps.step("storm", || {
        let mut lab = Command::new(workspace.program("levee-lab"));
        lab.current_dir(&workspace.root)
            .args(["storm", "--seed", "1", "--runs", STORM_RUNS]);
        run_command(&mut lab)
    });
    steps.step("request cost", || forward::request_cost(workspace));
    steps.step("bench peers", || {
        bench::run(workspace, &["peers".to_owned(), "--quick".to_owned()])
    });
    steps.step("deb", || deb::check(workspace));
    steps.step("lab", || forward::test_experiments(workspace));
    steps.step("demo", || forward::demo(workspace, &[]));
}
