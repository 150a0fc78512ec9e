//! What came of a replay: sentences for people, JSON for programs.

mod json;

use std::fmt;
use std::path::PathBuf;

use levee_observe::{Calendar, words};
use levee_sim::replay::Outcome;
use levee_vocab::{ByteRate, Timestamp};

use super::line::Flaw;
use super::scan::Seen;
use super::source::Place;

/// Everything that is told.
#[derive(Clone, Debug)]
pub struct Report {
    /// The logs.
    pub logs: Vec<PathBuf>,
    /// Their lines.
    pub lines: Lines,
    /// The first Unix second.
    pub start: u64,
    /// The last Unix second.
    pub end: u64,
    /// The link of the site.
    pub link: ByteRate,
    /// Links of its neighbours.
    pub neighbours: Vec<ByteRate>,
    /// What the logs say by themselves.
    pub seen: Seen,
    /// How they fared with no neighbour, with the first, with the first two, and so on.
    pub outcomes: Vec<Outcome>,
}

/// How many lines there were, and what became of them.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// All but empty ones.
    pub read: u64,
    /// Not understood.
    pub broken: u64,
    /// The first of them.
    pub first_broken: Option<Broken>,
    /// Understood, but no visits.
    pub left_out: u64,
    /// More than an hour late, or years ahead.
    pub astray: u64,
}

/// A line that was not understood.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Where.
    pub place: Place,
    /// Why.
    pub flaw: Flaw,
    /// How it begins, escaped.
    pub beginning: String,
}

/// Hot spots that are told to people.
const HOT_TOLD: usize = 5;

impl Lines {
    /// Why there is nothing to play.
    pub fn why_nothing(&self, logs: &[PathBuf]) -> String {
        let logs: Vec<_> = logs.iter().map(|log| log.display().to_string()).collect();
        let logs = logs.join(" ");
        match &self.first_broken {
            None if self.read == 0 => format!("there is no line in {logs}"),
            None => format!("there is no visit in {logs}, only what rescue servers fetched"),
            Some(broken) => format!(
                "no line of {logs} is one of an access log; the first, `{}`: {}. The combined \
                 format and JSON with time, target and size are known",
                broken.beginning, broken.flaw
            ),
        }
    }
}

impl Report {
    /// How many neighbours are enough, if any number of those is.
    pub fn neighbours_needed(&self) -> Option<usize> {
        self.outcomes.iter().position(Outcome::has_survived)
    }

    fn unix(&self, at: Timestamp) -> u64 {
        self.start + at.as_nanoseconds() / 1_000_000_000
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logs: Vec<_> = self
            .logs
            .iter()
            .map(|log| log.display().to_string())
            .collect();
        writeln!(
            f,
            "{}: {} of {}, {} to {} UTC.",
            logs.join(" "),
            counted(self.seen.requests, "request"),
            words::bytes(self.seen.bytes),
            date(self.start),
            date(self.end)
        )?;
        let lines = &self.lines;
        if let Some(broken) = &lines.first_broken {
            writeln!(
                f,
                "{} could not be read; the first is line {} of {}: {}.",
                counted(lines.broken, "line"),
                broken.place.line,
                broken.place.log.display(),
                broken.flaw
            )?;
        }
        if lines.left_out > 0 {
            writeln!(
                f,
                "{} left out: rescue servers that fetched, visitors that were redirected.",
                counted(lines.left_out, "line")
            )?;
        }
        if lines.astray > 0 {
            writeln!(
                f,
                "{} left out: more than an hour behind the others, or years ahead.",
                counted(lines.astray, "line")
            )?;
        }
        let busiest = &self.seen.busiest;
        writeln!(
            f,
            "The busiest second, {}: {} for {} with their packets, {} of a link of {}.",
            date(self.start + busiest.number),
            counted(busiest.requests, "request"),
            words::bytes(busiest.link_bytes),
            words::percent(busiest.link_bytes as f64 / self.link.as_bytes() as f64),
            self.link
        )
    }

    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.neighbours.len() as u64;
        match self.neighbours_needed() {
            Some(0) => writeln!(f, "The site would have survived alone."),
            Some(needed) => writeln!(
                f,
                "The site would have survived with {}, not with fewer.",
                counted(needed as u64, "neighbour")
            ),
            None => writeln!(
                f,
                "The site would not have survived, not even with {}.",
                counted(most, "neighbour")
            ),
        }
    }

    /// What happens with the first `count` neighbours.
    fn case(&self, f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
        let outcome = &self.outcomes[count];
        match count {
            0 => write!(f, "Alone: ")?,
            1 => write!(f, "With 1 neighbour ({}): ", self.neighbours[0])?,
            _more => write!(f, "With {count} neighbours: ")?,
        }
        match (outcome.worst, outcome.overloaded_from) {
            (Some(worst), Some(from)) => write!(
                f,
                "overloaded in {}, the first at {}; in the worst, {}, {} of the requests come to \
                 nothing.",
                counted(outcome.minutes_overloaded, "minute"),
                date(self.unix(from)),
                date(self.unix(worst.from)),
                words::percent(worst.lost_share())
            )?,
            (None, _) | (_, None) if outcome.refused + outcome.failed > 0 => write!(
                f,
                "{} of {} come to nothing, never more than 10 % in a minute.",
                words::count(outcome.refused + outcome.failed),
                counted(outcome.requests, "request"),
            )?,
            (None, _) | (_, None) => write!(f, "every request is answered within 7 s.")?,
        }
        if let (Some(from), Some(until)) = (outcome.redirected_from, outcome.redirected_until) {
            write!(
                f,
                " It redirects from {} on, {}, the last at {}.",
                date(self.unix(from)),
                counted(outcome.redirects, "request"),
                date(self.unix(until))
            )?;
        }
        writeln!(f)
    }

    fn cases(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.neighbours_needed().unwrap_or(self.neighbours.len());
        for count in 0..=last {
            self.case(f, count)?;
        }
        // Who survives alone may still be helped.
        if last == 0 && self.outcomes.get(1).is_some_and(|one| one.redirects > 0) {
            self.case(f, 1)?;
        }
        Ok(())
    }

    fn hot_spots(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seen.hot.is_empty() {
            return writeln!(f, "No resource became hot.");
        }
        writeln!(
            f,
            "A resource became worth copying {}; the first:",
            counted(self.seen.hot_count, "time")
        )?;
        for spot in self.seen.hot.iter().take(HOT_TOLD) {
            write!(
                f,
                "  {}  {}",
                date(self.start + spot.copy_at),
                spot.path.escape_debug()
            )?;
            match spot.redirect_at {
                Some(at) => writeln!(f, ", worth redirecting at {}", date(self.start + at))?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        writeln!(f)?;
        self.answer(f)?;
        self.cases(f)?;
        writeln!(
            f,
            "A minute is overloaded when more than 10 % of its requests are not answered in 7 s."
        )?;
        writeln!(f)?;
        self.hot_spots(f)
    }
}

/// `1995-08-01 13:14:15`, UTC.
pub fn date(unix: u64) -> String {
    Calendar::of(unix)
        .rfc3339()
        .replace('T', " ")
        .replace('Z', "")
}

/// `1 line`, `2 lines`.
fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", words::count(number))
}
