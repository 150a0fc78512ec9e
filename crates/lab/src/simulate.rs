//! The commands of `levee-lab` that play under the virtual clock: `story`, `storm`, `experiment
//! lan`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use crate::experiment::{Form, lan_command};
use crate::storm::{StormSettings, storm_command};
use crate::story::{Verdict, story_command};

/// `levee-lab story`.
#[derive(Args, Debug)]
pub struct StoryArguments {
    /// The story: the name of a file in `scenarios/` without `.scn`, or a path.
    pub story: PathBuf,
    /// Seed of its world. The written traces are those of seed 1.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `levee-lab storm`.
#[derive(Args, Debug)]
pub struct StormArguments {
    /// Seed of the first storm; each following one has the next.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many storms.
    #[arg(long, default_value_t = 100)]
    pub runs: u64,
    /// Sites in each storm, 2 to 2000.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=2000))]
    pub sites: u64,
}

/// `levee-lab experiment`.
#[derive(Args, Debug)]
pub struct ExperimentArguments {
    /// Which.
    #[command(subcommand)]
    pub experiment: Experiment,
}

/// Experiments of the papers.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// One origin server and five rescue servers in a LAN (dotslash 6.3.4).
    Lan {
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How to print the figures.
        #[arg(long, value_enum, default_value = "table")]
        form: FormArgument,
    },
}

/// How to print figures.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormArgument {
    /// For people.
    Table,
    /// For plots.
    Csv,
}

/// Plays a story and prints it with what came of it; success if all is as it is written.
pub fn story(arguments: &StoryArguments) -> ExitCode {
    let mut path = arguments.story.clone();
    if !path.exists() {
        path = PathBuf::from("scenarios").join(path);
        path.set_extension("scn");
    }
    match story_command(&path, arguments.seed) {
        Ok(Verdict::AsExpected) => ExitCode::SUCCESS,
        Ok(Verdict::Differs) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Plays storms; success if no invariant was broken.
pub fn storm(arguments: &StormArguments) -> ExitCode {
    let settings = StormSettings {
        seed: arguments.seed,
        runs: arguments.runs,
        sites: arguments.sites as usize,
    };
    match storm_command(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Plays an experiment and prints its figures.
pub fn experiment(arguments: &ExperimentArguments) -> ExitCode {
    match &arguments.experiment {
        Experiment::Lan { seed, form } => {
            let form = match form {
                FormArgument::Table => Form::Table,
                FormArgument::Csv => Form::Csv,
            };
            lan_command(*seed, form);
            ExitCode::SUCCESS
        }
    }
}
