//! What `bench peers` is told on its command line.

use std::path::PathBuf;

use super::servers::OURS;
use crate::command::Failure;

/// The options, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Workloads to run, by id; empty means all.
    pub only: Vec<String>,
    /// Servers to run, by name; empty means all.
    pub servers: Vec<String>,
    /// How often each server is measured under each workload.
    pub rounds: usize,
    /// Length of one measurement.
    pub seconds: u32,
    /// Where the figures go for machines.
    pub json: Option<PathBuf>,
    /// The levee to measure; the one of this workspace, built for release, where none is given.
    pub levee: Option<PathBuf>,
    /// How thorough the run is.
    pub extent: Extent,
    /// Whether the table of the README is written anew.
    pub readme: Readme,
}

/// How thorough a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that was asked for.
    Whole,
    /// Every workload once, with ours, the bare loop and one peer in turn; every answer of every
    /// server is still checked.
    Quick,
    /// One workload, ours alone, under perf.
    Profile,
}

/// What becomes of the table of the README.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readme {
    /// It stays.
    Keep,
    /// This run's table takes its place.
    Rewrite,
}

/// The text of `--help`.
pub const HELP: &str = "cargo xtask bench peers [OPTION...]

  --only A,B      only these workloads
  --servers A,B   only these servers
  --rounds N      measurements of each server under each workload (default 5)
  --seconds S     length of one measurement, in whole seconds (default 1)
  --json FILE     writes the figures for machines
  --levee FILE    measures this levee instead of building one
  --readme        puts the table into the README
  --quick         a minute's run that proves that every server and workload still works
  --profile W     where our own time goes under workload W (needs perf)
";

impl Default for Options {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            servers: Vec::new(),
            rounds: 5,
            seconds: 1,
            json: None,
            levee: None,
            extent: Extent::Whole,
            readme: Readme::Keep,
        }
    }
}

impl Options {
    /// Reads the command line.
    pub fn read(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let mut value = || {
                rest.next()
                    .ok_or_else(|| wrong(format!("{name} needs a value")))
            };
            match name.as_str() {
                "--only" => options.only = list(value()?),
                "--servers" => options.servers = list(value()?),
                "--rounds" => options.rounds = number(name, value()?)?,
                "--seconds" => options.seconds = number(name, value()?)?,
                "--json" => options.json = Some(value()?.into()),
                "--levee" => options.levee = Some(value()?.into()),
                "--readme" => options.readme = Readme::Rewrite,
                "--quick" => {
                    options.extent = Extent::Quick;
                    options.rounds = 1;
                }
                "--profile" => {
                    options.only = vec![value()?.clone()];
                    options.servers = vec![OURS.to_owned()];
                    options.extent = Extent::Profile;
                }
                other => return Err(wrong(format!("no option `{other}`"))),
            }
        }
        Ok(options)
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|one| one.trim().to_owned()).collect()
}

fn number<T: std::str::FromStr + PartialOrd + From<u8>>(
    name: &str,
    text: &str,
) -> Result<T, Failure> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| wrong(format!("{name} takes a number from 1, not `{text}`")))
}

fn wrong(what: String) -> Failure {
    Failure::Unexpected {
        story: format!("{what}\n\n{HELP}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Failure> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&arguments)
    }

    #[test]
    fn options_are_read_and_the_rest_is_default() {
        let options = read("--only hot_1k,redirect --rounds 3 --json a.json").unwrap();
        assert_eq!(options.only, ["hot_1k", "redirect"]);
        assert_eq!((options.rounds, options.seconds), (3, 1));
        assert_eq!(options.json, Some("a.json".into()));
        assert_eq!(read("").unwrap(), Options::default());
        assert_eq!(read("--quick").unwrap().rounds, 1);
        let profile = read("--profile hot_1k --seconds 5").unwrap();
        assert_eq!(profile.extent, Extent::Profile);
        assert_eq!(
            (profile.only, profile.servers),
            (vec!["hot_1k".to_owned()], vec![OURS.to_owned()])
        );
    }

    #[test]
    fn mistakes_are_told_with_the_way_out() {
        for line in ["--rounds", "--rounds 0", "--seconds x", "--fast"] {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains("cargo xtask bench peers"), "{text}");
        }
    }
}
