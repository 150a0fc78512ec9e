//! Origins that are not to be helped any more get nothing from this moment on (R9, M1).
//!
//! The grace of an alias is for honest ends: visitors who are under way would not be worse off than
//! those of a site that nobody helps. Whoever is expelled, is no member any more, or is not wanted
//! by the operator has no claim to it, whatever time its own DNS asks for.

use std::collections::BTreeSet;

use levee_vocab::{HostName, LinkId};

use super::Desk;
use crate::plan::{OriginPhase, OriginRoute};
use crate::reason::Reason;

impl Desk {
    /// The origin on `link` is not trusted any more. Where it has come back by another link
    /// meanwhile, that one was judged anew.
    pub(crate) fn cut(&mut self, link: LinkId) {
        let Some(host) = self.aliases.origin_of(link) else {
            return;
        };
        let is_cut = |route: &OriginRoute| {
            route.link == link || is_over(route.phase) && route.origin.host == host
        };
        let until = self.now + self.parameters.alias_keep;
        let late = self.aliases.cut(until, is_cut);
        self.tell_cut(late);
    }

    /// The settings, or who is expelled, may have changed.
    pub(crate) fn cut_unwanted(&mut self) {
        let (limits, allocation) = (&self.parameters.help, &self.allocation);
        let is_cut = |route: &OriginRoute| {
            let host = &route.origin.host;
            limits.check_member(host).is_err() || allocation.is_expelled(host)
        };
        let until = self.now + self.parameters.alias_keep;
        let late = self.aliases.cut(until, is_cut);
        self.tell_cut(late);
    }

    fn tell_cut(&mut self, late: BTreeSet<HostName>) {
        for peer in late {
            self.explain(Reason::GraceEnded { peer });
        }
    }
}

const fn is_over(phase: OriginPhase) -> bool {
    match phase {
        OriginPhase::Ending { .. } | OriginPhase::Expired { .. } => true,
        OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Restored { .. } => false,
    }
}
