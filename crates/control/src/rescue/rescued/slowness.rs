//! A rescue server from which visitors wait too long for what they came for.
//!
//! It has offered more than its link can carry, by mistake or on purpose, and will do so again; so
//! it is left alone for longer than one that only had no room. Not for ever: a link that is shared
//! with others is slow at some hours and quick at others.

use levee_vocab::LinkId;

use super::{Farewell, Sos};
use crate::desk::Desk;
use crate::output::ShutdownCause;
use crate::rescue::Phase;

/// Control intervals for which it is left alone.
const REST_AFTER_SLOWNESS: f64 = 300.0;

impl Sos {
    /// What the rescue server on `link` delivers is late.
    pub(crate) fn too_slow(mut self, desk: &mut Desk, link: LinkId) -> Phase {
        if let Some(site) = self.helper(link) {
            desk.rest(&site, REST_AFTER_SLOWNESS);
        }
        let cause = ShutdownCause::TooSlow;
        self.part(desk, link, Farewell::ShutDown(cause), cause.why());
        self.tell_peers(desk);
        self.settle(desk)
    }
}
