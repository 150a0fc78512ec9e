//! Compares what was printed with what a page shows: `...` stands for anything.
//!
//! A line `...` stands for any number of lines, `...` within a line for any characters. Spaces at
//! the ends of lines do not count.

const ANYTHING: &str = "...";

/// Whether `printed` is what `expected` shows, from its first line to its last.
pub fn matches(expected: &[String], printed: &str) -> bool {
    let lines: Vec<&str> = printed.lines().collect();
    lines_match(expected, &lines)
}

/// Whether `printed` begins with what `expected` shows; more may follow.
pub fn begins(expected: &[String], printed: &str) -> bool {
    let mut open = expected.to_vec();
    open.push(ANYTHING.to_owned());
    matches(&open, printed)
}

fn lines_match(expected: &[String], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.iter().all(|line| line.trim().is_empty()),
        Some((first, rest)) if first.trim() == ANYTHING => {
            (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..]))
        }
        Some((first, rest)) => match lines.split_first() {
            None => false,
            Some((line, others)) => line_matches(first, line) && lines_match(rest, others),
        },
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let line = line.trim_end();
    let parts: Vec<&str> = expected.trim_end().split(ANYTHING).collect();
    let [head, middle @ .., tail] = &parts[..] else {
        return parts == [line];
    };
    let Some(mut rest) = line.strip_prefix(head) else {
        return false;
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &[&str], printed: &str, answer: bool) {
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(
            matches(&expected, printed),
            answer,
            "{expected:?} against {printed:?}"
        );
    }

    #[test]
    fn dots_stand_for_anything_and_nothing_else_does() {
        check(&["a", "b"], "a\nb\n", true);
        check(&["a"], "a\nb\n", false);
        check(&["a", "..."], "a\nb\nc\n", true);
        check(&["...", "c"], "a\nb\nc\n", true);
        check(&["...", "d"], "a\nb\nc\n", false);
        check(&["took ... ms"], "took 12 ms", true);
        check(&["took ... ms"], "took 12 s", false);
        check(&["a...b...c"], "a1b2c", true);
        check(&["a...b...c"], "a1c2b", false);
        check(&["aa...aa"], "aaa", false);
    }

    #[test]
    fn a_server_may_say_more_than_the_page_shows() {
        let expected = ["ready".to_owned()];
        assert!(begins(&expected, "ready\nmore\n"));
        assert!(!begins(&expected, ""));
    }
}
