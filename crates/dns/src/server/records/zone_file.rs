//! Reads the text of a zone file, and finds the line of a mistake in it.
//!
//! hickory's parser says what is wrong and not where. A zone file is read from its top, so what
//! stands above a mistake can be read by itself, and nothing that ends below it can: the first
//! record with which that fails is found by halving. What is too short to be a record it passes
//! over in silence, and a line that is lost is a name that is: so that is looked for here.

use std::collections::BTreeMap;

use hickory_proto::rr::{Name, RecordSet, RrKey};
use hickory_proto::serialize::txt::Parser;
use thiserror::Error;

/// What is wrong with a zone file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ZoneFileError {
    /// A record cannot be read.
    #[error("line {line}: {why}, in `{text}`")]
    Text {
        /// Where the record begins, from 1.
        line: usize,
        /// What is wrong.
        why: String,
        /// The line.
        text: String,
    },
    /// A line of what outlived an earlier run is none of ours.
    #[error("{place} is damaged: `{line}`; mend or delete the file")]
    Kept {
        /// Where it is kept.
        place: String,
        /// The line.
        line: String,
    },
    /// What updates put in does not all fit beside the new file, and what is left of it cannot be
    /// written down.
    #[error("what updates put in cannot be written down: {0}")]
    NotSaved(String),
    /// A name that is not the zone's.
    #[error("`{name}` does not lie in zone `{zone}`; take it out, or its last dot")]
    Foreign {
        /// The name.
        name: String,
        /// The zone.
        zone: String,
    },
    /// Without it a zone cannot be served.
    #[error(
        "zone `{zone}` needs exactly one SOA record, at its top: `@ IN SOA ns admin 1 3600 600 \
         604800 30`"
    )]
    Soa {
        /// The zone.
        zone: String,
    },
    /// Nobody would be asked.
    #[error("zone `{zone}` needs an NS record at its top, the name of this server: `@ IN NS ns`")]
    NameServer {
        /// The zone.
        zone: String,
    },
    /// A name that only leads to another cannot have records of its own.
    #[error("`{name}` has a CNAME record and others beside it; take one of them out")]
    OtherName {
        /// The name.
        name: String,
    },
}

/// Longest part of a line that is shown.
const SHOWN_MAX: usize = 80;

/// All records of `text`, whose names are below `apex` where they end without a dot.
pub(super) fn parse(apex: &Name, text: &str) -> Result<BTreeMap<RrKey, RecordSet>, ZoneFileError> {
    let read = |text: &str| Parser::new(text.to_owned(), None, Some(apex.clone())).parse();
    let ends = record_ends(text);
    let starts: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).collect();
    match read(text) {
        Ok((_, sets)) => {
            let short = |(start, end): (&usize, &usize)| is_too_short(&text[*start..*end]);
            match starts.iter().zip(&ends).position(short) {
                Some(nth) => Err(mistake(text, starts[nth], "is no whole record")),
                None => Ok(sets),
            }
        }
        Err(error) => {
            let good = ends.partition_point(|&end| read(&text[..end]).is_ok());
            Err(mistake(text, starts[good], &error.to_string()))
        }
    }
}

/// A mistake in the record that begins behind `start`.
fn mistake(text: &str, start: usize, why: &str) -> ZoneFileError {
    let rest = text[start..].lines();
    let skipped = rest.take_while(|line| line.trim().is_empty()).count();
    let line = text[..start].lines().count() + skipped;
    let shown = text.lines().nth(line).unwrap_or_default().trim();
    ZoneFileError::Text {
        line: line + 1,
        why: why.to_owned(),
        text: shown.chars().take(SHOWN_MAX).collect(),
    }
}

/// Whether a record lacks its type or what it says.
fn is_too_short(record: &str) -> bool {
    let words = record.split_once(';').map_or(record, |(words, _)| words);
    let count = words.split_whitespace().count();
    // A name that is not given is that of the record before.
    let needed = if words.starts_with(char::is_whitespace) {
        2
    } else {
        3
    };
    count > 0 && !words.starts_with('$') && count < needed
}

/// Where records end: behind each line with which all brackets and quotes are closed.
fn record_ends(text: &str) -> Vec<usize> {
    let (mut ends, mut end) = (vec![], 0);
    let (mut depth, mut is_quoted) = (0_u32, false);
    for line in text.split_inclusive('\n') {
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => drop(letters.next()),
                '"' => is_quoted = !is_quoted,
                ';' if !is_quoted => break,
                '(' if !is_quoted => depth += 1,
                ')' if !is_quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        end += line.len();
        if depth == 0 && !is_quoted {
            ends.push(end);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "$TTL 30\n; ( a comment \"\n@ IN SOA ns admin (\n 1 60 30 ; serial\n 3600 5 \
        )\n\n@ IN NS ns\nns IN A 192.0.2.53\nnote IN TXT \"a ( and ; b\"\n";

    fn told(text: &str) -> (usize, String) {
        let apex = Name::from_ascii("example.org.").unwrap();
        let ZoneFileError::Text { line, text, .. } = parse(&apex, text).unwrap_err() else {
            panic!("not a mistake in the text");
        };
        (line, text)
    }

    #[test]
    fn a_mistake_is_told_with_the_line_where_its_record_begins() {
        for bad in [
            "www IN A 192.0.2",
            "nonsense",
            "www IN ; and nothing",
            "www IN NONSENSE 1",
            "www IN MX ten mail",
            "www IN A (",
            "www IN TXT \"never closed",
        ] {
            let end = "\nmail IN A 192.0.2.7\nx IN A 192.0.2.8\n";
            let (line, text) = told(&format!("{TOP}{bad}{end}"));
            assert_eq!((line, text.as_str()), (10, bad));
            assert_eq!(told(&format!("{TOP}\n\n{bad}")).0, 12, "{bad}");
        }
        assert_eq!(told("www IN A 192.0.2\n").0, 1);
    }

    #[test]
    fn a_mistake_at_the_end_of_a_long_file_is_told_as_well() {
        let mut text = TOP.to_owned();
        for number in 0..2000 {
            text.push_str(&format!("host{number} IN A 192.0.2.1\n"));
        }
        text.push_str("last IN A nowhere\n");
        assert_eq!(told(&text), (2010, "last IN A nowhere".into()));
    }
}
