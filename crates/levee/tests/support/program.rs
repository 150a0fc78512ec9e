//! A program of ours as a process of its own, that says in one line when it is ready, and where.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Ended with the test.
pub struct Program {
    pub process: Child,
    /// The line by which it said that it is ready.
    ready: String,
    // Whoever prints to a closed pipe dies.
    _output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it, and waits for its line.
    pub fn start(command: &mut Command) -> Self {
        let command = command.env("LEVEE_LOG", "error").stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        Self {
            process,
            ready,
            _output: output,
        }
    }

    /// The number behind `mark` in the line.
    pub fn port(&self, mark: &str) -> u16 {
        let rest = self.ready.split(mark).nth(1).expect(&self.ready);
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
        digits.unwrap().parse().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
