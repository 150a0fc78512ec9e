//! Who is expelled, and why: a text file in the state folder, kept over restarts.
//!
//! One line a member: name, seconds since 1970, path, and the digests that were expected and seen.
//! It is the operator's to read, and to forgive from (`levee community forgive NAME`); nobody else
//! shortens it. Bounded: beyond the limit the oldest goes, so that a flood of new names cannot
//! fill a disk.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use levee_net::Shared;
use levee_vocab::HostName;
use levee_wire::Digest;

use crate::state::{Readers, StateError, entries_at, replace};

/// One member that is expelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expelled {
    /// Its name.
    pub member: HostName,
    /// When, in seconds since 1970.
    pub since: u64,
    /// Path and query of the page that was altered.
    pub target: String,
    /// Digest of what we published; `-` where only members saw it.
    pub expected: String,
    /// Digest of what it delivered, or where it sent visitors.
    pub seen: String,
}

/// The list. See the file header.
pub struct ExpelledList {
    path: Option<PathBuf>,
    members: Shared<Vec<Expelled>>,
}

const HEADER: &str = "# levee expelled 1: member since path expected seen";
/// Most members on the list.
const EXPELLED_MAX: usize = 1024;
/// The list, in the state folder.
pub const FILE: &str = "expelled";

/// A digest as it stands in the list.
pub fn digest_text(digest: Digest) -> String {
    let mut text = String::from("sha-256:");
    for byte in digest.0 {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl ExpelledList {
    /// Reads the list of a state folder; without one it is kept in memory only. Blocks for the
    /// disk.
    ///
    /// # Errors
    /// When the file is there and no good.
    pub fn of(state: Option<&Path>) -> Result<Self, StateError> {
        let path = state.map(|folder| folder.join(FILE));
        let members = path.as_deref().map(|path| entries_at(path, parse));
        let members = Shared::new(members.transpose()?.unwrap_or_default());
        Ok(Self { path, members })
    }

    /// All of them, the oldest first.
    pub fn members(&self) -> Vec<Expelled> {
        self.members.with(|members| members.clone())
    }

    /// Their names.
    pub fn names(&self) -> Vec<HostName> {
        let names = |members: &mut Vec<Expelled>| {
            let names = members.iter().map(|expelled| expelled.member.clone());
            names.collect()
        };
        self.members.with(names)
    }

    /// Adds a member, unless it is there. Blocks for the disk.
    ///
    /// # Errors
    /// When it cannot be written; it is expelled all the same while this process runs.
    pub fn add(&self, new: Expelled) -> Result<(), String> {
        let added = self.members.with(|members| {
            let is_new = !members.iter().any(|one| one.member == new.member);
            if is_new {
                members.push(new);
                let surplus = members.len().saturating_sub(EXPELLED_MAX);
                members.drain(..surplus);
            }
            is_new
        });
        match added {
            true => self.save(),
            false => Ok(()),
        }
    }

    /// Takes a member off the list. Blocks for the disk.
    ///
    /// # Errors
    /// When it is not there, or the list cannot be written.
    pub fn forgive(&self, member: &HostName) -> Result<(), String> {
        let is_gone = self.members.with(|members| {
            let before = members.len();
            members.retain(|one| one.member != *member);
            members.len() < before
        });
        match is_gone {
            true => self.save(),
            false => Err(format!("{member} is not expelled")),
        }
    }

    fn save(&self) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut text = format!("{HEADER}\n");
        for one in self.members() {
            let Expelled {
                member,
                since,
                target,
                expected,
                seen,
            } = one;
            text.push_str(&format!("{member} {since} {target} {expected} {seen}\n"));
        }
        replace(path, &text, Readers::Everybody)
            .map_err(|error| format!("cannot write the expelled list {}: {error}", path.display()))
    }
}

pub(super) fn parse(line: &str) -> Option<Expelled> {
    let mut words = line.split(' ');
    let mut next = || words.next().filter(|word| !word.is_empty());
    let expelled = Expelled {
        member: next()?.parse().ok()?,
        since: next()?.parse().ok()?,
        target: next()?.to_owned(),
        expected: next()?.to_owned(),
        seen: next()?.to_owned(),
    };
    words.next().is_none().then_some(expelled)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn expelled(member: &str) -> Expelled {
        Expelled {
            member: member.parse().expect("a name"),
            since: 1_790_000_000,
            target: "/news?page=2".into(),
            expected: digest_text(Digest([1; 32])),
            seen: digest_text(Digest([2; 32])),
        }
    }

    #[test]
    fn the_expelled_stay_expelled_over_a_restart_until_they_are_forgiven() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = || ExpelledList::of(Some(folder.path())).expect("readable");
        let list = open();
        for name in ["www.a.example", "www.b.example", "www.a.example"] {
            list.add(expelled(name)).expect("room on the disk");
        }
        let list = open();
        let both = [expelled("www.a.example"), expelled("www.b.example")];
        assert_eq!(list.members(), both);
        list.forgive(&both[0].member).expect("it is there");
        assert!(list.forgive(&both[0].member).is_err());
        assert_eq!(open().names(), [both[1].member.clone()]);
    }

    #[test]
    fn a_damaged_line_is_named_and_not_guessed_at() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(FILE);
        fs::write(&path, "# x\nwww.a.example 12\n").expect("written");
        let error = ExpelledList::of(Some(folder.path())).err();
        let told = error.expect("two words").to_string();
        assert!(told.contains("expelled line 2"), "{told}");
    }
}
