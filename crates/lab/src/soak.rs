//! A soak: a real server in front of real applications, for as long as one likes.
//!
//! Clients ask and check every byte of every answer. Meanwhile applications are killed and started
//! again, settings are changed and reloaded, and clients leave in the middle of bodies. Nothing of
//! this may cost a wrong byte, leave a request waiting for ever, or leave anything behind: at the
//! end, when everybody has left, the server must have as few files open as before.

mod application;
mod body;
mod client;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use clap::Args;
use levee_vocab::Random;
use rustix::process::Signal;

use self::client::{Ledger, ask_until};
use crate::processes::{Process, levee_beside};

/// `levee-lab soak`.
#[derive(Debug, Args)]
pub struct SoakArguments {
    /// How long, such as `60s`, `10min` or `1h`.
    #[arg(long, default_value = "60s", value_parser = length)]
    time: Duration,
    /// How many ask at a time.
    #[arg(long, default_value_t = 16)]
    clients: u64,
    /// Seed of all chances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The server; by default the one beside this program.
    #[arg(long)]
    levee: Option<PathBuf>,
    /// Be an application that listens on this socket instead.
    #[arg(long, hide = true)]
    application: Option<PathBuf>,
}

/// Files that a server may keep open for what is kept ready: idle connections to two applications.
const READY_FILES: usize = 80;
/// How often something is done to the server or its applications.
const STEP: Duration = Duration::from_millis(1500);
/// How long a server has to close what nobody uses any more.
const SETTLING: Duration = Duration::from_secs(70);

/// Runs a soak; succeeds where nothing was wrong, stuck or left behind.
pub fn run(arguments: &SoakArguments) -> ExitCode {
    if let Some(socket) = &arguments.application {
        return application::serve(socket);
    }
    match soak(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn length(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{text}` has no number"))?;
    let seconds = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        _ => return Err(format!("`{text}` needs a unit: s, min or h")),
    };
    Ok(Duration::from_secs(number * seconds))
}

/// The server and its applications.
struct Stage {
    folder: tempfile::TempDir,
    levee: Process,
    applications: [Option<Process>; 2],
}

impl Stage {
    fn start(levee: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let applications = [0, 1].map(|number| application(folder.path(), number).ok());
        let file = folder.path().join("levee.toml");
        write_settings(&file, 3)?;
        let arguments = ["serve".as_ref(), "-c".as_ref(), file.as_os_str()];
        let levee = Process::start("levee", levee, &arguments, folder.path());
        Ok(Self {
            levee: levee.map_err(|error| error.to_string())?,
            applications,
            folder,
        })
    }

    /// Does something that must cost nobody a byte.
    fn disturb(&mut self, random: &mut Random) -> Result<(), String> {
        let number = random.within(0..2) as usize;
        if random.chance(0.5) {
            if let Some(application) = self.applications[number].take() {
                let _ = application.signal(Signal::KILL);
            }
            self.applications[number] = application(self.folder.path(), number).ok();
            return Ok(());
        }
        let failures_max = random.within(1..6);
        write_settings(&self.folder.path().join("levee.toml"), failures_max)?;
        let told = self.levee.signal(Signal::HUP);
        told.map_err(|error| format!("cannot tell the server to reload: {error}"))
    }

    /// Open files and kilobytes of memory of the server.
    fn weight(&self) -> Result<(usize, u64), String> {
        let gone = |error| format!("the server is gone: {error}");
        let process = PathBuf::from(format!("/proc/{}", self.levee.id()));
        let files = fs::read_dir(process.join("fd")).map_err(gone)?.count();
        let status = fs::read_to_string(process.join("status")).map_err(gone)?;
        let memory = status.lines().find_map(|line| {
            let line = line.strip_prefix("VmRSS:")?;
            line.trim().trim_end_matches(" kB").parse().ok()
        });
        Ok((files, memory.unwrap_or(0)))
    }
}

fn application(folder: &Path, number: usize) -> Result<Process, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let socket = folder.join(format!("{number}.sock"));
    let name = format!("application-{number}");
    let arguments = [
        "soak".as_ref(),
        "--application".as_ref(),
        socket.as_os_str(),
    ];
    Process::start(&name, &own, &arguments, folder).map_err(|error| error.to_string())
}

/// Settings that differ with each reload, in the list of upstreams too.
fn write_settings(file: &Path, failures_max: u64) -> Result<(), String> {
    let folder = file.parent().unwrap_or(Path::new(".")).display();
    let upstreams = match failures_max % 2 {
        0 => format!("[\"unix:{folder}/0.sock\"]"),
        _ => format!("[\"unix:{folder}/0.sock\", \"unix:{folder}/1.sock\"]"),
    };
    let text = format!(
        "[site]\nname = \"soak.localhost\"\nlisten = [\"127.0.0.1:0\"]\nupstream = {upstreams}\n\
         [upstream]\nfailures_max = {failures_max}\n[cache]\nmemory = \"16 MiB\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n"
    );
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn soak(arguments: &SoakArguments) -> Result<(), String> {
    let beside = levee_beside().map_err(|error| error.to_string());
    let levee = arguments.levee.clone().map_or(beside, Ok)?;
    let mut stage = Stage::start(&levee)?;
    let site = stage.levee.ready().site.clone().unwrap_or_default();
    let port = site.rsplit(':').next().and_then(|port| port.parse().ok());
    let port: u16 = port.ok_or_else(|| format!("no port in {site}"))?;
    let (files_before, _) = stage.weight()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let ledger = Ledger::default();
    let end = Instant::now() + arguments.time;
    let clients: Vec<_> = (0..arguments.clients)
        .map(|number| {
            let seed = arguments.seed * 1000 + number;
            let at = ([127, 0, 0, 1], port).into();
            runtime.spawn(ask_until(end, at, seed, Ledger::clone(&ledger)))
        })
        .collect();
    let mut random = Random::from_seed(arguments.seed);
    let line_every = arguments.time / 10;
    let (begun, mut next_line) = (Instant::now(), line_every);
    println!("  seconds  requests  errors  wrong  stuck  open files  memory (kB)");
    while Instant::now() < end {
        std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
        stage.disturb(&mut random)?;
        if begun.elapsed() >= next_line {
            next_line += line_every;
            print_line(begun.elapsed(), &ledger, stage.weight()?);
        }
    }
    for client in clients {
        runtime
            .block_on(client)
            .map_err(|error| error.to_string())?;
    }
    runtime.shutdown_background();
    let files = settle(&stage, files_before)?;
    judge(&ledger, files, files_before)
}

fn print_line(elapsed: Duration, ledger: &Ledger, (files, memory): (usize, u64)) {
    let tally = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{:>9}  {:>8}  {:>6}  {:>5}  {:>5}  {files:>10}  {memory:>11}",
        elapsed.as_secs(),
        tally.requests,
        tally.errors.values().sum::<u64>(),
        tally.wrong,
        tally.stuck,
    );
}

/// Waits until the server has closed what nobody uses.
fn settle(stage: &Stage, before: usize) -> Result<usize, String> {
    let begun = Instant::now();
    loop {
        let (files, _) = stage.weight()?;
        if files <= before + READY_FILES || begun.elapsed() > SETTLING {
            return Ok(files);
        }
        std::thread::sleep(STEP);
    }
}

fn judge(ledger: &Ledger, files: usize, before: usize) -> Result<(), String> {
    let tally = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} requests: {} whole, {} left by their clients, {} wrong, {} stuck; open files {before} \
         before and {files} after",
        tally.requests, tally.whole, tally.left, tally.wrong, tally.stuck
    );
    for (kind, count) in &tally.errors {
        println!("  {count:>8}  {kind}");
    }
    match (tally.wrong, tally.stuck, tally.whole) {
        (0, 0, 0) => Err("nothing was ever answered".into()),
        (0, 0, _) if files <= before + READY_FILES => Ok(()),
        (0, 0, _) => Err(format!("{files} files are still open")),
        (wrong, stuck, _) => Err(format!("{wrong} wrong answers, {stuck} stuck requests")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_carries_its_unit() {
        assert_eq!(length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(length("1h"), Ok(Duration::from_secs(3600)));
        assert!(length("90").is_err() && length("fast").is_err());
    }
}
