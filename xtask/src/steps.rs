//! A run of many steps: what is running, how long each took, and a closing line that machines read.

use std::time::{Duration, Instant};

use crate::command::Failure;

/// What came of the steps so far.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

impl Steps {
    /// Runs one step, whatever came of those before it, so that one run shows every fault.
    /// Returns whether it passed.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<(), Failure>) -> bool {
        println!("\n==> {name}");
        let start = Instant::now();
        let failure = work().err().map(|failure| failure.to_string());
        let took = start.elapsed();
        match &failure {
            None => println!("<== {name}: ok, {:.1} s", took.as_secs_f64()),
            Some(text) => println!("<== {name}: FAILED, {:.1} s: {text}", took.as_secs_f64()),
        }
        let passed = failure.is_none();
        self.done.push(Done {
            name,
            took,
            failure,
        });
        passed
    }

    /// Notes a step that cannot run because of an earlier failure; it counts as failed.
    pub fn skip(&mut self, name: &'static str, because: &str) {
        println!("\n==> {name}\n<== {name}: NOT RUN, {because}");
        self.done.push(Done {
            name,
            took: Duration::ZERO,
            failure: Some(format!("not run, {because}")),
        });
    }

    /// Prints all steps and the closing line; fails when any step did.
    pub fn close(self) -> Result<(), Failure> {
        print!("{}", self.summary());
        match self.failed() {
            0 => Ok(()),
            failed => Err(Failure::Steps { failed }),
        }
    }

    fn failed(&self) -> usize {
        self.done.iter().filter(|one| one.failure.is_some()).count()
    }

    fn summary(&self) -> String {
        let mut text = String::from("\n");
        for one in &self.done {
            let result = one.failure.as_deref().unwrap_or("ok");
            text.push_str(&format!(
                "{:>8.1} s  {:<20} {result}\n",
                one.took.as_secs_f64(),
                one.name
            ));
        }
        let failed = self.failed();
        text.push_str(&format!(
            "{} passed, {failed} failed\n",
            self.done.len() - failed
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_what_passed_and_what_failed() {
        let mut steps = Steps::default();
        assert!(steps.step("good", || Ok(())));
        assert!(!steps.step("bad", || Err(Failure::NoWorkspace)));
        steps.skip("late", "the build failed");
        assert!(steps.summary().ends_with("\n1 passed, 2 failed\n"));
        assert!(matches!(steps.close(), Err(Failure::Steps { failed: 2 })));
    }
}
