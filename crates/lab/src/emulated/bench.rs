//! What an experiment is given to work with: programs, a folder, a form, and a voice.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::LabError;
use super::enclosure::Ground;
use super::generator::{Event, Generator, LoadPlan, SecondFigures, StepFigures, Until};
use super::network::{Host, Sent};
use super::servers::Site;

/// How long an experiment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Form {
    /// As long as the paper's.
    Full,
    /// Minutes instead of an hour, with the same verdicts.
    Compressed,
    /// Seconds: enough to see that all of it works.
    Shortest,
}

impl Form {
    /// When a search for R_max has found it: by the papers' rule where steps are long.
    pub const fn search(self) -> Until {
        match self {
            Self::Full => Until::Overloaded,
            Self::Compressed | Self::Shortest => Until::Behind,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Compressed => "compressed",
            Self::Shortest => "shortest",
        }
    }
}

/// The ground of a run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The server.
    pub levee: PathBuf,
    /// This program.
    pub lab: PathBuf,
    /// Folder and owner.
    pub ground: Ground,
    /// How long things take.
    pub form: Form,
}

/// A load as it was played.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Its steps, and what left the source's link in each.
    pub steps: Vec<(StepFigures, Sent)>,
    /// Its seconds.
    pub seconds: Vec<SecondFigures>,
    /// When it began.
    pub began: Option<Instant>,
}

/// Where a load comes from, and whose link is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// Host of the visitors.
    pub from: &'a Host,
    /// Host of the site that is asked first.
    pub source: &'a Host,
}

/// How often it is looked whether something has come about.
const LOOK: Duration = Duration::from_millis(200);

impl Bench {
    /// Says something to whoever waits.
    pub fn say(&self, text: &str) {
        eprintln!("  {text}");
    }

    /// Plays a load and tells each step; the link of the source is read before and after each.
    pub fn play(&self, route: Route<'_>, plan: &LoadPlan) -> Result<Played, LabError> {
        let generator = Generator::start(&self.lab, route.from, plan)?;
        let mut played = Played::default();
        let mut before = route.source.sent()?;
        generator.watch(|event| {
            match event {
                Event::Began { .. } => {
                    played.began.get_or_insert_with(Instant::now);
                    before = route.source.sent()?;
                }
                Event::Second(second) => played.seconds.push(second.clone()),
                Event::Ended(figures) => {
                    let sent = route.source.sent()?.since(before);
                    self.say(&told(figures, sent));
                    played.steps.push((figures.clone(), sent));
                }
            }
            Ok(())
        })?;
        Ok(played)
    }

    /// Plays two loads at the same time.
    pub fn play_both(&self, loads: [(Route<'_>, &LoadPlan); 2]) -> Result<[Played; 2], LabError> {
        let [one, other] = loads;
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| self.play(one.0, one.1));
            let second = self.play(other.0, other.1);
            let first = beside.join().expect("playing a load does not panic");
            Ok([first?, second?])
        })
    }

    /// Waits until `site` knows `wanted` neighbours whom it could ask.
    pub fn wait_for_candidates(&self, site: &Site, wanted: usize) -> Result<(), LabError> {
        const WITHIN: Duration = Duration::from_secs(30);
        let deadline = Instant::now() + WITHIN;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        loop {
            let found = runtime.block_on(site.look()).candidates.len();
            if found >= wanted {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(LabError::NoCandidates { found, wanted });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The folder of a network's hosts, `part` of an experiment.
    pub fn folder(&self, part: &str) -> PathBuf {
        self.ground.folder.join(part)
    }
}

fn told(step: &StepFigures, sent: Sent) -> String {
    format!(
        "{:>6.0} requests/s for {:.0} s: {:>6.1} answered, {:>6.1} redirected a second, \
         {:.1} % failed, median {:.0} ms, link {:.1} kB/s, {:.2} frames a request",
        step.rate,
        step.seconds,
        step.answered_rate,
        step.redirected_rate,
        step.failed_share() * 100.0,
        step.p50 * 1000.0,
        sent.bytes as f64 / step.lasted / 1000.0,
        sent.frames as f64 / (step.offered as f64).max(1.0),
    )
}

impl Played {
    /// The step with the most answers a second among those before the first that was overloaded.
    /// In a short step more than can be answered is not yet overload, for seven seconds' worth of
    /// requests may wait; so it is what was answered that counts, not what was offered.
    pub fn best(&self) -> Option<&(StepFigures, Sent)> {
        let held = self.steps.iter();
        held.take_while(|(step, _)| !step.is_overloaded())
            .max_by(|one, other| one.0.answered_rate.total_cmp(&other.0.answered_rate))
    }

    /// Share of all requests that were answered, 0 to 1.
    pub fn answered_share(&self) -> f64 {
        let sum = |count: fn(&StepFigures) -> u64| -> u64 {
            self.steps.iter().map(|(step, _)| count(step)).sum()
        };
        sum(|step| step.answered) as f64 / (sum(|step| step.offered) as f64).max(1.0)
    }

    /// Most body bytes a second that came in a step that was not overloaded: D_max.
    pub fn bytes_max(&self) -> f64 {
        let held = self.steps.iter();
        held.take_while(|(step, _)| !step.is_overloaded())
            .map(|(step, _)| step.bytes_rate)
            .fold(0.0, f64::max)
    }

    /// A point for each step: its rate, and what `of` says.
    pub fn by_rate(&self, of: impl Fn(&StepFigures, Sent) -> f64) -> Vec<(f64, f64)> {
        let steps = self.steps.iter();
        steps
            .map(|(step, sent)| (step.rate, of(step, *sent)))
            .collect()
    }
}

/// What a connection cost the source's link beside its response, as the link itself counted it.
pub fn overhead(step: &StepFigures, sent: Sent) -> f64 {
    let responses = step.redirect_bytes + step.own_bytes;
    sent.bytes.saturating_sub(responses) as f64 / (step.offered as f64).max(1.0)
}
