//! Why we do not pass what we do not pass: the table `reasons.txt`, written by hand.
//!
//! A line at the margin names tests, the indented lines below it say why for all of them. `#`
//! begins a remark.

use super::results::{Outcome, Results};
use crate::command::Failure;

/// Where the table lies, for messages.
pub const FILE: &str = "xtask/src/cache_tests/reasons.txt";
const TEXT: &str = include_str!("reasons.txt");

/// The table.
#[derive(Debug, Default)]
pub struct Reasons {
    /// In the order of the file.
    pub entries: Vec<Reason>,
}

/// One reason, and the tests that it explains.
#[derive(Debug, Default)]
pub struct Reason {
    /// Short names of the tests.
    pub ids: Vec<String>,
    /// Why they do not pass.
    pub text: String,
}

impl Reasons {
    /// The table of this repository.
    pub fn own() -> Result<Self, Failure> {
        Self::read(TEXT).map_err(|flaw| Failure::Unexpected {
            story: format!("{FILE}: {flaw}"),
        })
    }

    /// Reads a table; the flaw where it has one.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut reasons = Self::default();
        for (index, line) in text.lines().enumerate() {
            let flaw = |what: &str| Err(format!("line {}: {what}", index + 1));
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if !line.starts_with(' ') {
                let mut ids: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                match reasons.entries.last_mut() {
                    Some(last) if last.text.is_empty() => last.ids.append(&mut ids),
                    Some(_) | None => reasons.entries.push(Reason {
                        ids,
                        text: String::new(),
                    }),
                }
                continue;
            }
            let Some(last) = reasons.entries.last_mut() else {
                return flaw("a reason without a test");
            };
            if !last.text.is_empty() {
                last.text.push(' ');
            }
            last.text.push_str(line.trim());
        }
        match reasons.entries.last() {
            Some(last) if last.text.is_empty() => Err("the last tests have no reason".to_owned()),
            Some(_) | None => reasons.each_once(),
        }
    }

    fn each_once(self) -> Result<Self, String> {
        let mut ids: Vec<&String> = self.entries.iter().flat_map(|entry| &entry.ids).collect();
        ids.sort();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(format!("{} stands there twice", twice[0])),
            None => Ok(self),
        }
    }

    /// Why the test called `id` does not pass.
    pub fn of(&self, id: &str) -> Option<&str> {
        let names = |entry: &&Reason| entry.ids.iter().any(|other| other == id);
        self.entries.iter().find(names).map(|entry| &*entry.text)
    }

    /// What is not as the table says, in sentences.
    pub fn unexpected(&self, results: &Results) -> Vec<String> {
        let mut found = Vec::new();
        for test in &results.tests {
            match (test.outcome, self.of(&test.id)) {
                (Outcome::Pass, Some(_)) => {
                    found.push(format!("{} passes: take it out of the table", test.id));
                }
                (Outcome::Pass, None) => {}
                (
                    Outcome::Fail | Outcome::Setup | Outcome::Dependency | Outcome::Harness,
                    reason,
                ) => {
                    if reason.is_none() {
                        found.push(test.line());
                    }
                }
            }
        }
        for id in self.entries.iter().flat_map(|entry| &entry.ids) {
            if !results.tests.iter().any(|test| test.id == *id) {
                found.push(format!("there is no test {id}"));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_table_can_be_read() {
        Reasons::own().unwrap();
    }

    #[test]
    fn one_reason_may_stand_for_several_tests_and_run_over_lines() {
        let reasons = Reasons::read("# remark\na b\nc\n  One\n  reason.\n\nd\n  Two.\n").unwrap();
        assert_eq!(reasons.of("c"), Some("One reason."));
        assert_eq!(reasons.of("d"), Some("Two."));
        assert_eq!(reasons.of("e"), None);
    }

    #[test]
    fn a_table_with_a_gap_or_a_repetition_is_refused() {
        assert!(Reasons::read("  Why?\n").is_err());
        assert!(Reasons::read("a\n").is_err());
        assert!(Reasons::read("a\n  Yes.\nb a\n  No.\n").is_err());
    }

    #[test]
    fn what_is_not_as_the_table_says_is_told() {
        let report = "test\ta\tA\trequired\ta-1\tpass\tOne\t\n\
                      test\ta\tA\trequired\ta-2\tfail\tTwo\tAssertion: no\n";
        let results = Results::read(report).unwrap();
        let told = |table: &str| Reasons::read(table).unwrap().unexpected(&results);
        assert_eq!(told("a-2\n  So.\n"), Vec::<String>::new());
        assert_eq!(told("a-1 a-2\n  So.\n").len(), 1);
        assert_eq!(told("a-2 a-3\n  So.\n"), ["there is no test a-3"]);
        assert_eq!(told("").len(), 1);
    }
}
