//! `levee replay`: would this site have survived its own log, with how many neighbours, and from
//! when on would it have redirected?
//!
//! ```text
//!   logs ─▶ lines ─▶ requests in time ─┬─▶ scan: busiest second, hot spots
//!   source    line        timeline     └─▶ worlds: no neighbour, one, two ... ─▶ report
//! ```
//!
//! Everything streams: a log of ten gigabytes needs no more memory than its worst stretch. What
//! is decided in the worlds is decided by the server's own `Brain` and `Gate`
//! (`levee_sim::replay`).

pub(crate) mod line;
mod progress;
mod report;
mod scan;
mod source;
mod timeline;
mod worlds;

use std::net::{IpAddr, Ipv4Addr};

use levee_control::{GateLimits, Parameters};
use levee_sim::SiteId;
use levee_sim::replay::{ReplaySettings, Visit};
use levee_sim::site::default_parameters;
use levee_vocab::ByteRate;

use crate::command;
use crate::{explain, settings};
use line::{Flaw, LineReader, Said};
use progress::Progress;
use report::{Broken, Lines, Report};
use scan::Scan;
use source::{Source, Taken};
use timeline::{Dated, Placed, Timeline};
use worlds::Worlds;

/// Without a word about neighbours: so many, each like the site itself.
const NEIGHBOURS: usize = 5;

/// More than that no site ever asks for help (`rescue.servers_max`).
const NEIGHBOURS_MAX: usize = 16;

/// The first so many bytes of a broken line are shown.
const SHOWN_BYTES: usize = 60;

/// Reads the logs, plays them, and says what came of it.
///
/// # Errors
/// A sentence about what cannot be read or understood.
pub fn run(arguments: &command::Replay) -> Result<String, String> {
    let replay = settings_of(arguments)?;
    let mut source = Source::open(&arguments.logs)?;
    let mut play = Play::new(&replay)?;
    let mut progress = Progress::new();
    let read = play.read(&mut source, &mut progress);
    progress.clear();
    read?;
    let report = play.finish(&replay, &arguments.logs)?;
    Ok(match arguments.json {
        true => report.json(),
        false => report.to_string(),
    })
}

fn settings_of(arguments: &command::Replay) -> Result<ReplaySettings, String> {
    let mut limits = GateLimits::default();
    let origin = match &arguments.config {
        Some(path) => {
            let settings = settings::load(path);
            let settings = settings.map_err(|complaints| explain::told(path, &complaints))?;
            limits.wait_max = settings.rescue.wait_max;
            let link = link_of(arguments.link.or(settings.link.rate))?;
            settings.parameters(80, IpAddr::V4(Ipv4Addr::LOCALHOST), link)
        }
        None => default_parameters(SiteId(0), "origin", link_of(arguments.link)?),
    };
    let neighbours = match arguments.neighbours.as_slice() {
        [] => vec![origin.link; NEIGHBOURS],
        given => given.to_vec(),
    };
    if neighbours.len() > NEIGHBOURS_MAX {
        return Err(format!(
            "{} neighbours are too many: a site calls at most {NEIGHBOURS_MAX} for help",
            neighbours.len()
        ));
    }
    let origin = checked(origin)?;
    Ok(ReplaySettings {
        origin,
        limits,
        neighbours,
        seed: 1,
    })
}

fn link_of(link: Option<ByteRate>) -> Result<ByteRate, String> {
    link.ok_or_else(|| {
        "how much does the link of this site carry? Say it, e.g. --link \"10 Mbit/s\", or name a \
         settings file with link.rate by -c"
            .to_owned()
    })
}

fn checked(parameters: Parameters) -> Result<Parameters, String> {
    parameters.check().map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    })
}

/// A replay under way.
struct Play {
    reader: LineReader,
    timeline: Timeline,
    scan: Scan,
    worlds: Worlds,
    lines: Lines,
}

impl Play {
    fn new(replay: &ReplaySettings) -> Result<Self, String> {
        Ok(Self {
            reader: LineReader::default(),
            timeline: Timeline::default(),
            scan: Scan::new(replay.origin.connection_overhead),
            worlds: Worlds::start(replay)?,
            lines: Lines::default(),
        })
    }

    fn read(&mut self, source: &mut Source, progress: &mut Progress) -> Result<(), String> {
        let mut line = Vec::new();
        loop {
            let taken = source.next(&mut line)?;
            match taken {
                Taken::Nothing => return Ok(()),
                Taken::Line | Taken::Beginning => self.take(taken, &line, source)?,
            }
            progress.advance(|| source.progress());
        }
    }

    fn take(&mut self, taken: Taken, line: &[u8], source: &Source) -> Result<(), String> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.lines.read += 1;
        let said = match taken {
            Taken::Beginning => Err(Flaw::TooLong),
            Taken::Line | Taken::Nothing => self.reader.read(line),
        };
        let logged = match said {
            Ok(Said::Visit(logged)) => logged,
            Ok(Said::LeftOut) => {
                self.lines.left_out += 1;
                return Ok(());
            }
            Err(flaw) => {
                self.lines.broken += 1;
                self.lines.first_broken.get_or_insert_with(|| Broken {
                    place: source.place(),
                    flaw,
                    beginning: beginning(line),
                });
                return Ok(());
            }
        };
        let (scan, worlds) = (&mut self.scan, &mut self.worlds);
        let placed = self.timeline.place(&logged, &mut |dated| {
            pass_on(dated, scan, worlds);
        });
        match placed {
            Placed::InTime => Ok(()),
            Placed::Astray => {
                self.lines.astray += 1;
                Ok(())
            }
            Placed::Jumped(to) => Err(self.jumps(to, source)),
        }
    }

    fn jumps(&self, to: u64, source: &Source) -> String {
        let place = source.place();
        let from = self.timeline.span().map_or(0, |(_, second)| second);
        format!(
            "{} line {}: the time jumps from {} to {}; name the logs in the order of time, the \
             oldest first",
            place.log.display(),
            place.line,
            report::date(from),
            report::date(to),
        )
    }

    fn finish(
        mut self,
        replay: &ReplaySettings,
        logs: &[std::path::PathBuf],
    ) -> Result<Report, String> {
        let (scan, worlds) = (&mut self.scan, &mut self.worlds);
        self.timeline.finish(&mut |dated| {
            pass_on(dated, scan, worlds);
        });
        scan.end_second();
        let Some((start, end)) = self.timeline.span() else {
            return Err(self.lines.why_nothing(logs));
        };
        let outcomes = self.worlds.finish()?;
        Ok(Report {
            logs: logs.to_vec(),
            lines: self.lines,
            start,
            end,
            link: replay.origin.link,
            neighbours: replay.neighbours.clone(),
            seen: self.scan.seen,
            outcomes,
        })
    }
}

fn pass_on(dated: &Dated<'_>, scan: &mut Scan, worlds: &mut Worlds) {
    scan.look(dated);
    worlds.visit(Visit {
        at: dated.at,
        resource: scan::hash(dated.target),
        bytes: dated.bytes,
        redirectability: dated.redirectability,
    });
}

/// The beginning of a line, fit to be shown.
fn beginning(line: &[u8]) -> String {
    let shown = &line[..line.len().min(SHOWN_BYTES)];
    shown.escape_ascii().to_string()
}
