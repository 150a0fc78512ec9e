//! What came of the tools, in rows of the table and in sentences.

use super::super::super::super::findings::{Goal, Row};
use super::words::Check;

/// What one tool was asked, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It ran.
    Ran(Named, Vec<Check>),
    /// It is not on this machine.
    Missing(Named),
}

/// One row for each tool: how many of its answers are right.
pub fn rows(answers: &[Answers]) -> Vec<Row> {
    answers.iter().map(row).collect()
}

fn row(answers: &Answers) -> Row {
    match answers {
        Answers::Missing(Named {
            program, package, ..
        }) => Row::told(&format!("{program} NOT RUN ({package})"), "answers", 0.0),
        Answers::Ran(Named { program, asked, .. }, checks) => {
            let right = checks.iter().filter(|check| check.is_right).count();
            Row::told(&format!("{program}: {asked}"), "answers", right as f64)
                .judged_by(Goal::AtLeast(checks.len() as f64))
        }
    }
}

/// One sentence for each tool: what it was asked and what it answered, in its own words where that
/// was wrong.
pub fn sentences(answers: &[Answers]) -> Vec<String> {
    let sentence = |answers: &Answers| match answers {
        Answers::Missing(Named {
            program, package, ..
        }) => format!("{program} was not run: install Debian's package {package}."),
        Answers::Ran(named, checks) => {
            let told: Vec<&str> = checks.iter().map(|check| check.told.as_str()).collect();
            format!("{}: {}.", named.program, told.join("; "))
        }
    };
    answers.iter().map(sentence).collect()
}

/// A line for each wrong answer, and for each tool that is not there.
pub fn complaints(answers: &[Answers]) -> Vec<String> {
    let lines = |one: &Answers| match one {
        Answers::Missing(_) => sentences(std::slice::from_ref(one)),
        Answers::Ran(named, checks) => {
            let wrong = checks.iter().filter(|check| !check.is_right);
            let line = |check: &Check| format!("{}: {}", named.program, check.told);
            wrong.map(line).collect()
        }
    };
    answers.iter().flat_map(lines).collect()
}

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The program.
    pub program: &'static str,
    /// Debian's package with it.
    pub package: &'static str,
    /// What it is asked, in few words.
    pub asked: &'static str,
}

/// Asks BIND.
pub const DIG: Named = Named {
    program: "dig",
    package: "bind9-dnsutils",
    asked: "the name and the zone's serial",
};
/// Changes records in BIND.
pub const NSUPDATE: Named = Named {
    program: "nsupdate",
    package: "bind9-dnsutils",
    asked: "with and without key",
};
/// Looks at certificates.
pub const OPENSSL: Named = Named {
    program: "openssl",
    package: "openssl",
    asked: "chains and names",
};
/// Follows redirects.
pub const CURL: Named = Named {
    program: "curl",
    package: "curl",
    asked: "a redirect, every byte",
};
/// Shows a page.
pub const CHROMIUM: Named = Named {
    program: "chromium",
    package: "chromium",
    asked: "a redirect, a page",
};

#[cfg(test)]
mod tests {
    use super::super::super::super::super::findings::Verdict;
    use super::super::words::Said;
    use super::*;

    #[test]
    fn rows_are_short_and_lines_below_tell_what_was_wrong() {
        let check = |is_right| Check::of("A", "alone", is_right, &Said::default());
        let all = [DIG, NSUPDATE, OPENSSL, CURL, CHROMIUM];
        for row in rows(&all.map(|named| Answers::Ran(named, vec![check(true)]))) {
            assert!(format!("{}, {}", row.name, row.unit).len() <= 44, "{row:?}");
        }
        let answers = [
            Answers::Ran(DIG, vec![check(true), check(false)]),
            Answers::Missing(CURL),
        ];
        let verdicts = rows(&answers).into_iter().map(|row| row.verdict);
        assert_eq!(
            verdicts.collect::<Vec<_>>(),
            [Verdict::Missed, Verdict::Told]
        );
        let not_run = "curl was not run: install Debian's package curl.";
        assert_eq!(
            complaints(&answers),
            ["dig: A FAILED, it said: nothing", not_run]
        );
        assert_eq!(
            sentences(&answers),
            ["dig: A: alone; A FAILED, it said: nothing.", not_run]
        );
    }
}
