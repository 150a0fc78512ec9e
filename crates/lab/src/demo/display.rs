//! Progress in the terminal: a few lines that are redrawn in place, or a plain line now and then
//! where the output is not a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::neighbourhood::LINK;
use crate::crowd::ledger::Progress;

/// Shows [`Scene`]s.
#[derive(Debug)]
pub struct Display {
    manner: Manner,
    drawn_lines: usize,
    last_plain: Option<Instant>,
}

/// What is to be shown now.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// What goes on, in a few words.
    pub phase: String,
    /// Time left in this phase, as far as it is known.
    pub left: Option<Duration>,
    /// The crowd at the site with the community.
    pub with: Progress,
    /// The crowd at the site alone.
    pub without: Progress,
    /// State of the origin server.
    pub state: String,
    /// d_out of the origin server.
    pub origin_rate: u64,
    /// Redirects so far.
    pub redirects: u64,
    /// Rescue servers by name, with D_redi in bytes a second.
    pub rescue_servers: Vec<(String, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Redraw,
    Plain,
}

/// Between plain lines.
const PLAIN_PERIOD: Duration = Duration::from_secs(5);
const BAR_WIDTH: usize = 30;

impl Display {
    /// For standard output, as it is.
    pub fn new() -> Self {
        let manner = if io::stdout().is_terminal() {
            Manner::Redraw
        } else {
            Manner::Plain
        };
        Self {
            manner,
            drawn_lines: 0,
            last_plain: None,
        }
    }

    /// Prints lines that stay.
    pub fn say(&mut self, text: &str) {
        self.wipe();
        println!("{text}");
    }

    /// Shows a scene in place of the last one.
    pub fn show(&mut self, scene: &Scene) {
        match self.manner {
            Manner::Redraw => {
                let lines = scene.lines();
                self.wipe();
                println!("{}", lines.join("\n"));
                self.drawn_lines = lines.len();
                // A terminal that is gone is not worth ending the demo for.
                let _ = io::stdout().flush();
            }
            Manner::Plain => {
                let due = self
                    .last_plain
                    .is_none_or(|last| last.elapsed() >= PLAIN_PERIOD);
                if due {
                    println!("{}", scene.line());
                    self.last_plain = Some(Instant::now());
                }
            }
        }
    }

    fn wipe(&mut self) {
        if self.drawn_lines > 0 {
            print!("\x1b[{}F\x1b[J", self.drawn_lines);
            self.drawn_lines = 0;
        }
    }
}

impl Default for Display {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    fn lines(&self) -> Vec<String> {
        let run = |name: &str, progress: &Progress| {
            format!(
                "  {name:<18}{:>9}{:>10}{:>9}{:>12.1}{:>9.1}",
                progress.offered,
                progress.answered,
                progress.failed,
                progress.answered_rate,
                progress.bytes_rate / 1000.0
            )
        };
        let left = self
            .left
            .map_or_else(String::new, |left| format!("   {} s left", left.as_secs()));
        vec![
            format!("  {}{left}", self.phase),
            format!(
                "  {:<18}{:>9}{:>10}{:>9}{:>12}{:>9}",
                "", "offered", "answered", "failed", "answered/s", "kB/s"
            ),
            run("with the community", &self.with),
            run("alone", &self.without),
            format!(
                "  origin server: {}, link {} {:.1} of {:.0} kB/s, {} redirects",
                self.state,
                bar(self.origin_rate, LINK),
                self.origin_rate as f64 / 1000.0,
                LINK as f64 / 1000.0,
                self.redirects
            ),
            format!("  rescue servers: {}", self.helpers()),
        ]
    }

    fn line(&self) -> String {
        let left = self
            .left
            .map_or_else(String::new, |left| format!(" {} s left,", left.as_secs()));
        format!(
            "{}:{left} with the community {}/{} answered, {:.0}/s; alone {}/{}, {:.0}/s; \
             origin {} at {:.1} kB/s; rescue servers: {}",
            self.phase,
            self.with.answered,
            self.with.offered,
            self.with.answered_rate,
            self.without.answered,
            self.without.offered,
            self.without.answered_rate,
            self.state,
            self.origin_rate as f64 / 1000.0,
            self.helpers()
        )
    }

    fn helpers(&self) -> String {
        if self.rescue_servers.is_empty() {
            return "none".to_owned();
        }
        let helpers: Vec<String> = self
            .rescue_servers
            .iter()
            .map(|(name, rate)| format!("{name} (up to {} kB/s)", rate / 1000))
            .collect();
        helpers.join(", ")
    }
}

fn bar(part: u64, whole: u64) -> String {
    let full = ((part as f64 / whole as f64).min(1.0) * BAR_WIDTH as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR_WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_fits_into_an_ordinary_terminal() {
        let scene = Scene {
            phase: "the crowd is here".to_owned(),
            left: Some(Duration::from_secs(38)),
            state: "sos".to_owned(),
            origin_rate: 40_100,
            redirects: 123_456,
            rescue_servers: vec![("alice".to_owned(), 360_000), ("bob".to_owned(), 306_000)],
            ..Scene::default()
        };
        for line in scene.lines() {
            assert!(line.len() <= 100, "{line}");
        }
        assert!(scene.line().contains("alice (up to 360 kB/s)"));
        assert_eq!(bar(54_000, LINK).matches('#').count(), BAR_WIDTH);
        assert_eq!(bar(99_000, LINK).matches('#').count(), BAR_WIDTH);
    }
}
