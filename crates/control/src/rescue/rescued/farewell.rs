//! How an origin parts from a rescue server: what that one is told, and what it keeps.

use levee_vocab::LinkId;

use crate::input::LinkLoss;
use crate::output::{Output, ShutdownCause};

/// How to part from a rescue server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Farewell {
    /// Tell it.
    ShutDown(ShutdownCause),
    /// Close the link.
    Drop,
    /// Close the link, and forget its key at once.
    Expel,
    /// Its link was cut because it is not trusted any more; its key is forgotten at once.
    Distrust,
    /// It knows, or is gone.
    None,
}

/// What becomes of the key with which it fetches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// It is honoured for a while: visitors are under way.
    Retired,
    /// It gets nothing more.
    Forgotten,
}

impl Farewell {
    /// When its link has ended so.
    pub(super) const fn after(loss: LinkLoss) -> Self {
        match loss {
            LinkLoss::Distrusted => Self::Distrust,
            LinkLoss::Closed | LinkLoss::Silent | LinkLoss::Garbage | LinkLoss::NotAMember => {
                Self::None
            }
        }
    }

    /// What is to be done about the link.
    pub(super) const fn output(self, link: LinkId) -> Option<Output> {
        match self {
            Self::ShutDown(cause) => Some(Output::ShutDown { link, cause }),
            Self::Drop | Self::Expel => Some(Output::DropLink { link }),
            Self::Distrust | Self::None => None,
        }
    }

    /// Whether it is left alone for a while: it would fail again.
    pub(super) const fn is_failure(self) -> bool {
        match self {
            Self::ShutDown(_) | Self::Expel => false,
            Self::Drop | Self::Distrust | Self::None => true,
        }
    }

    /// What becomes of its key.
    pub(super) const fn key(self) -> Key {
        match self {
            Self::Expel | Self::Distrust => Key::Forgotten,
            Self::ShutDown(_) | Self::Drop | Self::None => Key::Retired,
        }
    }
}
