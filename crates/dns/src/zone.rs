//! Where records are changed, whoever keeps them.
//!
//! [`Zone`] is the one interface: a change is a list of edits that happen together or not at all,
//! and may state what it expects to find, so that two who edit one name never undo each other's
//! work. Who keeps the zone is behind it: a name server that takes updates, or our own.
//! Each failure names its cause in a sentence that says where to look.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;

use crate::name::DomainName;

/// What a zone is doing for us.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, ZoneError>> + Send + 'a>>;

/// A place where records are changed.
pub trait Zone: fmt::Debug + Send + Sync {
    /// Makes all edits of `change`, or none where what it expects is not so
    /// ([`Cause::Conflict`]).
    ///
    /// Cancel safety: dropped half-way, the change may or may not have happened. Each edit may be
    /// made again.
    fn change(&self, change: Change) -> Doing<'_, ()>;

    /// The values of `kind` that `name` has now; none is an empty list.
    ///
    /// Cancel safety: may be dropped at any time.
    fn read<'a>(&'a self, name: &'a DomainName, kind: Kind) -> Doing<'a, Vec<Value>>;

    /// The name servers that keep copies of the zone, beside the one that takes changes.
    ///
    /// Cancel safety: may be dropped at any time.
    fn copies(&self) -> Doing<'_, Vec<SocketAddr>>;

    /// Adds one record; one that is there already gets its TTL.
    ///
    /// Cancel safety: as [`Zone::change`].
    fn add(&self, record: Record) -> Doing<'_, ()> {
        self.change(Change::of(vec![Edit::Add(record)]))
    }

    /// Removes one value; one that is not there is no error.
    ///
    /// Cancel safety: as [`Zone::change`].
    fn remove(&self, name: DomainName, value: Value) -> Doing<'_, ()> {
        self.change(Change::of(vec![Edit::Remove(name, value)]))
    }

    /// Gives `name` these values of `kind` and no others of it.
    ///
    /// Cancel safety: as [`Zone::change`].
    fn replace(
        &self,
        name: DomainName,
        kind: Kind,
        values: Vec<Value>,
        ttl: Duration,
    ) -> Doing<'_, ()> {
        let clear = Edit::Clear(name.clone(), kind);
        let add = values.into_iter().map(|value| {
            let name = name.clone();
            Edit::Add(Record { name, value, ttl })
        });
        self.change(Change::of([clear].into_iter().chain(add).collect()))
    }
}

/// Edits that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What must be so before it.
    pub expected: Vec<Expected>,
    /// What is done, in this order.
    pub edits: Vec<Edit>,
}

impl Change {
    /// Edits that expect nothing.
    pub const fn of(edits: Vec<Edit>) -> Self {
        Self {
            expected: vec![],
            edits,
        }
    }

    /// The names that it is about.
    pub fn names(&self) -> impl Iterator<Item = &DomainName> {
        let expected = self.expected.iter().map(|expected| &expected.name);
        let edited = self.edits.iter().map(|edit| match edit {
            Edit::Clear(name, _) | Edit::Remove(name, _) => name,
            Edit::Add(record) => &record.name,
        });
        expected.chain(edited)
    }
}

/// All values of a kind that a name must have before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Whose.
    pub name: DomainName,
    /// Of which kind.
    pub kind: Kind,
    /// Exactly these, in any order; none means that there are none.
    pub values: Vec<Value>,
}

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Removes all values of a kind.
    Clear(DomainName, Kind),
    /// Removes one value.
    Remove(DomainName, Value),
    /// Adds a record, or gives it its TTL.
    Add(Record),
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose.
    pub name: DomainName,
    /// What it says.
    pub value: Value,
    /// How long others may remember it; whole seconds count.
    pub ttl: Duration,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A or AAAA.
    Address(IpAddr),
    /// TXT.
    Text(String),
}

impl Value {
    /// The kind of record that says this.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Address(IpAddr::V4(_)) => Kind::A,
            Self::Address(IpAddr::V6(_)) => Kind::Aaaa,
            Self::Text(_) => Kind::Text,
        }
    }
}

/// The kinds of records that are changed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Addresses of IPv4.
    A,
    /// Addresses of IPv6.
    Aaaa,
    /// Texts.
    Text,
}

/// Why a zone did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("DNS server {server}: {cause}")]
pub struct ZoneError {
    /// Who was asked.
    pub server: String,
    /// Why not.
    pub cause: Cause,
}

/// The reasons, each with its way out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// It could not be connected to, or the connection broke.
    #[error("cannot be reached by TCP: {why}")]
    Unreachable {
        /// What the operating system said.
        why: String,
    },
    /// No answer in time.
    #[error("did not answer within {:.1} s", .wait.as_secs_f64())]
    TimedOut {
        /// How long we waited.
        wait: Duration,
    },
    /// What it said is no answer to what was asked.
    #[error("gave an answer that makes no sense: {why}")]
    Garbage {
        /// What was wrong with it.
        why: String,
    },
    /// TSIG BADKEY.
    #[error("does not know the TSIG key `{key}` (BADKEY); check the key's name on both sides")]
    BadKey {
        /// The key that we signed with.
        key: DomainName,
    },
    /// TSIG BADSIG.
    #[error("knows another secret or algorithm for the TSIG key `{key}` (BADSIG)")]
    BadSignature {
        /// The key that we signed with.
        key: DomainName,
    },
    /// TSIG BADTIME.
    #[error("has another time than we (BADTIME); set the clocks of both machines")]
    BadTime,
    /// An answer without a signature, or with a wrong one.
    #[error("answered without a valid signature by key `{key}`, so it is not believed")]
    Unsigned {
        /// The key that we signed with.
        key: DomainName,
    },
    /// REFUSED.
    #[error("refused (REFUSED); let this key update `{name}` (allow-update, update-policy)")]
    Refused {
        /// What was to be changed or read.
        name: DomainName,
    },
    /// NOTAUTH without a fault of the key, or an answer of somebody else's.
    #[error("is not the primary server of zone `{zone}` (NOTAUTH)")]
    NotAuthoritative {
        /// The zone.
        zone: DomainName,
    },
    /// NOTZONE, or a name that we can tell lies outside.
    #[error("says that `{name}` is not in zone `{zone}` (NOTZONE)")]
    NotInZone {
        /// The name.
        name: DomainName,
        /// The zone.
        zone: DomainName,
    },
    /// SERVFAIL.
    #[error("failed (SERVFAIL); its log tells more, often that it cannot write its journal")]
    ServerFailed,
    /// NOTIMP or FORMERR.
    #[error("does not understand updates ({0})")]
    NotUnderstood(&'static str),
    /// What was expected is not so: somebody else has changed the zone meanwhile.
    #[error("says that somebody else has changed `{name}` meanwhile")]
    Conflict {
        /// The name.
        name: DomainName,
    },
    /// The name leads to another, so it cannot have addresses.
    #[error("says that `{name}` is only another name for `{target}` (CNAME); give it addresses")]
    OtherName {
        /// The name.
        name: DomainName,
        /// Where it leads.
        target: DomainName,
    },
    /// Any other code.
    #[error("answered with code {0}")]
    Code(u16),
}
