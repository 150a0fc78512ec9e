//! Whom we did not help, and why: an operator wants to see it, and so does whoever asks him.

use std::collections::BTreeMap;

use levee_vocab::{HostName, Timestamp};

/// Most origins whose refusals are shown: whoever was refused first makes room.
const SHOWN_MAX: usize = 32;

/// Why an SOS was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallRefusal {
    /// We are in no community.
    OutsideCommunity,
    /// The operator stops this server.
    Drained,
    /// We need help ourselves.
    Calling,
    /// We get help ourselves.
    Rescued,
    /// We are ending our rescues.
    Closing,
    /// We rehearse.
    Drilling,
    /// Our own visitors need the link.
    Loaded,
    /// Nothing is left of what we give.
    Full,
    /// Nothing is left to count it by.
    SlotsTaken,
    /// It calls itself what we are called.
    OwnName,
    /// It calls itself as an alias of ours.
    OwnAlias,
    /// It was caught altering what it served.
    Expelled,
    /// It called twice over one link.
    Twice,
    /// Its drill is too long.
    DrillTooLong,
    /// We take part in no drills.
    DrillDeclined,
    /// We have no time for its drill.
    DrillWhileHelping,
    /// The operator never helps it.
    Never,
    /// The operator helps only others.
    NotNamed,
    /// What we give in a day is given.
    DayGiven,
    /// What we give to one in a day is given.
    MemberDayGiven,
    /// No alias can be made for it.
    NoAlias,
    /// Its alias would not outlive a crash.
    AliasForgotten,
}

impl CallRefusal {
    /// The refusal in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::OutsideCommunity => "this site takes no part in a community",
            Self::Drained => "the operator is stopping this server",
            Self::Calling => "we are asking for help ourselves",
            Self::Rescued => "we are being rescued ourselves",
            Self::Closing => "we are ending our rescues",
            Self::Drilling => "we have a drill of our own",
            Self::Loaded => "our own load is above the alert threshold",
            Self::Full => "no rescue capacity is free",
            Self::SlotsTaken => "too many rescues ended a moment ago",
            Self::OwnName => "it carries our own name",
            Self::OwnAlias => "its name is an alias that we gave out",
            Self::Expelled => "it is expelled",
            Self::Twice => "it called twice over one link",
            Self::DrillTooLong => "its drill is longer than ten minutes",
            Self::DrillDeclined => "this site takes part in no drills",
            Self::DrillWhileHelping => "this site helps another, and has no time for a drill",
            Self::Never => "the operator never helps it (help.never)",
            Self::NotNamed => "the operator helps only those whom he names (help.members)",
            Self::DayGiven => "what we give in a day is given (help.bytes_per_day)",
            Self::MemberDayGiven => {
                "what we give to one site in a day is given (help.member_bytes_per_day)"
            }
            Self::NoAlias => "no alias can be made",
            Self::AliasForgotten => "its alias cannot be written to the state folder",
        }
    }

    /// Its kind in a word, for the metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::OutsideCommunity | Self::Drained => "outside",
            Self::Calling | Self::Rescued | Self::Closing | Self::Drilling => "busy",
            Self::Loaded => "load",
            Self::Full | Self::SlotsTaken => "full",
            Self::OwnName | Self::OwnAlias => "name",
            Self::Expelled => "expelled",
            Self::Twice => "twice",
            Self::DrillTooLong | Self::DrillDeclined | Self::DrillWhileHelping => "drill",
            Self::Never => "never",
            Self::NotNamed => "not_named",
            Self::DayGiven => "day",
            Self::MemberDayGiven => "member_day",
            Self::NoAlias | Self::AliasForgotten => "alias",
        }
    }
}

/// A call that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedCall {
    /// Who asked last, and was refused for this.
    pub origin: HostName,
    /// Why.
    pub refusal: CallRefusal,
    /// When.
    pub at: Timestamp,
    /// How often in all, whatever for.
    pub times: u64,
}

/// The last of them, and how many there were of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    last: Vec<RefusedCall>,
    counts: BTreeMap<&'static str, u64>,
}

impl Refusals {
    /// `origin` was refused.
    pub(crate) fn note(&mut self, at: Timestamp, origin: &HostName, refusal: CallRefusal) {
        *self.counts.entry(refusal.label()).or_default() += 1;
        let place = self.last.iter().position(|call| call.origin == *origin);
        let before = place.map(|place| self.last.remove(place));
        if self.last.len() == SHOWN_MAX {
            self.last.remove(0);
        }
        self.last.push(RefusedCall {
            origin: origin.clone(),
            refusal,
            at,
            times: before.map_or(0, |call| call.times) + 1,
        });
    }

    /// The last refusal of each of the last origins, oldest first.
    pub(crate) fn last(&self) -> &[RefusedCall] {
        &self.last
    }

    /// How many there were of each kind.
    pub(crate) fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_is_shown_once_and_the_oldest_makes_room() {
        let mut refusals = Refusals::default();
        for number in 0..100_u64 {
            let origin = format!("www.site{}.example", number % 40).parse().unwrap();
            refusals.note(Timestamp::from_seconds(number), &origin, CallRefusal::Full);
        }
        assert_eq!(refusals.last().len(), SHOWN_MAX);
        assert_eq!(refusals.counts()["full"], 100);
        let last = refusals.last().last().unwrap();
        assert_eq!(
            (last.origin.as_str(), last.times),
            ("www.site19.example", 1)
        );
    }
}
