//! Copies of hot resources at our rescue servers (H3 to H5): the words, and the ledger.
//!
//! Why: a rescue server that holds a page serves it at once; one that does not fetches it over the
//! link that is overrun. So what becomes hot is copied before it must be redirected, and visitors
//! of what is copied are redirected first.
//!
//! The ledger (`copies/ledger.rs`) knows which resources are hot and which rescue server holds
//! which; it says what to copy next ([`CopyOrder`]) and tells the cores ([`HotRoute`]). It copies
//! nothing itself: that is the shell's, which answers each order with `CopyEnded`.

mod ledger;
mod shares;

use std::time::Duration;

use levee_vocab::{ByteRate, LinkId, WebAddress};

pub(crate) use ledger::CopyLedger;

use crate::law::Replication;

/// One copy to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOrder {
    /// The rescue server.
    pub link: LinkId,
    /// Host and path, as [`crate::HotSpotOutput`] names it.
    pub url: String,
    /// How.
    pub means: CopyMeans,
    /// Whether to look for what is embedded in it.
    pub embedded: Embedded,
}

/// How a copy comes to a rescue server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMeans {
    /// We send it.
    Push,
    /// It is told to get it: from the object's home among the rescue servers, else from us.
    Pull,
}

/// Whether the objects embedded in a page go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedded {
    /// They do; answered with `EmbeddedFound`.
    With,
    /// They do not, or are known.
    Without,
}

/// How a [`CopyOrder`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The rescue server holds it.
    Held,
    /// It does not want it, or may not keep it: not to be tried again for a while.
    Refused,
    /// Something went wrong on the way.
    Failed,
    /// It was waited for as long as for any copy.
    Late,
}

/// A hot resource of which there are copies. Part of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotRoute {
    /// Host and path.
    pub url: String,
    /// Bit i says that target i of the plan holds it; at least one does.
    pub holders: u64,
    /// How hot it is.
    pub heat: Heat,
}

/// How hot a resource is that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    /// T_C was reached: copies are made, and used when the load says so.
    Warm,
    /// T_R was reached: visitors are redirected early.
    Redirected,
}

/// What a core knows about the copies of what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Bit i says that target i of the plan holds it.
    pub holders: u64,
    /// How hot it is.
    pub heat: Heat,
}

impl Copies {
    /// Nobody holds it, as far as we know.
    pub const NONE: Self = Self {
        holders: 0,
        heat: Heat::Warm,
    };
}

impl Heat {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "copied",
            Self::Redirected => "redirected",
        }
    }
}

/// A rescue server to copy to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) link: LinkId,
    /// By which its place among the homes is found.
    pub(crate) alias: WebAddress,
    /// Its weight there.
    pub(crate) weight: ByteRate,
}

/// What the ledger goes by.
#[derive(Clone, Debug)]
pub(crate) struct CopyRules {
    /// Whose resources: part of the hash by which homes are found.
    pub(crate) origin: WebAddress,
    pub(crate) replication: Replication,
    pub(crate) embedded: Embedded,
    /// I_ctrl.
    pub(crate) interval: Duration,
}

/// Something about copies that people want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyNews {
    /// Copies of it are being made.
    Copying {
        url: String,
        servers: usize,
        gap: Duration,
    },
    /// Its visitors are sent to those that hold it.
    Redirecting {
        url: String,
        servers: usize,
        gap: Duration,
    },
    /// It is served here again.
    Normal { url: String },
    /// A rescue server did not take it.
    Refused { link: LinkId, url: String },
}
