//! `fuzz TARGET`: libFuzzer on our parsers, guided by coverage, with the stable compiler.
//!
//! `fuzz/` is a workspace of its own, because its builds carry the instrumentation of LLVM and link
//! libFuzzer, which is C++. `fuzz/instrument` stands before the compiler and asks for it in the
//! crates whose parsers are tried. What covers new code is added to `fuzz/corpus/TARGET`; what
//! breaks a property is put into `fuzz/crashes/TARGET`, where an ordinary test finds it from then
//! on. Of several targets each core tries one at a time.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use crate::command::{Failure, capture, cargo, run as run_command};
use crate::workspace::{Workspace, failed};

/// How long each target is tried by `test`: what is broken again is found at once, from the corpus;
/// what is new is looked for by the nightly form, `fuzz all --time 60s`.
const TEST_SECONDS: u32 = 8;
const USAGE: &str = "fuzz TARGET [--time 60s]; the targets are the files of fuzz/targets, or `all`";

/// Fuzzes one target, or all.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (target, seconds) = match arguments.as_slice() {
        [target] => (*target, 60),
        [target, "--time", time] => (*target, seconds(time)?),
        _ => return Err(usage()),
    };
    let all = targets(workspace)?;
    let chosen = match target {
        "all" => all,
        one if all.iter().any(|known| known == one) => vec![one.to_owned()],
        _ => return Err(usage()),
    };
    build(workspace)?;
    fuzz_all(workspace, chosen, seconds)
}

/// Fuzzes every target for a moment.
pub fn test(workspace: &Workspace) -> Result<(), Failure> {
    build(workspace)?;
    fuzz_all(workspace, targets(workspace)?, TEST_SECONDS)
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
    let root = workspace.root.join("fuzz");
    command
        .env("RUSTC_WRAPPER", root.join("instrument"))
        // In these flags, so that cargo knows too which dependencies are left out of fuzzing.
        .env("RUSTFLAGS", "--cfg fuzzing")
        .env("CARGO_TARGET_DIR", build_folder(workspace))
        .current_dir(root);
    run_command(&mut command)
}

/// Tries `targets`, one on each core at a time, and tells of each when it is done.
fn fuzz_all(workspace: &Workspace, targets: Vec<String>, seconds: u32) -> Result<(), Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let runs: Vec<Command> = targets
        .iter()
        .map(|target| fuzz(workspace, target, seconds))
        .collect::<Result<_, _>>()?;
    let left = Mutex::new(targets.into_iter().zip(runs));
    let next = || left.lock().ok()?.next();
    let broken = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((target, mut run)) = next() {
                    let is_well = run.output().is_ok_and(|output| tell(&target, &output));
                    if let (false, Ok(mut broken)) = (is_well, broken.lock()) {
                        broken.push(target);
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().unwrap_or_default();
    broken.sort();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected {
            story: format!(
                "inputs that broke a property are in fuzz/crashes: {}",
                broken.join(", ")
            ),
        }),
    }
}

/// Prints what came of a target: a line where nothing broke, and all that it said where something
/// did. Gives whether nothing did.
fn tell(target: &str, output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let figure = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("?", str::trim).to_owned()
    };
    let runs = figure("stat::number_of_executed_units:");
    let new = figure("stat::new_units_added:");
    println!("{target}: {runs} inputs, {new} of them reached something new");
    if !output.status.success() {
        println!("{said}");
    }
    output.status.success()
}

fn fuzz(workspace: &Workspace, target: &str, seconds: u32) -> Result<Command, Failure> {
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
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process;

    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let read = |text| seconds(text).ok();
        assert_eq!(read("60s"), Some(60));
        assert_eq!(read("5m"), Some(300));
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("x"), None);
    }

    #[test]
    fn every_target_is_tried_and_those_that_broke_are_named() {
        let folder = env::temp_dir().join(format!("xtask-fuzz-{}", process::id()));
        let workspace = Workspace {
            root: folder.clone(),
            target: folder.join("target"),
            is_for_work: true,
        };
        let programs = build_folder(&workspace).join(host().unwrap());
        let programs = programs.join("release");
        fs::create_dir_all(&programs).unwrap();
        for (target, status) in [("a", 0), ("b", 77), ("c", 0), ("d", 77)] {
            let program = programs.join(target);
            let script = format!("#!/bin/sh\necho stat::new_units_added: 7 >&2\nexit {status}\n");
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        }
        let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let tried = |names: &[&str]| fuzz_all(&workspace, all(names), 1);
        assert!(tried(&["a", "c"]).is_ok());
        let told = tried(&["a", "b", "c", "d"]).unwrap_err().to_string();
        assert!(told.ends_with(": b, d"), "{told}");
        assert!(folder.join("fuzz/corpus/d").is_dir());
        fs::remove_dir_all(&folder).unwrap();
    }
}
