//! `levee lab list`, `run` and `report`.
//!
//! `run` starts itself once more inside namespaces (`enclosure`) and plays there; what it finds
//! goes to one JSON file for each experiment, and the report is made from those files. So a report
//! can be made again at any time, and of several runs.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::LabError;
use super::bench::{Bench, Form};
use super::enclosure::{self, Ended, Ground};
use super::experiments::{EXPERIMENTS, Experiment};
use super::findings::{Findings, Verdict};
use super::report;
use crate::processes::levee_beside;

/// What `levee lab run` is told.
#[derive(Clone, Debug, Args)]
pub struct RunArguments {
    /// Experiments, as `levee lab list` names them, or `all`.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Play the short form: minutes instead of an hour.
    #[arg(long, conflicts_with = "shortest")]
    compressed: bool,
    /// Play the shortest form: seconds, enough to see that all of it works.
    #[arg(long)]
    shortest: bool,
    /// Write the rows of the report to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for figures and report.
    #[arg(long, value_name = "FOLDER", default_value = "lab-report")]
    out: PathBuf,
    /// The `levee` binary; by default the one beside this program.
    #[arg(long, value_name = "FILE")]
    levee: Option<PathBuf>,
}

/// What `levee lab report` is told.
#[derive(Clone, Debug, Args)]
pub struct ReportArguments {
    /// Folder in which `levee lab run` left its figures.
    #[arg(long, value_name = "FOLDER", default_value = "lab-report")]
    out: PathBuf,
    /// Write the rows of the report to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// `levee lab list`.
pub fn list() -> ExitCode {
    print!("{}", overview());
    ExitCode::SUCCESS
}

/// `levee lab run`: succeeds where every goal was met.
pub fn run(arguments: &RunArguments) -> ExitCode {
    let done = match enclosure::ground() {
        Some(ground) => play_all(arguments, &ground).map(|()| ExitCode::SUCCESS),
        None => own(arguments),
    };
    done.unwrap_or_else(|error| complain("run", &error))
}

/// `levee lab report`: makes the report again from what earlier runs left.
pub fn report(arguments: &ReportArguments) -> ExitCode {
    let told = report::write(&arguments.out, arguments.json.as_deref());
    match told {
        Ok(all) if all.is_empty() => {
            let folder = arguments.out.display();
            eprintln!("levee lab report: nothing was played in {folder} yet; see `levee lab run`");
            ExitCode::from(2)
        }
        Ok(all) => {
            print!("{}", report::table(&all));
            println!("Report: {}", arguments.out.join(report::PAGE).display());
            ExitCode::SUCCESS
        }
        Err(error) => complain("report", &LabError::machine("write the report")(error)),
    }
}

fn complain(command: &str, error: &LabError) -> ExitCode {
    eprintln!("levee lab {command}: {error}");
    match error {
        LabError::Stopped => ExitCode::from(130),
        LabError::NotRoot
        | LabError::MissingTool { .. }
        | LabError::Unknown { .. }
        | LabError::Topology(_)
        | LabError::Start(_)
        | LabError::Refused { .. }
        | LabError::NoCandidates { .. }
        | LabError::Awaited(_)
        | LabError::NothingHeld(_)
        | LabError::Generator(_)
        | LabError::Machine { .. } => ExitCode::from(2),
    }
}

fn overview() -> String {
    let mut text =
        String::from("levee lab run NAME...   (minutes in full, and with --compressed)\n\n");
    for experiment in EXPERIMENTS {
        let [full, compressed] = experiment.minutes;
        let _ = writeln!(
            text,
            "  {:<20} {} ({}; {full:.0} and {compressed:.0} min)",
            experiment.name, experiment.title, experiment.source
        );
    }
    let _ = writeln!(text, "  {:<20} all of them", ALL);
    text
}

/// Stands for every experiment.
const ALL: &str = "all";

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, LabError> {
    let mut chosen = Vec::new();
    for name in names {
        if name == ALL {
            return Ok(EXPERIMENTS.iter().collect());
        }
        let found = EXPERIMENTS.iter().find(|one| one.name == name);
        chosen.push(found.ok_or_else(|| unknown(name))?);
    }
    Ok(chosen)
}

fn unknown(name: &str) -> LabError {
    let names: Vec<&str> = EXPERIMENTS.iter().map(|one| one.name).collect();
    LabError::Unknown {
        name: name.to_owned(),
        known: format!("{}, {ALL}", names.join(", ")),
    }
}

/// The owner's part: everything that must be said before anything is started, and the report.
fn own(arguments: &RunArguments) -> Result<ExitCode, LabError> {
    let experiments = chosen(&arguments.names)?;
    let levee = match &arguments.levee {
        Some(levee) => absolute(levee),
        None => levee_beside(),
    };
    let levee = levee.map_err(LabError::machine("find the server"))?;
    let out = absolute(&arguments.out).and_then(|out| fs::create_dir_all(&out).map(|()| out));
    let out = out.map_err(LabError::machine("make the folder for the report"))?;
    let mut inside: Vec<OsString> = vec!["run".into()];
    inside.extend(arguments.names.iter().map(OsString::from));
    match arguments.form() {
        Form::Full => {}
        Form::Compressed => inside.push("--compressed".into()),
        Form::Shortest => inside.push("--shortest".into()),
    }
    inside.extend([
        "--levee".into(),
        levee.into(),
        "--out".into(),
        out.clone().into(),
    ]);
    let began = Instant::now();
    let ended = enclosure::run_inside(&inside)?;
    let all = report::write(&out, arguments.json.as_deref());
    let all = all.map_err(LabError::machine("write the report"))?;
    let status = match ended {
        Ended::Stopped => return Err(LabError::Stopped),
        Ended::Status(status) => status,
    };
    let played: Vec<Findings> = all
        .into_iter()
        .filter(|one| was_chosen(&experiments, one))
        .collect();
    print!("{}", report::table(&played));
    println!("Report: {}", out.join(report::PAGE).display());
    println!("{:.0} s in all", began.elapsed().as_secs_f64());
    let rows = played.iter().flat_map(|findings| &findings.rows);
    let missed = rows.filter(|row| row.verdict == Verdict::Missed).count();
    // Verdicts of a few seconds are shown, but they would fail a build that has nothing wrong.
    let is_judged = arguments.form() != Form::Shortest;
    Ok(match (status.success(), missed) {
        (true, 1..) if is_judged => ExitCode::FAILURE,
        (true, _) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(2),
    })
}

fn was_chosen(experiments: &[&Experiment], findings: &Findings) -> bool {
    experiments
        .iter()
        .any(|one| one.name == findings.experiment)
}

impl RunArguments {
    const fn form(&self) -> Form {
        match (self.compressed, self.shortest) {
            (_, true) => Form::Shortest,
            (true, false) => Form::Compressed,
            (false, false) => Form::Full,
        }
    }
}

/// The inner part: plays one experiment after the other. One that fails does not stop the others.
fn play_all(arguments: &RunArguments, ground: &Ground) -> Result<(), LabError> {
    enclosure::settle_in()?;
    let mut failed = None;
    for experiment in chosen(&arguments.names)? {
        let bench = Bench {
            levee: arguments.levee.clone().unwrap_or_default(),
            lab: env::current_exe().map_err(LabError::machine("find this program"))?,
            ground: Ground {
                folder: ground.folder.join(experiment.name),
                owner: ground.owner,
            },
            form: arguments.form(),
        };
        eprintln!("{}: {}", experiment.name, experiment.title);
        if let Err(error) = play(experiment, &bench, &arguments.out) {
            eprintln!("{}: {error}", experiment.name);
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn play(experiment: &Experiment, bench: &Bench, out: &Path) -> Result<(), LabError> {
    let file = out.join(format!("{}.json", experiment.name));
    // What an earlier run found must not pass for what this one did.
    if file.exists() {
        fs::remove_file(&file).map_err(LabError::machine("remove old figures"))?;
    }
    let began = Instant::now();
    let found = (experiment.run)(bench)?;
    let findings = Findings {
        experiment: experiment.name.to_owned(),
        title: experiment.title.to_owned(),
        source: experiment.source.to_owned(),
        seconds: began.elapsed().as_secs_f64(),
        ..found.in_form(bench.form)
    };
    let text = serde_json::to_string_pretty(&findings).map_err(std::io::Error::from);
    text.and_then(|text| fs::write(file, text + "\n"))
        .map_err(LabError::machine("write figures"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_experiment_is_refused_with_those_that_there_are() {
        let error = chosen(&["dotslash".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("no experiment `dotslash`"), "{error}");
        assert!(error.contains("dotslash-dsl"), "{error}");
        assert!(error.ends_with(", all"), "{error}");
    }

    #[test]
    fn every_experiment_is_listed_once() {
        let text = overview();
        for experiment in EXPERIMENTS {
            assert_eq!(text.matches(&format!("  {} ", experiment.name)).count(), 1);
        }
        assert_eq!(chosen(&[ALL.to_owned()]).unwrap().len(), EXPERIMENTS.len());
    }
}
