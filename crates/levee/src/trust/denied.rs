//! What is refused in a closed community, why, and how often.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use levee_net::Shared;
use levee_trust::{BadSignature, Deed, NotAMember, Role, Stale, UnixMillis};
use levee_vocab::{HostName, WebAddress};
use thiserror::Error;

use crate::integrity::PermitFault;

/// Why a peer, or a message, is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// Whoever it is, it is no member.
    #[error("{0}")]
    NotAMember(#[from] NotAMember),
    /// It is a member, but not for this.
    #[error("{name} is a member as {role}, which may not do this: {deed:?}")]
    NotItsRole {
        /// Who.
        name: HostName,
        /// In which role.
        role: Role,
        /// What it tried.
        deed: Deed,
    },
    /// A message that has to be signed is not.
    #[error("it is not signed, and this community is closed")]
    NotSigned,
    /// A signature does not fit, or is not even one.
    #[error("{0}")]
    Forged(#[from] BadSignature),
    /// Recorded and replayed, or a clock is wrong.
    #[error("{0}")]
    Stale(#[from] Stale),
    /// The connection belongs to one member, the message to another.
    #[error("it is signed by another key than that of the connection")]
    ForeignMessage,
    /// Somebody accuses who is not there.
    #[error("it accuses {0}, which is no member")]
    NobodyAccused(HostName),
    /// Nobody in an open community can prove who it is.
    #[error("this community is open: nobody can prove who accuses")]
    OpenCommunity,
    /// A registry does not find whom another one does.
    #[error("it {missed}, unlike the registry at {registry}")]
    LeftOut {
        /// The other one.
        registry: SocketAddr,
        /// Whom.
        missed: Missed,
    },
    /// What we have registered at one registry is not known to another.
    #[error("the registry at {registry} does not know of it, and is told by us")]
    NotPassedOn {
        /// The other one.
        registry: SocketAddr,
    },
    /// A rescue server wants visitors sent to where it is not.
    #[error(
        "its alias {alias} leads to {found} and not to {told}, where it says that it is: mend the \
         record, or community.address there"
    )]
    AliasElsewhere {
        /// The name and port to which visitors would be sent.
        alias: WebAddress,
        /// Where it says that it is.
        told: IpAddr,
        /// Where the name leads.
        found: IpAddr,
    },
    /// A permit counts for nothing.
    #[error("{0}")]
    Permit(#[from] PermitFault),
    /// The connection ended before TLS could tell a key: a line that is full, a restart.
    #[error("it ended in the middle of its handshake: {0}")]
    BrokenOff(String),
    /// TLS has not told a key.
    #[error("it does not speak TLS with a key of its own: {0}")]
    NoKey(String),
}

/// Whom a registry leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It finds nobody at all.
    Everybody,
    /// It finds others.
    Members(Vec<HostName>),
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Members(members) = self else {
            return f.write_str("finds nobody");
        };
        let named: Vec<&str> = members.iter().map(HostName::as_str).collect();
        let (named, others) = named.split_at(named.len().min(NAMED_MAX));
        write!(f, "leaves out {}", named.join(", "))?;
        match others.len() {
            0 => Ok(()),
            others => write!(f, " and {others} more"),
        }
    }
}

/// Members named in a sentence.
const NAMED_MAX: usize = 3;

impl Denied {
    /// A word for metrics.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::NotAMember(why) => why.cause(),
            Self::NotItsRole { .. } => "wrong_role",
            Self::NotSigned => "not_signed",
            Self::Forged(_) => "bad_signature",
            Self::Stale(Stale::TooOld(_)) => "too_old",
            Self::Stale(Stale::FromTheFuture(_)) => "from_the_future",
            Self::Stale(Stale::BeforeStart(_)) => "before_start",
            Self::Stale(Stale::Replayed) => "replayed",
            Self::Stale(Stale::TooMany) => "too_many",
            Self::ForeignMessage => "foreign_message",
            Self::NobodyAccused(_) => "nobody_accused",
            Self::OpenCommunity => "open_community",
            Self::LeftOut { .. } => "left_out",
            Self::NotPassedOn { .. } => "not_passed_on",
            Self::AliasElsewhere { .. } => "alias_elsewhere",
            Self::Permit(why) => why.cause(),
            Self::BrokenOff(_) => "broken_off",
            Self::NoKey(_) => "no_key",
        }
    }
}

/// What was refused, by cause.
#[derive(Debug, Default)]
pub struct DeniedCounts(Shared<BTreeMap<&'static str, DeniedCount>>);

/// How often something was refused for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCount {
    /// How often.
    pub count: u64,
    /// What and why, the last time; for people.
    pub last: String,
    /// When that was.
    pub at: UnixMillis,
}

impl DeniedCounts {
    /// Counts `what` and why it was refused.
    pub(super) fn note(&self, what: &str, why: &Denied, at: UnixMillis) {
        let last = format!("{what}: {why}");
        self.0.with(|counts| {
            let entry = counts.entry(why.cause()).or_insert(DeniedCount {
                count: 0,
                last: String::new(),
                at,
            });
            entry.count += 1;
            entry.last = last;
            entry.at = at;
        });
    }

    /// Each cause that has come up, in the order of their words.
    pub fn all(&self) -> Vec<(&'static str, DeniedCount)> {
        self.0.with(|counts| {
            let each = counts.iter();
            each.map(|(&cause, count)| (cause, count.clone())).collect()
        })
    }
}
