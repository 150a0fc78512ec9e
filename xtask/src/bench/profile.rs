//! Where our time goes under one workload: the symbols that perf finds, the kernel's too.

use std::process::Command;

use super::fleet::{Ground, Instance};
use super::load::{self, Target};
use super::workloads::Workload;
use crate::command::{Failure, capture, is_installed};

/// Lines of the report that are worth reading.
const LINES: usize = 45;
/// Samples a second: often enough for a run of seconds, and no round number that a timer may
/// share.
const FREQUENCY: &str = "4999";

/// Records `instance` under the load of `workload` and prints the top symbols.
pub fn run(
    workload: &Workload,
    instance: &Instance,
    ground: &Ground,
    target: &Target,
) -> Result<(), Failure> {
    if !is_installed("perf") {
        return Err(Failure::Missing {
            what: "perf".to_owned(),
            way_out: "on Debian, `apt-get install linux-perf`".to_owned(),
        });
    }
    let data = ground.folder.join("perf.data");
    let mut recording = Command::new("perf")
        .args([
            "record",
            "--quiet",
            "-F",
            FREQUENCY,
            "-p",
            &instance.id().to_string(),
            "-o",
        ])
        .arg(&data)
        .args(["--", "sleep", &target.seconds.to_string()])
        .spawn()
        .map_err(|cause| Failure::Io {
            what: "run perf".to_owned(),
            cause,
        })?;
    let seen = load::run(workload, target);
    // It ends by itself when its sleep does.
    let _ = recording.wait();
    let seen = seen?;
    println!("{}: {:.0} requests/s under perf\n", workload.id, seen.rate);
    let mut report = Command::new("perf");
    report
        .args([
            "report",
            "--stdio",
            "--no-children",
            "--sort",
            "symbol",
            "-i",
        ])
        .arg(&data);
    let text = capture(&mut report)?;
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines.take(LINES) {
        println!("{}", line.trim_end());
    }
    Ok(())
}
