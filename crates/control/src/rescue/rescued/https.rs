//! A rescue server whose alias does not answer by HTTPS: no visitor by HTTPS can be sent there.
//!
//! It says so when it registers; of older versions, and where a certificate has just expired, only
//! its answer to the SOS tells. Where all visitors come by HTTPS it would keep its promise for
//! nothing, so it is let go at once and the next is asked. Where only some do it helps
//! with the others, but whoever may help with all comes first. Certificates come, so it is asked
//! again after a while.

use levee_vocab::{HostName, LinkId};

use super::{Offer, Sos, hosts};
use crate::desk::Desk;
use crate::output::{Output, ShutdownCause};
use crate::parameters::Visitors;
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
