//! `levee-lab`: the demo, the simulator and what else is played rather than served.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use levee_lab::bare::{self, BareArguments};
use levee_lab::demo::{self, DemoArguments};
use levee_lab::emulated::alterer::{self, AltererArguments};
use levee_lab::emulated::command::{ReportArguments, RunArguments};
use levee_lab::emulated::{self, generator};
use levee_lab::load::{self, LoadArguments};
use levee_lab::popularity::{self, FitArguments};
use levee_lab::simulate::{self, ExperimentArguments, StormArguments, StoryArguments};
use levee_lab::soak::{self, SoakArguments};

/// Plays stories with Levee: a flash crowd against real processes, or simulated ones.
#[derive(Parser)]
#[command(name = "levee-lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A small site survives a flash crowd with its neighbours' help.
    Demo(DemoArguments),
    /// Draws popularity and sizes from a trace, as the demo's site uses them.
    FitTrace(FitArguments),
    /// Plays a story under the virtual clock.
    Story(StoryArguments),
    /// Plays storms of crowds and faults, and checks the invariants at every event.
    Storm(StormArguments),
    /// The least that a web server can do for a request: a yardstick, never to be used.
    Bare(BareArguments),
    /// Idle connections, slow readers, TLS handshakes: loads for the bench, on this machine only.
    Load(LoadArguments),
    /// A server under load, reloads and dying applications: no wrong byte, nothing left behind.
    Soak(SoakArguments),
    /// Plays an experiment of a paper under the virtual clock.
    Experiment(ExperimentArguments),
    /// Names the experiments that can be played with real servers on emulated hosts.
    List,
    /// Plays experiments of the papers with real servers on emulated hosts, and writes a report.
    Run(RunArguments),
    /// Writes the report again from what was played.
    Report(ReportArguments),
    /// The visitors of an experiment, as `run` starts them.
    #[command(hide = true)]
    Generate,
    /// A server's face that alters what it passes on, as `run` starts it.
    #[command(hide = true)]
    Alter(AltererArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bare(arguments) => bare::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::FitTrace(arguments) => popularity::run(&arguments),
        Command::Story(arguments) => simulate::story(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Storm(arguments) => simulate::storm(&arguments),
        Command::Experiment(arguments) => simulate::experiment(&arguments),
        Command::List => emulated::command::list(),
        Command::Run(arguments) => emulated::command::run(&arguments),
        Command::Report(arguments) => emulated::command::report(&arguments),
        Command::Generate => generator::run(),
        Command::Alter(arguments) => alterer::run(&arguments),
    }
}
