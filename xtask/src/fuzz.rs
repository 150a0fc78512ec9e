//! `fuzz TARGET`: libFuzzer on one of our parsers, guided by coverage, with the stable compiler.
//!
//! `fuzz/` is a workspace of its own, because its builds carry the instrumentation of LLVM and link
//! libFuzzer, which is C++. What covers new code is added to `fuzz/corpus/TARGET`; what breaks a
//! property is put into `fuzz/crashes/TARGET`, where an ordinary test finds it from then on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::command::{Failure, capture, cargo, run as run_command};
use crate::workspace::{Workspace, failed};

/// What LLVM is asked for: counters at every edge, the table of their places, and the operands of
/// comparisons. All of it are stable options; only sanitizers would need a nightly compiler.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Ccodegen-units=1 --cfg fuzzing";
/// How long each target is tried by `test`.
const TEST_SECONDS: u32 = 20;
const USAGE: &str = "fuzz TARGET [--time 60s]; the targets are the files of fuzz/targets";

/// Fuzzes one target.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (target, seconds) = match arguments.as_slice() {
        [target] => (*target, 60),
        [target, "--time", time] => (*target, seconds(time)?),
        _ => return Err(usage()),
    };
    if !targets(workspace)?.iter().any(|one| one == target) {
        return Err(usage());
    }
    build(workspace)?;
    fuzz(workspace, target, seconds)
}

/// Fuzzes every target for a moment.
pub fn test(workspace: &Workspace) -> Result<(), Failure> {
    build(workspace)?;
    for target in targets(workspace)? {
        fuzz(workspace, &target, TEST_SECONDS)?;
    }
    Ok(())
}

fn usage() -> Failure {
    Failure::Unexpected {
        story: USAGE.to_owned(),
    }
}

/// `60s`, `5m`, or a number of seconds.
fn seconds(text: &str) -> Result<u32, Failure> {
    let (digits, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: Option<u32> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(usage)
}

fn targets(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let folder = workspace.root.join("fuzz/targets");
    let files = fs::read_dir(&folder).map_err(failed("read", &folder))?;
    let name = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = files.filter_map(|file| name(file.ok()?.path())).collect();
    names.sort();
    Ok(names)
}

/// The folder for instrumented builds, apart from all others.
fn build_folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("fuzz")
}

/// The system that we build on. Named to cargo, so that build scripts stay without instrumentation.
fn host() -> Result<String, Failure> {
    let mut rustc = Command::new("rustc");
    let version = capture(rustc.arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::Unexpected {
        story: "rustc does not tell for which system it builds".to_owned(),
    })
}

fn build(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = cargo(workspace, &["build", "--release", "--target", &host()?]);
    command
        .current_dir(workspace.root.join("fuzz"))
        .env("RUSTFLAGS", INSTRUMENTATION)
        .env("CARGO_TARGET_DIR", build_folder(workspace));
    run_command(&mut command)
}

fn fuzz(workspace: &Workspace, target: &str, seconds: u32) -> Result<(), Failure> {
    let root = workspace.root.join("fuzz");
    let crashes = root.join("crashes").join(target);
    let corpus = root.join("corpus").join(target);
    for folder in [&crashes, &corpus] {
        fs::create_dir_all(folder).map_err(failed("create", folder))?;
    }
    let program = build_folder(workspace).join(host()?).join("release");
    let mut command = Command::new(program.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .args(["-max_len=4096", "-timeout=5", "-rss_limit_mb=1024"])
        .args(["-print_final_stats=1", "-verbosity=0"])
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg(corpus);
    println!("{target}, {seconds} s");
    run_command(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let read = |text| seconds(text).ok();
        assert_eq!(read("60s"), Some(60));
        assert_eq!(read("5m"), Some(300));
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("x"), None);
    }
}
