//! The phases of a rescue link, each with only what is true in it.

use levee_vocab::{HostName, Timestamp};

use crate::rescue::ShutdownWord;

/// How far a link has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Origin: the SOS is sent.
    Calling { own_name: HostName },
    /// Rescue server: nothing has come yet.
    Awaiting { until: Timestamp },
    /// Rescue server: the SOS is being thought about.
    Deciding {
        number: u32,
        until: Timestamp,
        beats: bool,
        drill: bool,
        is_peer_gone: bool,
        /// Number and word of a SHUTDOWN that came before the decision.
        shutdown: Option<(u32, ShutdownWord)>,
    },
    /// Origin: the other side helps.
    Rescued,
    /// Rescue server: we help.
    Rescuing,
    /// Our SHUTDOWN is sent.
    Closing { until: Timestamp },
    /// The connection is closed.
    Over,
}

impl Phase {
    pub(super) const fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Awaiting { until } | Self::Deciding { until, .. } | Self::Closing { until } => {
                Some(*until)
            }
            Self::Calling { .. } | Self::Rescued | Self::Rescuing | Self::Over => None,
        }
    }

    pub(super) const fn name(&self) -> SessionPhase {
        match self {
            Self::Calling { .. } => SessionPhase::Calling,
            Self::Awaiting { .. } => SessionPhase::Awaiting,
            Self::Deciding { .. } => SessionPhase::Deciding,
            Self::Rescued => SessionPhase::Rescued,
            Self::Rescuing => SessionPhase::Rescuing,
            Self::Closing { .. } => SessionPhase::Closing,
            Self::Over => SessionPhase::Over,
        }
    }
}

/// A link at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// How far it has come.
    pub phase: SessionPhase,
    /// Number of our last request.
    pub asked: u32,
    /// Requests of ours without an answer.
    pub unanswered: usize,
    /// Number of the other side's last request.
    pub heard: u32,
}

/// How far a link has come, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionPhase {
    /// Origin server: the SOS is sent.
    Calling,
    /// Rescue server: nothing has come yet.
    Awaiting,
    /// Rescue server: the SOS is being thought about.
    Deciding,
    /// Origin server: the other side helps.
    Rescued,
    /// Rescue server: we help.
    Rescuing,
    /// Our SHUTDOWN is sent.
    Closing,
    /// The connection is closed.
    Over,
}
