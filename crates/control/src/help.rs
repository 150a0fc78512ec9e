//! What an operator gives at most: the limits that volunteers ask for (R9, R11).
//!
//! Who lets others have a part of a link wants to know the most that it can cost. So there is a
//! limit on the rate, on the bytes of a day, on both for each origin alone, and on who is helped.
//!
//! ```text
//!   help.rate ─┐                         ┌─▶ d_free, which the registry is told
//!   D_resc ────┼─▶ what there is ─ divided ─▶ D_alloc of each origin ─▶ RATE
//!   the day ───┘        (`shares`)       └─▶ `HelpPlan`: what the cores keep to
//! ```
//!
//! A day is any 24 hours (`ledger`), and it ends gently: what is left of it is spread over
//! [`SPREAD`], so RATE shrinks before the limit is reached. A reserve is kept back for visitors who
//! are under way. When only the reserve is left the rescues are shut down, and the cores, which
//! keep to the plan, send visitors back who come all the same.

mod ledger;
mod limits;
mod refusals;
mod shares;

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName};

use crate::desk::Desk;
use crate::input::LoadSample;
use crate::output::Output;
use crate::redirect::whole;
use crate::view::HelpView;
pub(crate) use ledger::Ledger;
pub use ledger::{GIVEN_WINDOW, GivenRecord};
pub use limits::HelpLimits;
pub(crate) use refusals::Refusals;
pub use refusals::{CallRefusal, RefusedCall};
pub(crate) use shares::divide;

/// What is left of a day is offered at a rate at which it lasts so long.
const SPREAD: Duration = Duration::from_mins(10);

/// Time of the full rate that is kept back of a day's limit for visitors who are under way. An
/// alias serves for ten control intervals after the end of a rescue.
const RESERVE: Duration = Duration::from_mins(1);

/// The reserve is no more than this part of the limit.
const RESERVE_SHARE: u64 = 20;

/// Reserves that must be left before somebody new is helped: a rescue that would end at once helps
/// nobody.
const WORTH_BEGINNING: u64 = 2;

/// What the cores keep to while anything is limited, in bytes a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HelpPlan {
    /// For all origins together; none without a limit.
    pub all: Option<ByteRate>,
    /// For each origin, by the slot of its counters.
    pub origins: Vec<(u8, ByteRate)>,
}

/// What an origin may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allotted {
    /// D_alloc.
    pub(crate) rate: ByteRate,
    /// Its origin is dead. Nobody is there who would heed a RATE, and to let it go would send its
    /// visitors nowhere: so the cores keep to it.
    pub(crate) is_orphan: bool,
}

/// What stands before a limit of bytes a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    limit: u64,
    left: u64,
    reserve: u64,
}

impl Day {
    /// A day of which `given` bytes are gone, where `full` is the rate without this limit.
    fn new(limit: u64, given: u64, full: ByteRate) -> Self {
        Self {
            limit,
            left: limit.saturating_sub(given),
            reserve: full.bytes_in(RESERVE).min(limit / RESERVE_SHARE),
        }
    }

    /// The rate at which what is left lasts for a while.
    fn rate(self) -> ByteRate {
        ByteRate::of(self.left, SPREAD)
    }

    /// Whether only the reserve is left.
    fn is_over(self) -> bool {
        self.left <= self.reserve
    }

    /// Whether somebody new can be helped.
    fn is_worth_beginning(self) -> bool {
        self.left >= (self.reserve * WORTH_BEGINNING).max(self.limit / RESERVE_SHARE)
    }
}

/// What origins may have, by the limits and by what was given.
impl Desk {
    /// What there is for all origins together: D_resc, less where a limit is lower.
    pub(crate) fn help_rate(&self) -> ByteRate {
        let full = self.full_help_rate();
        self.day().map_or(full, |day| full.min(day.rate()))
    }

    /// What the origin called `host` may have at most; none where nothing limits it.
    pub(crate) fn member_rate(&self, host: &HostName) -> Option<ByteRate> {
        let rate = self.parameters.help.member_rate;
        let day = self.member_day(host).map(Day::rate);
        rate.into_iter().chain(day).min()
    }

    /// What an origin that nobody knows yet may have at most.
    pub(crate) fn newcomer_rate(&self) -> Option<ByteRate> {
        let limits = &self.parameters.help;
        let day = limits.member_bytes_per_day;
        let day = day.map(|bytes| ByteRate::of(bytes, SPREAD));
        limits.member_rate.into_iter().chain(day).min()
    }

    /// Whether the day's limit of all origins together is used up but for the reserve.
    pub(crate) fn is_day_over(&self) -> bool {
        self.day().is_some_and(Day::is_over)
    }

    /// Whether that of one is.
    pub(crate) fn is_member_day_over(&self, host: &HostName) -> bool {
        self.member_day(host).is_some_and(Day::is_over)
    }

    /// Why the limits forbid to help `host`, if they do.
    pub(crate) fn check_limits(&self, host: &HostName) -> Result<(), CallRefusal> {
        self.parameters.help.check_member(host)?;
        if !self.is_day_worth_beginning() {
            return Err(CallRefusal::DayGiven);
        }
        let member = self.member_day(host);
        match member.is_none_or(Day::is_worth_beginning) {
            true => Ok(()),
            false => Err(CallRefusal::MemberDayGiven),
        }
    }

    /// Whether the day's limit leaves enough for somebody new.
    pub(crate) fn is_day_worth_beginning(&self) -> bool {
        self.day().is_none_or(Day::is_worth_beginning)
    }

    /// The most that all origins together get in this interval, where anything limits it.
    fn help_ceiling(&self) -> Option<ByteRate> {
        let limits = &self.parameters.help;
        let day = self.day().map(Day::rate);
        limits.rate.into_iter().chain(day).min()
    }

    /// Whether anything but D_resc limits what origins get.
    fn is_help_limited(&self) -> bool {
        self.help_ceiling().is_some() || self.newcomer_rate().is_some()
    }

    /// What the cores keep to, where anything but D_resc limits what origins get, or an origin is
    /// dead: `allotted` by their slots. Aliases of rescues that are over serve on for a moment,
    /// within what is left.
    pub(crate) fn help_plan(&self, allotted: &BTreeMap<u8, Allotted>) -> Option<HelpPlan> {
        let is_limited = self.is_help_limited();
        let rate = |(slot, host): (u8, &HostName)| match allotted.get(&slot) {
            Some(one) if one.is_orphan => Some((slot, self.orphans_rate(one.rate, host))),
            Some(one) => is_limited.then_some((slot, one.rate)),
            None => Some((slot, self.member_rate(host)?)),
        };
        let origins: Vec<_> = self.aliases.slots().filter_map(rate).collect();
        (is_limited || !origins.is_empty()).then(|| HelpPlan {
            all: self.help_ceiling(),
            origins,
        })
    }

    /// What a dead origin may have that was allotted so much. Its visitors have nowhere else to go:
    /// so together such origins fill the link up to T_high, not D_resc alone, within the limits.
    fn orphans_rate(&self, allotted: ByteRate, host: &HostName) -> ByteRate {
        let thresholds = &self.parameters.thresholds;
        let more = thresholds.high / (1.0 - thresholds.alert);
        let rate = allotted.times(more.max(1.0));
        let limits = self.parameters.help.rate.into_iter();
        let limits = limits.chain(self.member_rate(host));
        limits.fold(rate, ByteRate::min)
    }

    /// A control interval is over: what rescued origins got in it was given.
    pub(crate) fn note_given(&mut self, sample: &LoadSample) {
        for (&link, traffic) in &sample.rescue {
            if let Some(host) = self.aliases.origin_of(link) {
                self.given.add(self.now, &host, traffic.bytes);
            }
        }
    }

    /// Forgets what was given too long ago, and has the state folder told of what is new.
    pub(crate) fn keep_ledger(&mut self) {
        self.given.pass(self.now);
        let limits = &self.parameters.help;
        let lowest = limits.bytes_per_day.into_iter();
        let lowest = lowest.chain(limits.member_bytes_per_day).min();
        if self.given.is_to_be_saved(self.now, lowest) {
            self.act(Output::RememberGiven);
        }
    }

    /// All of this, for people.
    pub(crate) fn help_view(&self) -> HelpView {
        HelpView {
            given: self.given.total(),
            rate: self.help_rate(),
            origins: self.given.by_origin(),
            refused: self.not_helped.last().to_vec(),
            refused_by_kind: self.not_helped.counts().clone(),
        }
    }

    /// D_resc, or `help.rate` where that is less.
    fn full_help_rate(&self) -> ByteRate {
        let spare = self.parameters.rescue_rate();
        let limit = self.parameters.help.rate;
        limit.map_or(spare, |limit| spare.min(limit))
    }

    fn day(&self) -> Option<Day> {
        let limit = self.parameters.help.bytes_per_day?;
        Some(Day::new(limit, self.given.total(), self.full_help_rate()))
    }

    fn member_day(&self, host: &HostName) -> Option<Day> {
        let limits = &self.parameters.help;
        let limit = limits.member_bytes_per_day?;
        let full = self.full_help_rate();
        let full = limits.member_rate.map_or(full, |rate| full.min(rate));
        Some(Day::new(limit, self.given.of(host), full))
    }
}

/// D_alloc of each of several origins, who may have `limits` at most: whole kilobytes, as RATE
/// tells them.
pub(crate) fn allot(all: ByteRate, limits: &[Option<ByteRate>]) -> Vec<ByteRate> {
    let shares = divide(all, limits);
    shares.into_iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    #[test]
    fn a_day_ends_gently_and_keeps_a_reserve() {
        let full = ByteRate::from_kilobytes(500);
        let day = |given| Day::new(1000 * MB, given, full);
        assert!(day(0).rate() > full);
        assert_eq!(day(880 * MB).rate(), ByteRate::from_kilobytes(200));
        assert!(day(930 * MB).is_worth_beginning() != day(960 * MB).is_worth_beginning());
        assert!(!day(960 * MB).is_over() && day(970 * MB).is_over());
        assert_eq!(day(2000 * MB).rate(), ByteRate::ZERO);
    }

    #[test]
    fn a_limit_that_is_small_for_the_link_is_given_all_the_same() {
        let full = ByteRate::from_kilobytes(5000);
        let day = Day::new(100 * MB, 0, full);
        assert!(day.is_worth_beginning() && !day.is_over());
        assert!(Day::new(100 * MB, 94 * MB, full).rate() < ByteRate::from_kilobytes(11));
        assert!(Day::new(100 * MB, 95 * MB, full).is_over());
    }
}
