//! Permits: an origin's word that its rescue servers may go on without it for a while.
//!
//! The origin gives one when a rescue begins and renews it before it ends, so what a rescue server
//! has in its hands when the origin dies is nearly as long as the setting says. It carries the
//! origin's key and signature. The link says already who is at its other end; the signature makes
//! the permit something that can be shown to others, and its key is the one by which everything
//! that is fetched for this origin is checked from then on.
//!
//! In an open community that key is believed when it is heard first, and for as long as the link
//! lasts. In a closed one it must be the key of the member list; there the key by which the origin
//! calls for help is believed at once, so that nothing hangs on a permit but its time.

use std::sync::Arc;
use std::time::Duration;

use levee_proxy::{OriginKey, Space};
use levee_trust::{CLOCK_SKEW_MAX, PublicKey, Purpose, Signature};
use levee_vocab::WebAddress;
use levee_wire::{Permit, PermitProof};
use thiserror::Error;

use super::{IntegrityOffice, unix_now};

/// Why a permit counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PermitFault {
    /// It is not signed, and in a closed community it must be.
    #[error("it is not signed, and this community is closed")]
    Unsigned,
    /// Key or signature cannot be read.
    #[error("its key or its signature is none")]
    Malformed,
    /// The key is not that of this origin, or not the one that was heard first.
    #[error("its key is not that of the origin")]
    WrongKey,
    /// The signature does not fit.
    #[error("its signature does not fit")]
    BadSignature,
    /// It was given long ago, or by a clock that is wrong.
    #[error("it was given long ago, or the clocks of the two machines differ")]
    Stale,
}

impl PermitFault {
    /// For counters and the log.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Unsigned => "permit_unsigned",
            Self::Malformed => "permit_malformed",
            Self::WrongKey => "permit_wrong_key",
            Self::BadSignature => "permit_bad_signature",
            Self::Stale => "permit_stale",
        }
    }
}

/// A permit is renewed when so much of it has passed: a rescue server that hears nothing for that
/// long has lost its link anyway.
const RENEWALS: u32 = 4;

impl IntegrityOffice {
    /// The permit for who serves us under `alias`; none where the operator gives none.
    pub fn permit_for(&self, alias: &WebAddress) -> Option<Permit> {
        if self.permit.is_zero() {
            return None;
        }
        let stamp = unix_now().0;
        let claim = Permit::claim(&self.site, alias, self.permit, stamp);
        let signature = self.identity.sign(Purpose::Permit, claim.as_bytes());
        Some(Permit {
            length: self.permit,
            proof: Some(PermitProof {
                stamp,
                key: self.identity.key().to_string(),
                signature: signature.to_string(),
            }),
        })
    }

    /// Time between two permits.
    pub fn renewal(&self) -> Duration {
        (self.permit / RENEWALS).max(Duration::from_secs(1))
    }

    /// Whether `permit` is the word of `origin`, whom we serve under `alias`. If so its key is
    /// believed from now on. `heard` is the key of an earlier permit over the same link.
    ///
    /// # Errors
    /// When it is not.
    pub fn take_permit(
        &self,
        (origin, alias): (&WebAddress, &WebAddress),
        permit: &Permit,
        heard: &mut Option<PublicKey>,
    ) -> Result<Duration, PermitFault> {
        let Some(proof) = &permit.proof else {
            return match (self.accepts_key)(&origin.host, None) && heard.is_none() {
                true => Ok(permit.length),
                false => Err(PermitFault::Unsigned),
            };
        };
        let key: PublicKey = proof.key.parse().map_err(|_| PermitFault::Malformed)?;
        let signature: Signature = proof
            .signature
            .parse()
            .map_err(|_| PermitFault::Malformed)?;
        let is_known = heard.is_none_or(|heard| heard == key);
        if !is_known || !(self.accepts_key)(&origin.host, Some(&key)) {
            return Err(PermitFault::WrongKey);
        }
        let claim = Permit::claim(origin, alias, permit.length, proof.stamp);
        key.verify(Purpose::Permit, claim.as_bytes(), &signature)
            .map_err(|_| PermitFault::BadSignature)?;
        let apart = unix_now().0.abs_diff(proof.stamp);
        if Duration::from_millis(apart) > CLOCK_SKEW_MAX {
            return Err(PermitFault::Stale);
        }
        *heard = Some(key);
        self.believe(origin, key);
        Ok(permit.length)
    }

    /// What is fetched for `origin` is checked with `key` from now on.
    pub fn believe(&self, origin: &WebAddress, key: PublicKey) {
        let space = Space::Origin(origin.host.clone(), origin.port);
        self.fetcher.believe(space, origin_key(key));
    }
}

/// The key of an origin as the data plane uses it.
pub fn origin_key(key: PublicKey) -> OriginKey {
    let verify = move |bytes: &[u8], signature: &[u8; 64]| {
        let signature = Signature::from_bytes(*signature);
        key.verify(Purpose::Publication, bytes, &signature).is_ok()
    };
    OriginKey {
        text: key.to_string(),
        verify: Arc::new(verify),
    }
}
