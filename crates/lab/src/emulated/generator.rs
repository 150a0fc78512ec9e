//! The visitors of an experiment: a process of its own on an emulated host.
//!
//! It reads a [`LoadPlan`] from its standard input and prints one [`Event`] a line. The load is an
//! open loop: a visit begins when it is due, whatever became of the others, and a request's time
//! counts from the moment at which it was meant to be asked. So nothing is omitted that a slow
//! server would have held up. Every body is compared with the file that it should be.
//!
//! It is not a general benchmark: rates and times are bounded by the plan, and it can reach no
//! server but those that the plan names.

mod play;
mod tally;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LabError;
use super::network::Host;
use crate::crowd::client::{Following, Protocol};

pub use tally::{RequestFigures, SecondFigures, ServerFigures, StepFigures};

/// All that a load is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Name of the site that is asked first.
    pub site: String,
    /// Domains and the hosts behind them.
    pub names: BTreeMap<String, IpAddr>,
    /// Who resolves the site's name; none where `names` has it for all.
    pub resolvers: Option<ResolverPlan>,
    /// Folder with the files that the site has.
    pub files: PathBuf,
    /// What visitors call themselves.
    pub agent: String,
    /// What is done with redirects.
    pub following: Following,
    /// How servers are spoken to.
    pub protocol: Protocol,
    /// Files with the certificate authorities that visitors believe. Where there are any, the site
    /// is asked by HTTPS.
    pub authorities: Vec<PathBuf>,
    /// Request rates, one after the other.
    pub steps: Vec<Step>,
    /// When it is enough.
    pub until: Until,
    /// Every how many requests one is told with its time, for plots of single responses; 0 tells
    /// none.
    pub tell_every: u32,
    /// Whether each request is told with what it was for.
    pub log: Log,
}

/// Caching resolvers between the visitors and a name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolverPlan {
    /// The name server.
    pub server: SocketAddr,
    /// How many resolvers; visitors are divided among them.
    pub count: usize,
}

/// Whether each request is told with what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Log {
    /// No.
    Nothing,
    /// Yes, in [`SecondFigures::requests`].
    Requests,
}

/// A request rate for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Requests a second.
    pub rate: f64,
    /// How long.
    pub seconds: f64,
    /// What is asked for.
    pub wants: Wants,
}

/// What visitors want.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wants {
    /// These paths in turn, each over a connection of its own.
    Files(Vec<String>),
    /// One path, so many times over one connection.
    Session {
        /// The path.
        path: String,
        /// Requests of a connection.
        requests: u32,
    },
    /// One of these paths at random, so many times, with a random pause before each next one: a
    /// client that stays. The step's rate then says how often one arrives.
    Client {
        /// Clients that come at the step's rate.
        slowly: u32,
        /// Clients that come after them, eight times as fast.
        fast: u32,
        /// The paths.
        paths: Vec<String>,
        /// Requests of a client.
        requests: u32,
        /// Longest pause, in seconds.
        pause_max: f64,
        /// Seconds after which it has had enough, however many are left.
        stay_max: f64,
    },
    /// HEAD and GET of a page and GET of its preview's image, each over a connection of its own, as
    /// servers of the fediverse do.
    Preview {
        /// The page's path.
        path: String,
    },
    /// A page and then its images: over up to two connections to each server, or by HTTP/2 all at
    /// once over one.
    Page {
        /// Its path.
        path: String,
        /// Requests that it takes, the page's own among them.
        requests: u32,
    },
}

/// What visitors call themselves where that makes no difference.
pub const AGENT: &str = "levee-lab";

/// When a load is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After its last step.
    Done,
    /// After the first step of which more than 10 % were not answered in 7 s: the papers' rule, for
    /// steps that are long.
    Overloaded,
    /// As soon as answers are more than 10 % behind requests. In a short step seven seconds' worth
    /// of requests can wait without failing, and would fail if it went on.
    Behind,
}

/// What happens while a load is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A step begins.
    Began {
        /// Its number, from 0.
        step: usize,
        /// Its request rate.
        rate: f64,
    },
    /// A second is over.
    Second(SecondFigures),
    /// A step is over, and so are its requests.
    Ended(StepFigures),
}

impl Wants {
    /// Requests that a visit offers when it begins; a client that stays offers each when it asks.
    pub fn offered(&self) -> u32 {
        match self {
            Self::Client { .. } => 0,
            Self::Files(_) | Self::Session { .. } | Self::Preview { .. } | Self::Page { .. } => {
                self.requests()
            }
        }
    }

    /// Requests of one visit.
    pub fn requests(&self) -> u32 {
        match self {
            Self::Files(_) => 1,
            Self::Preview { .. } => 3,
            Self::Session { requests, .. }
            | Self::Client { requests, .. }
            | Self::Page { requests, .. } => *requests,
        }
    }
}

/// How much faster the later clients come.
pub const HASTE: f64 = 8.0;

impl Step {
    /// How many visits it has.
    pub fn visits(&self) -> u32 {
        match &self.wants {
            Wants::Client { slowly, fast, .. } => slowly + fast,
            Wants::Files(_)
            | Wants::Session { .. }
            | Wants::Preview { .. }
            | Wants::Page { .. } => (self.seconds / self.gap()).round() as u32,
        }
    }

    /// When one of them is due, since the step began.
    pub fn due(&self, visit: u32) -> Duration {
        let slowly = match &self.wants {
            Wants::Client { slowly, .. } => visit.min(*slowly),
            Wants::Files(_)
            | Wants::Session { .. }
            | Wants::Preview { .. }
            | Wants::Page { .. } => visit,
        };
        let gaps = f64::from(slowly) + f64::from(visit - slowly) / HASTE;
        Duration::from_secs_f64(gaps * self.gap())
    }

    /// Seconds between two visits.
    fn gap(&self) -> f64 {
        f64::from(self.wants.requests()) / self.rate
    }
}

/// `levee-lab generate`: plays the plan on standard input.
pub fn run() -> ExitCode {
    let plan = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("levee-lab generate: cannot read the plan: {error}");
            return ExitCode::from(2);
        }
    };
    match play::play(plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("levee-lab generate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A generator at work on a host. Dropped, it is ended.
#[derive(Debug)]
pub struct Generator {
    child: Child,
}

impl Generator {
    /// Starts the program `lab` on `host` with `plan`.
    pub fn start(lab: &Path, host: &Host, plan: &LoadPlan) -> Result<Self, LabError> {
        let runner = host.runner();
        let mut child = Command::new(&runner[0])
            .args(&runner[1..])
            .arg(lab)
            .arg("generate")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::machine("start the load generator"))?;
        let stdin = child.stdin.take();
        let generator = Self { child };
        if let Some(mut stdin) = stdin {
            let text = serde_json::to_vec(plan).map_err(std::io::Error::from);
            text.and_then(|text| stdin.write_all(&text))
                .map_err(LabError::machine("tell the load generator its plan"))?;
        }
        Ok(generator)
    }

    /// Gives every event to `see`, and returns the figures of all steps.
    pub fn watch(
        mut self,
        mut see: impl FnMut(&Event) -> Result<(), LabError>,
    ) -> Result<Vec<StepFigures>, LabError> {
        let mut steps = Vec::new();
        let stdout = self.child.stdout.take();
        for line in stdout
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines())
        {
            let line = line.map_err(LabError::machine("read from the load generator"))?;
            let Ok(event) = serde_json::from_str(&line) else {
                continue;
            };
            see(&event)?;
            if let Event::Ended(figures) = event {
                steps.push(figures);
            }
        }
        let status = self.child.wait();
        match status.map_err(LabError::machine("wait for the load generator"))? {
            status if status.success() => Ok(steps),
            status => Err(LabError::Generator(status)),
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_slowly_at_first_and_then_fast() {
        let step = Step {
            rate: 5.0,
            seconds: 100.0,
            wants: Wants::Client {
                slowly: 2,
                fast: 8,
                paths: vec![],
                requests: 10,
                pause_max: 1.0,
                stay_max: 1.0,
            },
        };
        assert_eq!(step.visits(), 10);
        let due = [0, 2, 3, 10].map(|visit| step.due(visit).as_secs_f64());
        assert_eq!(due, [0.0, 4.0, 4.25, 6.0]);
    }
}
