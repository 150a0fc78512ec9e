//! Which origins get how much, and which no more, by the limits of the operator (`help`).

use std::collections::BTreeMap;

use levee_vocab::{ByteRate, LinkId};

use super::{Closing, Origin, Rescue};
use crate::desk::Desk;
use crate::help::{Allotted, allot};
use crate::output::ShutdownCause;
use crate::rescue::Phase;

impl Rescue {
    /// Origins that the operator helps no more: by name, and the newest where they are too many.
    pub(super) fn unwanted(&self, desk: &Desk) -> Vec<LinkId> {
        let limits = &desk.parameters.help;
        let is_wanted = |origin: &Origin| limits.check_member(&origin.site.host).is_ok();
        let mut wanted = self.find(is_wanted);
        wanted.sort_by_key(|link| self.origins[link].since);
        wanted.truncate(desk.parameters.origins_max);
        let unwanted = self.origins.keys().filter(|link| !wanted.contains(link));
        unwanted.copied().collect()
    }

    /// Members are expelled: those of them that we help are let go.
    pub(crate) fn expelled(mut self, desk: &mut Desk) -> Phase {
        let expelled = self.find(|origin| desk.allocation.is_expelled(&origin.site.host));
        let closing = self.shut_down(desk, expelled, ShutdownCause::Expelled);
        self.share_out(desk);
        self.settle_after(closing)
    }

    /// The most that each origin may have.
    pub(super) fn limits(&self, desk: &Desk) -> Vec<Option<ByteRate>> {
        let origins = self.origins.values();
        origins
            .map(|origin| desk.member_rate(&origin.site.host))
            .collect()
    }

    /// D_alloc of each origin, by its slot.
    pub(crate) fn allotted(&self) -> BTreeMap<u8, Allotted> {
        let allotted = |origin: &Origin| Allotted {
            rate: origin.allotted,
            is_orphan: !origin.is_linked(),
        };
        let origins = self.origins.values();
        origins
            .map(|origin| (origin.slot, allotted(origin)))
            .collect()
    }

    /// Divides what there is: in equal parts, but for origins that may have less.
    pub(super) fn allot(&mut self, desk: &Desk) {
        let shares = allot(desk.help_rate(), &self.limits(desk));
        for (origin, share) in self.origins.values_mut().zip(shares) {
            origin.allotted = share;
        }
    }

    /// Ends the rescues for which nothing is left of a day's limit. None where nothing is over.
    pub(super) fn end_days(&mut self, desk: &mut Desk) -> Option<Closing> {
        let (over, cause) = match desk.is_day_over() {
            true => (self.find(|_| true), ShutdownCause::DayGiven),
            false => {
                let is_over = |origin: &Origin| desk.is_member_day_over(&origin.site.host);
                (self.find(is_over), ShutdownCause::MemberDayGiven)
            }
        };
        match over.is_empty() {
            true => None,
            false => Some(self.shut_down(desk, over, cause)),
        }
    }
}
