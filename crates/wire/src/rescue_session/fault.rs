//! How links end, what is told of them, and the faults of peers, each with its name.

use std::fmt;

use levee_vocab::{Peers, Purge};
use thiserror::Error;

use crate::grammar::ParseError;
use crate::integrity_words::{Permit, Report};
use crate::rescue::{Offer, Rate, ShutdownWord, Sos};

/// Something that whoever decides must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other side asks for help.
    SosReceived(Sos),
    /// Our SOS was accepted.
    Accepted(Offer),
    /// Our SOS led to nothing; nothing more will come.
    NotRescued(Refusal),
    /// The other side told its D_redi.
    RateReceived(Rate),
    /// The other side answered: it is alive.
    AnswerReceived,
    /// The other side wants its objects purged; to be answered by `Input::PurgeDone`.
    PurgeReceived(Purge),
    /// The other side answered the oldest of our purges.
    PurgeAnswered(PurgeAnswer),
    /// The other side tells who else helps it.
    PeersReceived(Peers),
    /// The origin allows us to go on without it for a while.
    PermitReceived(Permit),
    /// A rescue server says what another one delivered.
    ReportReceived(Report),
    /// The other side ended the rescue; nothing more will come.
    ShutdownReceived(ShutdownWord),
    /// The link is gone; nothing more will come.
    Lost(FaultKind),
}

/// What became of a purge at the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeAnswer {
    /// It was carried out.
    Done {
        /// Objects that were there.
        objects: u64,
    },
    /// It was not: the other side does not know the command, or does not want it.
    Refused,
}

/// Why an SOS led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It was answered with `403 Reject` or another code.
    Refused,
    /// No connection, or no answer.
    Unreachable,
    /// Something that is not the rescue protocol.
    Garbage,
}

/// How a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a SHUTDOWN, or because nobody wanted it any more.
    Finished,
    /// The SOS was rejected.
    Rejected,
    /// By a fault.
    Failed(Fault),
}

/// What was wrong with the other side, or rarely with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// It closed the connection without a SHUTDOWN.
    #[error("peer closed the connection")]
    PeerClosed,
    /// It opened a link and did not ask for anything.
    #[error("no SOS came in time")]
    NoSos,
    /// It did not answer.
    #[error("no answer came in time")]
    NoAnswer,
    /// It does not take what we send.
    #[error("peer does not take what is sent to it")]
    Stalled,
    /// It began a line and did not end it.
    #[error("half a line came, and its end did not come in time")]
    HalfLine,
    /// We did not make up our mind about its SOS.
    #[error("no decision about the SOS was made in time")]
    NoDecision,
    /// A line had no end.
    #[error("line is longer than {0} bytes")]
    LineTooLong(usize),
    /// A line is no message.
    #[error("{0}")]
    Malformed(ParseError),
    /// It sent more than any honest peer would.
    #[error("too many messages in a short time")]
    TooManyMessages,
    /// Its request does not follow on its last one.
    #[error("sequence number {got} where {expected} was due")]
    WrongNumber {
        /// The number that was due.
        expected: u32,
        /// The number that came.
        got: u32,
    },
    /// It answered something that was not asked, or out of order.
    #[error("answer {number} to no request of ours, or out of order")]
    UnexpectedAnswer {
        /// The number that came.
        number: u32,
    },
    /// A command that has no place here and now.
    #[error("{0} is out of place here")]
    OutOfPlace(CommandName),
    /// It said yes to an SOS without saying where.
    #[error("SOS was answered with 200 OK but without an alias")]
    NoOffer,
    /// It gave us our own name as alias, which would be a redirect loop.
    #[error("the alias that was offered is our own name")]
    OwnNameAsAlias,
}

/// The faults as the other end of a rescue feels them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Closed or reset.
    Closed,
    /// Nothing was heard in time.
    Silent,
    /// Something that is not the rescue protocol.
    Garbage,
}

/// A command by its name, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandName {
    /// SOS.
    Sos,
    /// RATE.
    Rate,
    /// PURGE.
    Purge,
    /// PEERS.
    Peers,
    /// PERMIT.
    Permit,
    /// REPORT.
    Report,
    /// SHUTDOWN.
    Shutdown,
    /// Any other.
    Unknown,
}

impl Fault {
    /// How the other end of the rescue feels it.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::PeerClosed => FaultKind::Closed,
            Self::NoSos | Self::NoAnswer | Self::Stalled | Self::HalfLine | Self::NoDecision => {
                FaultKind::Silent
            }
            Self::LineTooLong(_)
            | Self::Malformed(_)
            | Self::TooManyMessages
            | Self::WrongNumber { .. }
            | Self::UnexpectedAnswer { .. }
            | Self::OutOfPlace(_)
            | Self::NoOffer
            | Self::OwnNameAsAlias => FaultKind::Garbage,
        }
    }

    /// A short name for counters, the same for all faults of one cause.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::PeerClosed => "peer_closed",
            Self::NoSos => "no_sos",
            Self::NoAnswer => "no_answer",
            Self::Stalled => "stalled",
            Self::HalfLine => "half_line",
            Self::NoDecision => "no_decision",
            Self::LineTooLong(_) => "line_too_long",
            Self::Malformed(_) => "malformed",
            Self::TooManyMessages => "too_many_messages",
            Self::WrongNumber { .. } => "wrong_number",
            Self::UnexpectedAnswer { .. } => "unexpected_answer",
            Self::OutOfPlace(_) => "out_of_place",
            Self::NoOffer => "no_offer",
            Self::OwnNameAsAlias => "own_name_as_alias",
        }
    }
}

impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sos => "SOS",
            Self::Rate => "RATE",
            Self::Purge => "PURGE",
            Self::Peers => "PEERS",
            Self::Permit => "PERMIT",
            Self::Report => "REPORT",
            Self::Shutdown => "SHUTDOWN",
            Self::Unknown => "an unknown command",
        })
    }
}
