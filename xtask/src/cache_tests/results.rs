//! What the suite found, as `report.mjs` tells it.

use std::collections::BTreeMap;

use crate::command::Failure;

/// The results of one run.
#[derive(Debug, Default)]
pub struct Results {
    /// In the suite's own order.
    pub tests: Vec<Test>,
    /// Results of others that the package carries: how many passed, by name and kind.
    pub peers: BTreeMap<String, BTreeMap<Kind, usize>>,
}

/// One test and what came of it.
#[derive(Clone, Debug)]
pub struct Test {
    /// Name of its suite.
    pub suite: String,
    /// How much it matters.
    pub kind: Kind,
    /// Its short name.
    pub id: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What it asks for, in a sentence.
    pub name: String,
    /// What was wrong, where something was.
    pub message: String,
}

/// How much a test matters, in the suite's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Right or wrong.
    Required,
    /// Better or worse.
    Optimal,
    /// So or otherwise.
    Check,
}

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed, or yes.
    Pass,
    /// Failed, or no.
    Fail,
    /// Its preparation did not come about, so the test itself was not reached.
    Setup,
    /// It means nothing, because a test that it builds on does not pass.
    Dependency,
    /// The suite itself stumbled.
    Harness,
}

impl Kind {
    /// All, in the order of how much they matter.
    pub const ALL: [Self; 3] = [Self::Required, Self::Optimal, Self::Check];

    /// As the suite spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optimal => "optimal",
            Self::Check => "check",
        }
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

impl Outcome {
    /// As `report.mjs` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Setup => "setup",
            Self::Dependency => "dependency",
            Self::Harness => "harness",
        }
    }

    fn read(text: &str) -> Option<Self> {
        let all = [
            Self::Pass,
            Self::Fail,
            Self::Setup,
            Self::Dependency,
            Self::Harness,
        ];
        all.into_iter().find(|outcome| outcome.name() == text)
    }
}

impl Test {
    /// For the terminal.
    pub fn line(&self) -> String {
        let (kind, outcome) = (self.kind.name(), self.outcome.name());
        let (id, message) = (&self.id, &self.message);
        format!("{kind:<9} {outcome:<11} {id}: {message}")
    }
}

impl Results {
    /// Reads the report.
    pub fn read(report: &str) -> Result<Self, Failure> {
        let mut results = Self::default();
        for line in report.lines() {
            if results.add(line).is_none() {
                return Err(Failure::Unexpected {
                    story: format!("a line of the report that nobody understands: {line}"),
                });
            }
        }
        match results.tests.is_empty() {
            true => Err(Failure::Unexpected {
                story: "the suite reports no test at all".to_owned(),
            }),
            false => Ok(results),
        }
    }

    fn add(&mut self, line: &str) -> Option<()> {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["test", _, suite, kind, id, outcome, name, message] => self.tests.push(Test {
                suite: suite.to_owned(),
                kind: Kind::read(kind)?,
                id: id.to_owned(),
                outcome: Outcome::read(outcome)?,
                name: name.to_owned(),
                message: message.to_owned(),
            }),
            ["peer", name, kind, count] => {
                let peer = self.peers.entry(name.to_owned()).or_default();
                peer.insert(Kind::read(kind)?, count.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// What passed in `again` has passed.
    pub fn forgive(&mut self, again: &Self) {
        for test in &mut self.tests {
            let passes = |other: &&Test| other.id == test.id && other.outcome == Outcome::Pass;
            if let Some(other) = again.tests.iter().find(passes) {
                *test = other.clone();
            }
        }
    }

    /// The tests that did not pass.
    pub fn not_passed(&self) -> impl Iterator<Item = &Test> {
        let tests = self.tests.iter();
        tests.filter(|test| test.outcome != Outcome::Pass)
    }

    /// How many tests of one kind passed, and how many there are, in one suite or in all.
    pub fn count(&self, kind: Kind, suite: Option<&str>) -> (usize, usize) {
        let is_meant =
            |test: &&Test| test.kind == kind && suite.is_none_or(|suite| suite == test.suite);
        let tests = || self.tests.iter().filter(is_meant);
        let passed = tests().filter(|test| test.outcome == Outcome::Pass);
        (passed.count(), tests().count())
    }

    /// The names of the suites, each once, in their order.
    pub fn suites(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tests.iter().map(|test| &*test.suite).collect();
        names.dedup();
        names
    }

    /// Counts for the terminal.
    pub fn table(&self) -> String {
        let mut text = format!("{:<32}", "passed of");
        for kind in Kind::ALL {
            text.push_str(&format!("{:>12}", kind.name()));
        }
        let suites = self.suites().into_iter().map(|suite| (suite, Some(suite)));
        for (name, suite) in suites.chain([("all", None)]) {
            text.push_str(&format!("\n{name:<32}"));
            for kind in Kind::ALL {
                text.push_str(&format!("{:>12}", spelt(self.count(kind, suite))));
            }
        }
        text
    }
}

/// `130 of 165`; a dash where there is nothing to count.
pub fn spelt((passed, all): (usize, usize)) -> String {
    match all {
        0 => "-".to_owned(),
        all => format!("{passed} of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "test\ta\tA\trequired\ta-1\tpass\tThe first\t\n\
                          test\ta\tA\toptimal\ta-2\tfail\tThe second\tAssertion: no\n\
                          test\tb\tB\tcheck\tb-1\tdependency\tThe third\t\n\
                          peer\tsquid\trequired\t120\n";

    #[test]
    fn a_report_is_counted_by_kind_and_suite() {
        let results = Results::read(REPORT).unwrap();
        assert_eq!(results.count(Kind::Required, None), (1, 1));
        assert_eq!(results.count(Kind::Optimal, Some("A")), (0, 1));
        assert_eq!(results.suites(), ["A", "B"]);
        assert_eq!(results.not_passed().count(), 2);
        assert_eq!(results.peers["squid"][&Kind::Required], 120);
        assert!(results.table().contains("1 of 1"));
    }

    #[test]
    fn what_passes_at_the_second_try_has_passed() {
        let mut results = Results::read(REPORT).unwrap();
        results.forgive(&Results::read(&REPORT.replace("fail", "pass")).unwrap());
        assert_eq!(results.count(Kind::Optimal, None), (1, 1));
        results.forgive(&Results::read(REPORT).unwrap());
        assert_eq!(results.count(Kind::Optimal, None), (1, 1));
    }

    #[test]
    fn an_odd_or_empty_report_is_an_error() {
        assert!(Results::read("").is_err());
        assert!(Results::read("test\tx\n").is_err());
        assert!(Results::read(&REPORT.replace("optimal", "nice")).is_err());
    }
}
