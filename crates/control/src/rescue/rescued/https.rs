//! A rescue server whose alias does not answer by HTTPS: no visitor by HTTPS can be sent there.
//!
//! It says so when it registers; of older versions, and where a certificate has just expired, only
//! its answer to the SOS tells. Where all visitors come by HTTPS it would keep its promise for
//! nothing, so it is let go at once and the next is asked. Where only some do it helps with the
//! others, but whoever may help with all comes first; and where those who come by HTTPS are too
//! many for us, one that can have them is looked for, however much room the others have left.
//! Certificates come, so it is asked again after a while.

use levee_vocab::{HostName, LinkId};

use super::{Offer, Sos, hosts};
use crate::allocation::Need;
use crate::desk::Desk;
use crate::output::{Output, ShutdownCause};
use crate::parameters::{Redirects, Thresholds, Visitors};
use crate::reason::Reason;
use crate::rescue::Phase;

/// Control intervals for which somebody is believed to have no HTTPS.
const BELIEVED: f64 = 300.0;

impl Sos {
    /// Notes what the offer of `site` says of HTTPS. Whether it is declined for that: it is no use,
    /// or less than another one's may be.
    pub(super) fn is_declined(&self, desk: &mut Desk, offer: &Offer, site: &HostName) -> bool {
        let without_until = match offer.tls {
            Some(_) => None,
            None => Some(desk.after(BELIEVED)),
        };
        desk.allocation.note_https(site, without_until);
        match (offer.tls, desk.parameters.visitors) {
            (Some(_), _) | (None, Visitors::Http) => false,
            (None, Visitors::Https) => true,
            (None, Visitors::Both) if desk.allocation.need() == Need::OneMoreByHttps => true,
            // A drill asks each once, and so everybody.
            (None, Visitors::Both) => {
                let taken = hosts(&self.servers);
                desk.allocation.drill_ends().is_none()
                    && desk
                        .allocation
                        .has_other_with_https(desk.now, &desk.parameters, &taken)
            }
        }
    }

    /// Where the others have room left: whether those are used up to T_coff that visitors by HTTPS
    /// can be sent to, or there is none, and those visitors alone load us above T_alert. Who was
    /// taken before we had a certificate may be of no use now.
    pub(super) fn need_by_https(&self, desk: &Desk) -> Need {
        let Thresholds { alert, cutoff, .. } = desk.parameters.thresholds;
        let is_theirs = match (desk.parameters.visitors, desk.parameters.redirects) {
            (Visitors::Both, Redirects::On) => desk.load.by_https() > alert,
            (Visitors::Https, Redirects::On) => true,
            (Visitors::Http, _) | (_, Redirects::Off) => false,
        };
        let levels = self
            .redirect_levels()
            .into_iter()
            .zip(self.servers.values());
        let mut by_https = levels.filter(|(_, server)| server.tls.is_some());
        match is_theirs && by_https.all(|(level, _)| level >= cutoff) {
            true => Need::OneMoreByHttps,
            false => Need::None,
        }
    }

    /// Lets it go, says why, and asks the next.
    pub(super) fn decline(mut self, desk: &mut Desk, link: LinkId, site: HostName) -> Phase {
        let cause = ShutdownCause::NoHttps;
        desk.act(Output::ShutDown { link, cause });
        desk.explain(Reason::NotHelped {
            site,
            why: cause.why(),
        });
        self.calls.continue_round(desk, &hosts(&self.servers));
        self.settle(desk)
    }
}
