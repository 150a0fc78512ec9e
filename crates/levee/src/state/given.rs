//! What was given to others in the last day, over a restart: a line for each origin and hour.
//!
//! The file tells by the calendar when each line is forgotten, because the machine's own clock may
//! begin anew. A calendar that was set back keeps a line for 25 hours at most.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use levee_control::GivenRecord;

use super::{StateError, StateFolder};

const FILE: &str = "given";
const HEADER: &str = "# levee given 1: forgotten-at bytes origin";

/// In place of a name: all origins that are not told apart.
const OTHERS: &str = "-";

impl StateFolder {
    /// What a run before this one gave and what still counts at `now`.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged. A missing file is an empty list.
    pub fn given(&self, now: SystemTime) -> Result<Vec<GivenRecord>, StateError> {
        let now = seconds(now);
        let records = self.entries(FILE, |line| parse(line, now))?;
        let counts = |record: &GivenRecord| !record.left.is_zero();
        Ok(records.into_iter().filter(counts).collect())
    }

    /// Writes what was given, as it counts at `now`, and again later where it cannot be written.
    /// Blocks for two disk flushes.
    ///
    /// # Errors
    /// When the disk is full or the folder is gone; the old list is still there then.
    pub fn remember_given(
        &self,
        records: &[GivenRecord],
        now: SystemTime,
    ) -> Result<(), StateError> {
        let now = seconds(now);
        let mut text = format!("{HEADER}\n");
        for GivenRecord {
            origin,
            bytes,
            left,
        } in records
        {
            let until = now.saturating_add(left.as_secs());
            let origin = origin.as_ref().map_or(OTHERS, |origin| origin.as_str());
            text.push_str(&format!("{until} {bytes} {origin}\n"));
        }
        self.keep(FILE, &text)
    }
}

/// Seconds since 1970; a clock before that is wrong, and so is what it says.
fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

pub(super) fn parse(line: &str, now: u64) -> Option<GivenRecord> {
    let mut words = line.split(' ');
    let until: u64 = words.next()?.parse().ok()?;
    let bytes = words.next()?.parse().ok()?;
    let origin = match words.next()? {
        OTHERS => None,
        origin => Some(origin.parse().ok()?),
    };
    words.next().is_none().then_some(GivenRecord {
        origin,
        bytes,
        left: Duration::from_secs(until.saturating_sub(now)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(origin: Option<&str>, hours: u64) -> GivenRecord {
        GivenRecord {
            origin: origin.map(|origin| origin.parse().expect("a good name")),
            bytes: 7_000_000,
            left: Duration::from_hours(hours),
        }
    }

    #[test]
    fn what_was_given_counts_until_its_day_is_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(folder.path()).expect("the folder is there");
        let now = UNIX_EPOCH + Duration::from_hours(500_000);
        assert_eq!(state.given(now).expect("nothing yet"), vec![]);
        let records = [record(Some("www.example.org"), 3), record(None, 20)];
        state
            .remember_given(&records, now)
            .expect("room on the disk");
        assert_eq!(state.given(now).expect("two lines"), records);
        let later = now + Duration::from_hours(5);
        let left = state.given(later).expect("two lines");
        assert_eq!(left, [record(None, 15)]);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(folder.path()).expect("the folder is there");
        std::fs::write(folder.path().join(FILE), "5 many www.example.org\n").expect("written");
        let error = state.given(UNIX_EPOCH).expect_err("no number").to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
