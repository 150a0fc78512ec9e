//! Origins that have died, and go on at their rescue servers until their permit ends.
//!
//! ```text
//!  Linked ── PERMIT ──▶ Linked, with a permit ── link lost, or silent ──▶ Orphaned
//!    │ lost, without one                                    │ it answers again, the permit ends,
//!    ▼                                                      ▼ nobody asks, or we have no room
//!   over ◀──────────────────────────────────────────────── over
//! ```
//!
//! A shutdown is no death, and neither is a link that was cut for garbage, or because one side is
//! no member any more: all of these end the rescue as ever, the last one that of an orphan too.
//! An orphan is rescued like any other, but nothing is told to it and nothing is fetched for it.
//! The permit counts from when it was told last, so a clock that is wrong does no harm.

use std::time::Duration;

use levee_vocab::{LinkId, Timestamp};

use super::{Beat, Origin, Rescue};
use crate::aliases::GRACE;
use crate::desk::Desk;
use crate::input::LinkLoss;
use crate::reason::Reason;
use crate::rescue::Phase;

/// Whether an origin lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It does. Where it dies we may go on until then, if it said so.
    Linked { permit: Option<Timestamp> },
    /// It is dead, and we go on until then, or until it answers again.
    Orphaned { until: Timestamp },
}

/// Longest permit: what is older than a day is no rescue any more.
const PERMIT_MAX: Duration = Duration::from_secs(24 * 3600);

impl Rescue {
    /// The origin on `link` allows us to go on without it.
    pub(crate) fn permitted(&mut self, desk: &Desk, link: LinkId, length: Duration) {
        if let Some(origin) = self.origins.get_mut(&link)
            && origin.is_linked()
            // A drill is over when its origin is.
            && origin.drill.is_none()
        {
            let until = desk.now + length.min(PERMIT_MAX);
            let permit = (!length.is_zero()).then_some(until);
            origin.life = Life::Linked { permit };
        }
    }

    /// The origin on `link`, which had died, answers again.
    pub(crate) fn returned(mut self, desk: &mut Desk, link: LinkId) -> Phase {
        if self.origins.get(&link).is_some_and(Origin::is_linked) {
            return self.settle();
        }
        let until = desk.after(GRACE);
        self.part(desk, link, until, "it is back");
        self.share_out(desk);
        self.settle()
    }

    /// The link is gone.
    pub(crate) fn lost(mut self, desk: &mut Desk, link: LinkId, loss: LinkLoss) -> Phase {
        match loss {
            LinkLoss::Closed | LinkLoss::Silent => self.died(desk, link, loss),
            LinkLoss::Garbage | LinkLoss::NotAMember => {
                self.part(desk, link, desk.after(GRACE), loss.why());
            }
            // Its alias leads back already.
            LinkLoss::Distrusted => self.part(desk, link, desk.now, loss.why()),
        }
        self.share_out(desk);
        self.settle()
    }

    /// The origin on `link` is dead: goes on without it where it permits that.
    pub(super) fn died(&mut self, desk: &mut Desk, link: LinkId, loss: LinkLoss) {
        let Some(origin) = self.origins.get_mut(&link) else {
            return;
        };
        match origin.life {
            // What was wanted of its link came to nothing.
            Life::Orphaned { .. } => {}
            // Visitors who are under way are served for as long in any case.
            Life::Linked {
                permit: Some(until),
            } if desk.after(GRACE) < until => {
                origin.life = Life::Orphaned { until };
                origin.beat = Beat::None;
                desk.aliases.orphan(link, until);
                let peer = origin.site.host.clone();
                let left = until.since(desk.now);
                desk.explain(Reason::OriginDied { peer, left });
            }
            Life::Linked { .. } => {
                let until = desk.after(GRACE);
                self.part(desk, link, until, loss.why());
            }
        }
    }
}

impl Origin {
    pub(super) const fn is_linked(&self) -> bool {
        match self.life {
            Life::Linked { .. } => true,
            Life::Orphaned { .. } => false,
        }
    }

    /// When we stop to go on without it; none while it lives.
    pub(super) const fn permit_ends(&self) -> Option<Timestamp> {
        match self.life {
            Life::Linked { .. } => None,
            Life::Orphaned { until } => Some(until),
        }
    }
}
