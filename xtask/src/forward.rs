//! Commands that build a program of ours and hand over to it.

use std::process::Command;

use crate::command::{Failure, cargo, run};
use crate::install;
use crate::workspace::Workspace;

/// What is built for release is built with these packages beside it: cargo chooses the features of
/// all dependencies by the packages that are named, and other features mean to build them anew.
const PROGRAMS: [&str; 4] = ["--package", "levee", "--package", "levee-lab"];

/// Builds the server and its lab for release, with the build's progress on the terminal.
pub fn build(workspace: &Workspace) -> Result<(), Failure> {
    install::for_builds()?;
    run(cargo(workspace, &["build", "--release"]).args(PROGRAMS))
}

/// Builds the server and the lab for release, with the lab's yardsticks.
pub fn build_yardsticks(workspace: &Workspace) -> Result<(), Failure> {
    build(workspace)?;
    build_examples(workspace, "levee-net", &["bare_uring"])
}

fn build_examples(workspace: &Workspace, package: &str, names: &[&str]) -> Result<(), Failure> {
    let mut command = cargo(workspace, &["build", "--release"]);
    command.args(PROGRAMS).args(["--package", package]);
    command.args(names.iter().flat_map(|name| ["--example", name]));
    run(&mut command)
}

/// The program of an example that was built for release.
fn example(workspace: &Workspace, name: &str) -> Command {
    let folder = workspace.target.join("release/examples");
    let mut command = Command::new(folder.join(name));
    command.current_dir(&workspace.root);
    command
}

/// The main job, as one command. Its exit status is that of the demo: 0 only if the site survived.
pub fn demo(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    build(workspace)?;
    let mut command = Command::new(workspace.program("levee-lab"));
    command
        .current_dir(&workspace.root)
        .args(["demo", "--levee"])
        .arg(workspace.program("levee"))
        .args(arguments);
    run(&mut command)
}

/// One scenario under the virtual clock.
pub fn story(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    lab(workspace, "story", arguments)
}

/// Seeded simulations.
pub fn storm(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    lab(workspace, "storm", arguments)
}

/// A server under load, reloads and dying applications.
pub fn soak(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    lab(workspace, "soak", arguments)
}

/// Experiments of the papers with real servers on emulated hosts; without a word, their list.
pub fn experiments(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments.split_first() {
        None => lab(workspace, "list", &[]),
        Some((subcommand, rest)) => lab(workspace, subcommand, rest),
    }
}

/// Each experiment in its shortest form, which needs root; says loudly when it is left out.
pub fn test_experiments(workspace: &Workspace) -> Result<(), Failure> {
    if !install::is_root() {
        println!("LEFT OUT, needs root: experiments on emulated hosts");
        return Ok(());
    }
    let folder = workspace.target.join("lab-report");
    let mut command = Command::new(workspace.program("levee-lab"));
    command
        .current_dir(&workspace.root)
        .args(["run", "all", "--shortest", "--out"])
        .arg(folder);
    run(&mut command)
}

/// Instructions and allocations of a request on its core, and of its part for hot spots.
pub fn request_cost(workspace: &Workspace) -> Result<(), Failure> {
    let examples = ["request_cost", "arrival_cost"];
    build_examples(workspace, "levee-proxy", &examples)?;
    for name in examples {
        run(&mut example(workspace, name))?;
    }
    Ok(())
}

/// What signatures and digests cost.
pub fn signing_cost(workspace: &Workspace) -> Result<(), Failure> {
    build_examples(workspace, "levee", &["signing_cost"])?;
    run(&mut example(workspace, "signing_cost"))
}

/// What the object cache keeps beside other policies, or what it weighs under churn.
pub fn cache_bench(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    build_examples(workspace, "levee-proxy", &["cache_bench"])?;
    run(example(workspace, "cache_bench").args(arguments))
}

fn lab(workspace: &Workspace, subcommand: &str, arguments: &[String]) -> Result<(), Failure> {
    build(workspace)?;
    let mut command = Command::new(workspace.program("levee-lab"));
    command
        .current_dir(&workspace.root)
        .arg(subcommand)
        .args(arguments);
    run(&mut command)
}

/// Compares levee with other servers on odd requests, and prints how often they agree.
pub fn differential(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    one_test(workspace, "real_differential")
}

/// Lets slow visitors loose on levee, and prints who else was served.
pub fn slow_visitors(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    one_test(workspace, "real_slow_visitors")
}

/// Runs one test of the binary and shows what it prints.
fn one_test(workspace: &Workspace, name: &str) -> Result<(), Failure> {
    let call = ["test", "--package", "levee", "--test", name];
    run(cargo(workspace, &call).args(["--", "--nocapture"]))
}
