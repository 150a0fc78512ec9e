//! The main job, played for real: a small site survives a flash crowd with its neighbours' help.
//!
//! [`neighbourhood`] starts the real binary seven times on 127.0.0.1; two crowds drawn from the
//! same seed set off at the same moment, one to a site in a community and one to the same site
//! alone; [`watch`] looks at every server meanwhile; `sums` makes the figures and [`verdict`]
//! says which promises were kept. The two runs share a machine but nothing else: each site has its
//! own limited link, and both together ask far less of the processor than it has.
//!
//! ```text
//!   calm ──▶ crowd ──▶ bound phase ──▶ back to normal ──▶ report
//!   6 s      60 s      20 s            about 35 s
//! ```

pub mod display;
pub mod figures;
pub mod neighbourhood;
mod phases;
mod sums;
pub mod verdict;
pub mod watch;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thiserror::Error;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use display::Display;
use figures::Figures;
use neighbourhood::{BuildError, Neighbourhood};

use crate::report;

/// What `levee-lab demo` is told.
#[derive(Clone, Debug, Args)]
pub struct DemoArguments {
    /// The `levee` binary; by default the one beside this program.
    #[arg(long, value_name = "FILE")]
    levee: Option<PathBuf>,
    /// Draws the crowd and the site; the same seed sends the same visitors.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Leave everything running for a look, until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// Length of the crowd in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(15..=600))]
    duration: u64,
    /// Folder for the report.
    #[arg(long, value_name = "FOLDER", default_value = "demo-report")]
    out: PathBuf,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum DemoError {
    /// The neighbourhood could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The origin server found no candidates.
    #[error("the origin server knows {found} of {wanted} members after {seconds} s")]
    NoCandidates {
        /// Candidates that it has.
        found: usize,
        /// Members that there are.
        wanted: usize,
        /// How long it had.
        seconds: u64,
    },
    /// A process ended by itself.
    #[error("{0} ended in the middle of the demo")]
    Ended(String),
    /// Ctrl-C, or a request to stop.
    #[error("stopped")]
    Stopped,
    /// Something of this machine failed.
    #[error("cannot {what}: {error}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// What went wrong.
        error: io::Error,
    },
}

/// Plays the demo. The exit status is 0 only if the site survived.
pub fn run(arguments: &DemoArguments) -> ExitCode {
    match play(arguments) {
        Ok(figures) if figures.survived => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(DemoError::Stopped) => ExitCode::from(130),
        Err(error) => {
            eprintln!("levee-lab demo: {error}");
            ExitCode::from(2)
        }
    }
}

fn play(arguments: &DemoArguments) -> Result<Figures, DemoError> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(machine("start"))?;
    let mut stop = {
        let _inside = runtime.enter();
        Stop::listen()?
    };
    let folder = tempfile::Builder::new()
        .prefix("levee-demo-")
        .tempdir()
        .map_err(machine("make a folder for the sites"))?;
    let levee = binary(arguments)?;
    let mut display = Display::new();
    let sites = folder.path().display();
    display.say(&format!(
        "Starting a registry and six sites, with files in {sites}"
    ));
    let mut neighbourhood = Neighbourhood::start(&levee, folder.path(), arguments.seed)?;
    introduce(&mut display, &neighbourhood);
    runtime.block_on(async {
        let played = phases::play(arguments, &mut neighbourhood, &mut display);
        let figures = stop.or(played).await??;
        display.say(&report::table(&figures));
        let files = report::write(&figures, &arguments.out).map_err(machine("write the report"))?;
        display.say(&format!("Report: {}", files.page.display()));
        display.say(&format!("Figures: {}", files.json.display()));
        if arguments.keep {
            display.say("Everything stays up for a look; Ctrl-C ends it.");
            // Being stopped is how this is meant to end.
            let _ = stop.or(std::future::pending::<()>()).await;
        }
        Ok(figures)
    })
}

fn introduce(display: &mut Display, neighbourhood: &Neighbourhood) {
    let origin = &neighbourhood.origin;
    display.say(&format!(
        "  origin server   http://{}/  behind a link of {} kB/s\n  \
         live dashboard  http://{}/dashboard\n  alone           http://{}/  the same without help",
        origin.address,
        origin.link / 1000,
        origin.admin,
        neighbourhood.alone.address,
    ));
    for member in &neighbourhood.members {
        display.say(&format!(
            "  member          http://{}/  behind {} kB/s, dashboard http://{}/dashboard",
            member.address,
            member.link / 1000,
            member.admin
        ));
    }
}

fn binary(arguments: &DemoArguments) -> Result<PathBuf, DemoError> {
    if let Some(levee) = &arguments.levee {
        return Ok(levee.clone());
    }
    let own = std::env::current_exe().map_err(machine("find this program"))?;
    Ok(own.parent().unwrap_or(Path::new(".")).join("levee"))
}

/// Ctrl-C, SIGTERM and a closed terminal, listened for from before the first process is started:
/// no moment is left in which the demo could end without stopping what it started.
struct Stop {
    interrupted: Signal,
    terminated: Signal,
    hung_up: Signal,
}

impl Stop {
    fn listen() -> Result<Self, DemoError> {
        let listen = |kind| signal(kind).map_err(machine("listen for signals"));
        Ok(Self {
            interrupted: listen(SignalKind::interrupt())?,
            terminated: listen(SignalKind::terminate())?,
            hung_up: listen(SignalKind::hangup())?,
        })
    }

    /// Does `work`, unless a signal came or comes.
    async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, DemoError> {
        tokio::select! {
            done = work => Ok(done),
            _ = self.interrupted.recv() => Err(DemoError::Stopped),
            _ = self.terminated.recv() => Err(DemoError::Stopped),
            _ = self.hung_up.recv() => Err(DemoError::Stopped),
        }
    }
}

fn machine(what: &'static str) -> impl Fn(io::Error) -> DemoError {
    move |error| DemoError::Machine { what, error }
}

/// How often the display changes, and how soon a phase notices its end.
const TICK: Duration = Duration::from_millis(200);
