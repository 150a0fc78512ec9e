//! Whom we have forgiven, for as long as our old word could count: a text file in the state folder,
//! kept over restarts, since the community may hear our accusation from elsewhere all that time.
//!
//! One line a member: milliseconds since 1970, and its name. A pardon is forgotten when the
//! accusation that it takes back could not count any more, and the oldest goes where there are too
//! many.

use std::path::{Path, PathBuf};
use std::time::Duration;

use levee_net::Shared;
use levee_registry::ACCUSATION_LIFETIME;
use levee_vocab::HostName;

use crate::state::{Readers, StateError, entries_at, replace};

/// What was taken back. It is said for as long as the accusation would count, since a registry that
/// has heard it may be restarted, or keep it to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pardon {
    /// Who was forgiven.
    pub member: HostName,
    /// When, in milliseconds since 1970.
    pub stamp: u64,
}

/// The list. See the file header.
pub struct PardonList {
    path: Option<PathBuf>,
    pardons: Shared<Vec<Pardon>>,
}

const HEADER: &str = "# levee pardons 1: milliseconds-since-1970 member";
/// The list, in the state folder.
const FILE: &str = "pardons";
/// Pardons at most; the accusation ends by itself, too.
const PARDONS_MAX: usize = 64;

impl PardonList {
    /// Reads the list of a state folder; without one it is kept in memory only. Blocks for the
    /// disk.
    ///
    /// # Errors
    /// When the file is there and no good.
    pub fn of(state: Option<&Path>) -> Result<Self, StateError> {
        let path = state.map(|folder| folder.join(FILE));
        let pardons = path.as_deref().map(|path| entries_at(path, parse));
        let pardons = Shared::new(pardons.transpose()?.unwrap_or_default());
        Ok(Self { path, pardons })
    }

    /// Those that count at `now`, in milliseconds since 1970, the oldest first.
    pub fn at(&self, now: u64) -> Vec<Pardon> {
        self.pardons.with(|pardons| {
            shorten(pardons, now);
            pardons.clone()
        })
    }

    /// Adds a pardon; an older one of the same member goes. Blocks for the disk.
    ///
    /// # Errors
    /// When it cannot be written: then it is not added either.
    pub fn add(&self, new: Pardon) -> Result<(), String> {
        self.pardons.with(|pardons| {
            let mut longer = pardons.clone();
            longer.retain(|pardon| pardon.member != new.member);
            let now = new.stamp;
            longer.push(new);
            shorten(&mut longer, now);
            self.save(&longer)?;
            *pardons = longer;
            Ok(())
        })
    }

    fn save(&self, pardons: &[Pardon]) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut text = format!("{HEADER}\n");
        for Pardon { member, stamp } in pardons {
            text.push_str(&format!("{stamp} {member}\n"));
        }
        replace(path, &text, Readers::Everybody)
            .map_err(|error| format!("cannot write the pardons {}: {error}", path.display()))
    }
}

/// Takes away what does not count any more, and what is too many.
fn shorten(pardons: &mut Vec<Pardon>, now: u64) {
    let age = |pardon: &Pardon| Duration::from_millis(now.saturating_sub(pardon.stamp));
    pardons.retain(|pardon| age(pardon) < ACCUSATION_LIFETIME);
    let surplus = pardons.len().saturating_sub(PARDONS_MAX);
    pardons.drain(..surplus);
}

pub(super) fn parse(line: &str) -> Option<Pardon> {
    let (stamp, member) = line.split_once(' ')?;
    Some(Pardon {
        member: member.parse().ok()?,
        stamp: stamp.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOW: u64 = 1_790_000_000_000;

    fn pardon(number: u64) -> Pardon {
        Pardon {
            member: format!("www.m{number}.example").parse().expect("a name"),
            stamp: NOW + number,
        }
    }

    #[test]
    fn pardons_outlive_a_restart_for_a_day_and_are_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = || PardonList::of(Some(folder.path())).expect("readable");
        let most = PARDONS_MAX as u64;
        let list = open();
        for number in 0..=most {
            list.add(pardon(number)).expect("room on the disk");
        }
        let kept: Vec<Pardon> = (1..=most).map(pardon).collect();
        assert_eq!(open().at(NOW + most), kept);
        let again = Pardon {
            stamp: NOW + 1000,
            ..pardon(1)
        };
        list.add(again.clone()).expect("room on the disk");
        let newest = open().at(NOW + 1000);
        assert_eq!(newest.last(), Some(&again));
        assert_eq!(newest.len(), kept.len());
        let day = u64::try_from(ACCUSATION_LIFETIME.as_millis()).expect("a day");
        assert_eq!(open().at(NOW + 999 + day), [again]);
        assert_eq!(open().at(NOW + 1000 + day), []);
    }

    #[test]
    fn a_pardon_that_cannot_be_written_is_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let list = PardonList::of(Some(folder.path())).expect("readable");
        fs::create_dir(folder.path().join(FILE)).expect("a folder in the way");
        let error = list.add(pardon(1)).expect_err("nothing is written");
        assert!(error.contains("cannot write the pardons"), "{error}");
        assert_eq!(list.at(NOW), []);
    }

    #[test]
    fn a_damaged_line_is_named_and_not_guessed_at() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(FILE), "# x\n12\n").expect("written");
        let error = PardonList::of(Some(folder.path())).err();
        let told = error.expect("one word").to_string();
        assert!(told.contains("pardons line 2"), "{told}");
    }
}
