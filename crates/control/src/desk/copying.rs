//! What the desk does about hot resources: it keeps their ledger, and tells people of it.

use levee_vocab::LinkId;

use super::Desk;
use crate::copies::{CopyNews, CopyOutcome, CopyRules, Member};
use crate::hotspot::{HotSpotOutput, HotSpotStep};
use crate::law::Law;
use crate::output::Output;
use crate::parameters::Parameters;
use crate::reason::Reason;
use crate::view::HotView;

/// Reasons about copies that one input may give: a hundred resources may become hot at once, and
/// the journal has other news.
const REASONS_MAX: usize = 4;

impl Desk {
    /// New settings. A law that copies nothing forgets the copies; what is hot is noted under any
    /// law, so that another one finds it when it comes in the middle of a crowd.
    pub(crate) fn adopt(&mut self, parameters: &Parameters) {
        self.parameters = parameters.clone();
        match self.parameters.hot_spots.law {
            Law::Combined | Law::Resources => {}
            Law::Load => self.copies.forget_copies(),
        }
    }

    /// Resources changed their heat. Those of origins that we rescue, or rescued, are not ours to
    /// copy.
    pub(crate) fn note_steps(&mut self, steps: &[HotSpotOutput]) {
        let is_ours = |one: &&HotSpotOutput| {
            let host = one.url.split('/').next().unwrap_or_default();
            // It may have become hot before: then it must be able to cool down.
            one.step == HotSpotStep::Normal || !self.aliases.leads_to_another(host)
        };
        let ours: Vec<HotSpotOutput> = steps.iter().filter(is_ours).cloned().collect();
        let news = self.copies.step(self.now, &ours);
        self.tell_copies(news);
    }

    /// A copy was made, or could not be.
    pub(crate) fn end_copy(&mut self, copy: (LinkId, &str), outcome: CopyOutcome) {
        let interval = self.parameters.interval;
        let news = self.copies.end(self.now, copy, outcome, interval);
        self.tell_copies(news.into_iter().collect());
    }

    /// Orders what is to be copied to `members` now.
    pub(crate) fn order_copies(&mut self, members: &[Member]) {
        match self.parameters.hot_spots.law {
            Law::Combined | Law::Resources => {}
            Law::Load => return,
        }
        let rules = CopyRules {
            origin: self.parameters.site.clone(),
            replication: self.parameters.hot_spots.replication,
            embedded: self.parameters.hot_spots.embedded,
            interval: self.parameters.interval,
        };
        let (orders, news) = self.copies.order(self.now, members, &rules);
        self.tell_copies(news);
        for order in orders {
            self.act(Output::Copy(order));
        }
    }

    /// What is copied, for people.
    pub(crate) fn hot_views(&self) -> Vec<HotView> {
        match self.parameters.hot_spots.law {
            Law::Combined | Law::Resources => self.copies.views(),
            Law::Load => Vec::new(),
        }
    }

    fn tell_copies(&mut self, news: Vec<CopyNews>) {
        for news in news.into_iter().take(REASONS_MAX) {
            self.explain(match news {
                CopyNews::Copying { url, servers, gap } => Reason::Copying { url, servers, gap },
                CopyNews::Redirecting { url, servers, gap } => {
                    Reason::RedirectingResource { url, servers, gap }
                }
                CopyNews::Normal { url } => Reason::ServedHere { url },
                CopyNews::Refused { link, url } => Reason::CopyRefused { link, url },
            });
        }
    }
}
