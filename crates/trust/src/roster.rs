//! Who somebody is, by the newest list.
//!
//! [`Membership`] is what the shell keeps: open, or closed with a [`Roster`]. A roster begins
//! without a list when a site is new, and then knows nobody; lists come in with
//! [`Roster::take`], and only ever newer ones.

use std::collections::BTreeMap;

use levee_vocab::HostName;
use thiserror::Error;

use crate::stamp::CLOCK_SKEW_MAX;
use crate::{ListError, Member, PublicKey, Role, SignedList, UnixMillis};

/// Whether the community takes anybody.
#[derive(Clone, Debug)]
pub enum Membership {
    /// It does (M1, open): inside one organisation.
    Open,
    /// It takes those that its authority has signed for (M1, closed).
    Closed(Box<Roster>),
}

/// The newest member list of an authority, ready to be asked.
#[derive(Clone, Debug)]
pub struct Roster {
    authority: PublicKey,
    newest: Option<SignedList>,
    names: BTreeMap<PublicKey, HostName>,
}

/// Why somebody is no member.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotAMember {
    /// We have no list at all.
    #[error("no member list yet: a registry hands it out, or a file of the authority")]
    NoList,
    /// Our list has expired.
    #[error("our member list has expired on {0}: the authority must renew it")]
    ListExpired(UnixMillis),
    /// Our list is of the future.
    #[error("our member list was issued on {0}, which is in the future: this clock is wrong")]
    ListNotYetValid(UnixMillis),
    /// It was thrown out.
    #[error("{name} was expelled: {reason}")]
    Expelled {
        /// Under which name it was a member.
        name: HostName,
        /// What the authority said.
        reason: String,
    },
    /// Nobody on the list has this key.
    #[error("{0} is the key of no member")]
    UnknownKey(PublicKey),
    /// It is a member, but not the one that it says.
    #[error("it says that it is {said}, but its key is that of {is}")]
    WrongName {
        /// What it said.
        said: HostName,
        /// Who it is.
        is: HostName,
    },
}

impl NotAMember {
    /// A word for metrics.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::NoList => "no_member_list",
            Self::ListExpired(_) => "member_list_expired",
            Self::ListNotYetValid(_) => "member_list_not_yet_valid",
            Self::Expelled { .. } => "expelled",
            Self::UnknownKey(_) => "not_a_member",
            Self::WrongName { .. } => "wrong_name",
        }
    }
}

impl Roster {
    /// A roster that knows nobody yet.
    pub const fn new(authority: PublicKey) -> Self {
        Self {
            authority,
            newest: None,
            names: BTreeMap::new(),
        }
    }

    /// Takes a list if it is the authority's and newer than ours; gives whether it was newer.
    ///
    /// # Errors
    /// When it is no list of this authority, or another one with the serial of ours. Ours is kept
    /// then.
    pub fn take(&mut self, text: &str) -> Result<bool, ListError> {
        let list = SignedList::parse(text, &self.authority)?;
        let serial = list.list().serial;
        if serial == self.serial() && self.newest.as_ref() != Some(&list) {
            return Err(ListError::SerialTaken(serial));
        }
        if serial <= self.serial() {
            return Ok(false);
        }
        let members = list.list().members();
        self.names = members.map(|(name, one)| (one.key, name.clone())).collect();
        self.newest = Some(list);
        Ok(true)
    }

    /// Whose lists these are.
    pub const fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// The newest list.
    pub const fn newest(&self) -> Option<&SignedList> {
        self.newest.as_ref()
    }

    /// Serial of the newest list; 0 without one.
    pub fn serial(&self) -> u64 {
        self.newest.as_ref().map_or(0, |one| one.list().serial)
    }

    /// Who the holder of `key` is.
    ///
    /// # Errors
    /// When it is nobody, or our list says nothing now.
    pub fn who(&self, key: &PublicKey, now: UnixMillis) -> Result<(&HostName, Role), NotAMember> {
        let list = self.newest.as_ref().ok_or(NotAMember::NoList)?.list();
        if now >= list.expires {
            return Err(NotAMember::ListExpired(list.expires));
        }
        if list.issued.since(now) > CLOCK_SKEW_MAX {
            return Err(NotAMember::ListNotYetValid(list.issued));
        }
        let Some((name, member)) = self.find(key) else {
            let expelled = list.expelled().iter().find(|one| one.key == *key);
            return Err(match expelled.cloned() {
                Some(one) => NotAMember::Expelled {
                    name: one.name,
                    reason: one.reason,
                },
                None => NotAMember::UnknownKey(*key),
            });
        };
        Ok((name, member.role))
    }

    /// In which role the holder of `key` is the member `name`.
    ///
    /// # Errors
    /// When it is not, or our list says nothing now.
    pub fn check(
        &self,
        name: &HostName,
        key: &PublicKey,
        now: UnixMillis,
    ) -> Result<Role, NotAMember> {
        let (is, role) = self.who(key, now)?;
        if is != name {
            let (said, is) = (name.clone(), is.clone());
            return Err(NotAMember::WrongName { said, is });
        }
        Ok(role)
    }

    fn find(&self, key: &PublicKey) -> Option<(&HostName, &Member)> {
        let name = self.names.get(key)?;
        let member = self.newest.as_ref()?.list().member(name)?;
        Some((name, member))
    }
}
