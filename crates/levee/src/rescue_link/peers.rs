//! Which of the rescue servers that an origin names may be asked for its objects.
//!
//! An origin could name any address, so that its rescue servers ask there. What holds for the
//! address in an SOS holds for these as far as it can: inner networks need the operator's
//! permission. That a stranger is asked at an address is bounded elsewhere: who does not answer as
//! a home does is left alone (`levee_control::Asks`).

use levee_registry::PrivateAddresses;
use levee_vocab::Peers;
use tracing::debug;

use super::Refusals;
use super::caller::check_range;

/// `told` without those at whose addresses no server can be, or none that we may ask. Each is
/// counted.
pub(super) fn believed(mut told: Peers, private: PrivateAddresses, refusals: &Refusals) -> Peers {
    told.members.retain(|peer| match check_range(peer.address, private) {
        Ok(()) => true,
        Err(refusal) => {
            debug!(alias = %peer.alias, %refusal, "a peer that an origin names is not believed");
            refusals.note("peer_refused");
            false
        }
    });
    told
}
