//! Who is a member of a closed community: what the authority signs.
//!
//! A readable text, a line a member, so that people can look at it and keep it under version
//! control:
//!
//! ```text
//! # levee member list 1
//! community: mutual-aid.example
//! serial: 3
//! issued: 2026-11-21T16:53:20Z
//! expires: 2027-02-19T16:53:20Z
//! member: registry.example.net registry ed25519:…
//! member: www.example.org site ed25519:…
//! expelled: www.example.com ed25519:… it altered pages
//! ```
//!
//! Those that were expelled stay in it with the reason, so that everybody can read why. The
//! signature, and the text that it covers, are the business of [`crate::SignedList`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use levee_vocab::HostName;
use thiserror::Error;

use crate::{PublicKey, UnixMillis};

/// The members of a community at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberList {
    /// The community's name.
    pub community: HostName,
    /// Grows with each list that is signed; a list with a smaller one is worth nothing any more.
    pub serial: u64,
    /// When it was signed.
    pub issued: UnixMillis,
    /// Nobody is a member by it from then on.
    pub expires: UnixMillis,
    members: BTreeMap<HostName, Member>,
    expelled: Vec<Expelled>,
}

/// One member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it may do.
    pub role: Role,
    /// How it is known.
    pub key: PublicKey,
}

/// What a member is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Asks for help and helps.
    Site,
    /// Keeps the sites' offers.
    Registry,
}

/// Somebody who was thrown out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expelled {
    /// Under which name it was a member.
    pub name: HostName,
    /// With which key.
    pub key: PublicKey,
    /// Why, for people: one line.
    pub reason: String,
}

/// The list holds as many as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the list holds {MEMBERS_MAX} members already")]
pub struct ListFull;

impl MemberList {
    /// A list without members, not signed yet.
    pub const fn new(community: HostName) -> Self {
        Self {
            community,
            serial: 0,
            issued: UnixMillis(0),
            expires: UnixMillis(0),
            members: BTreeMap::new(),
            expelled: Vec::new(),
        }
    }

    /// The next list: the same members, one serial later, valid from `now` for `life`.
    #[must_use]
    pub fn renewed(mut self, now: UnixMillis, life: Duration) -> Self {
        self.serial = self.serial.saturating_add(1);
        // Dates are written in whole seconds, and a list reads as it was written.
        self.issued = now.whole_seconds();
        self.expires = now.after(life).whole_seconds();
        self
    }

    /// Adds a member, or gives it another key or role. Who was expelled with this key is
    /// forgiven.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add(&mut self, name: HostName, member: Member) -> Result<(), ListFull> {
        if self.members.len() >= MEMBERS_MAX && !self.members.contains_key(&name) {
            return Err(ListFull);
        }
        self.expelled.retain(|one| one.key != member.key);
        self.members.insert(name, member);
        Ok(())
    }

    /// Takes a member off the list; gives what it was.
    pub fn remove(&mut self, name: &HostName) -> Option<Member> {
        self.members.remove(name)
    }

    /// Takes a member off the list and says why to everybody; gives what it was. Of the reason, as
    /// much is kept as fits a line.
    pub fn expel(&mut self, name: &HostName, reason: &str) -> Option<Member> {
        let member = self.members.remove(name)?;
        let (name, key) = (name.clone(), member.key);
        let reason = one_line(reason);
        self.expelled.push(Expelled { name, key, reason });
        // The oldest have long been forgotten by everybody.
        if self.expelled.len() > MEMBERS_MAX {
            self.expelled.remove(0);
        }
        Some(member)
    }

    /// The members, by name.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&HostName, &Member)> {
        self.members.iter()
    }

    /// The member of this name.
    pub fn member(&self, name: &HostName) -> Option<&Member> {
        self.members.get(name)
    }

    /// Those that were expelled, in the order in which that happened.
    pub fn expelled(&self) -> &[Expelled] {
        &self.expelled
    }
}

impl Role {
    /// `site` or `registry`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Registry => "registry",
        }
    }
}

/// A role is `site` or `registry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a role is `site` or `registry`")]
pub struct NotARole;

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        match text {
            "site" => Ok(Self::Site),
            "registry" => Ok(Self::Registry),
            _ => Err(NotARole),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What is signed: every line with its end.
impl fmt::Display for MemberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{LIST_HEADER}")?;
        writeln!(f, "community: {}", self.community)?;
        writeln!(f, "serial: {}", self.serial)?;
        writeln!(f, "issued: {}", self.issued)?;
        writeln!(f, "expires: {}", self.expires)?;
        for (name, Member { role, key }) in &self.members {
            writeln!(f, "member: {name} {role} {key}")?;
        }
        for Expelled { name, key, reason } in &self.expelled {
            writeln!(f, "expelled: {name} {key} {reason}")?;
        }
        Ok(())
    }
}

/// Printable characters only, one space between words, not too many.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
    line.join(" ")
        .chars()
        .take(REASON_MAX)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// First line of each list.
pub(crate) const LIST_HEADER: &str = "# levee member list 1";
/// Most members of a community, and most that a list remembers as expelled.
pub const MEMBERS_MAX: usize = 10_000;
/// Most characters of the reason of an expulsion.
pub const REASON_MAX: usize = 200;
