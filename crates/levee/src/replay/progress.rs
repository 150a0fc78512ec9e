//! One line on the terminal that says how far it is; nothing where there is none.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use levee_net::Clock;
use levee_observe::words;
use levee_vocab::Timestamp;

/// See the file header.
#[derive(Debug)]
pub struct Progress {
    terminal: Terminal,
    next: Timestamp,
    lines: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminal {
    There,
    Absent,
}

/// The clock is looked at once in so many lines.
const LINES: u64 = 4096;

/// Often enough to look alive.
const PERIOD: Duration = Duration::from_millis(200);

impl Progress {
    /// Nothing is shown before the first period is over.
    pub fn new() -> Self {
        Self {
            terminal: match stderr().is_terminal() {
                true => Terminal::There,
                false => Terminal::Absent,
            },
            next: Clock.now() + PERIOD,
            lines: 0,
        }
    }

    /// A line was read; `read` says how many bytes of how many.
    pub fn advance(&mut self, read: impl Fn() -> (u64, Option<u64>)) {
        self.lines += 1;
        if self.terminal == Terminal::Absent || !self.lines.is_multiple_of(LINES) {
            return;
        }
        let now = Clock.now();
        if now < self.next {
            return;
        }
        self.next = now + PERIOD;
        let (read, size) = read();
        let far = match size {
            Some(size) => {
                let share = words::percent(read as f64 / size.max(1) as f64);
                format!("{share} of {}", words::bytes(size))
            }
            None => words::bytes(read),
        };
        self.draw(&format!("{far}, {} lines", words::count(self.lines)));
    }

    /// Leaves the terminal as it was.
    pub fn clear(&self) {
        if self.terminal == Terminal::There {
            self.draw("");
        }
    }

    fn draw(&self, text: &str) {
        // Back to the margin, the text, and the rest of the line empty (ECMA-48). A terminal that
        // is gone is no reason to stop.
        let _ = write!(stderr(), "\r{text}\x1b[K");
        let _ = stderr().flush();
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
