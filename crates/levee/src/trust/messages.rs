//! Signed messages: made with our key, checked against the member list.
//!
//! An entry is signed by its site and checked by every registry and every member that uses it; a
//! call for help by the origin, for the one who is asked. In an open community nothing is signed
//! and everything passes.

use std::time::Duration;

use levee_registry::RegistryLimits;
use levee_trust::{CLOCK_SKEW_MAX, Deed, PublicKey, Purpose, Signature, Stale, UnixMillis, may};
use levee_vocab::HostName;
use levee_wire::registry::{Entry, Farewell, Proof, ProofWord};
use levee_wire::rescue::{Sos, SosProof};

use super::{Counterpart, Denied, Trust, unix_now};

impl Trust {
    /// A stamp for a message of ours: later than all before.
    pub fn stamp(&self) -> UnixMillis {
        let ahead_max = match self.is_closed() {
            true => CLOCK_SKEW_MAX,
            // There only registries look at stamps.
            false => RegistryLimits::default().clock_ahead_max,
        };
        self.stamps
            .with(|stamps| stamps.next(unix_now(), ahead_max))
    }

    /// Our entry with a fresh stamp; and a proof in a closed community.
    pub fn signed_entry(&self, mut entry: Entry) -> Entry {
        entry.stamp = self.stamp().0;
        entry.proof = None;
        if self.is_closed() {
            let key = word(self.identity.key());
            let sign = |text: &String| self.sign(Purpose::Registration, text);
            let signature = sign(&entry.signed_text(&key));
            let https_signature = entry.signed_https_text(&key).as_ref().map(sign);
            let asked = entry.lifetime;
            entry.proof = Some(Proof {
                key,
                signature,
                asked,
                https_signature,
            });
        }
        entry
    }

    /// As [`Self::signed_entry`].
    pub fn signed_farewell(&self, mut farewell: Farewell) -> Farewell {
        farewell.stamp = self.stamp().0;
        farewell.proof = None;
        if self.is_closed() {
            let key = word(self.identity.key());
            let signature = self.sign(Purpose::Registration, &farewell.signed_text(&key));
            farewell.proof = Some(Proof {
                key,
                signature,
                asked: Duration::ZERO,
                https_signature: None,
            });
        }
        farewell
    }

    /// Whether the site said what its entry says, and is a member. `told_by` is who passed it on.
    ///
    /// # Errors
    /// When it is not so; that is counted.
    pub fn check_entry(&self, entry: &Entry, told_by: &str) -> Result<(), Denied> {
        if !self.is_closed() {
            return Ok(());
        }
        let text = |key: &ProofWord| entry.signed_text(key);
        let proof = entry.proof.as_ref();
        let lives = proof.map_or(entry.lifetime, |proof| proof.asked);
        self.check_said(&entry.site.host, proof, text)
            .and_then(|()| check_https(entry))
            .and_then(|()| check_age(entry.stamp, lives))
            .map_err(|why| {
                let what = format!("entry of {} from {told_by}", entry.site.host);
                self.deny(&what, why)
            })
    }

    /// Whether the site took its entry back itself. As [`Self::check_entry`].
    ///
    /// # Errors
    /// As [`Self::check_entry`].
    pub fn check_farewell(&self, farewell: &Farewell, told_by: &str) -> Result<(), Denied> {
        if !self.is_closed() {
            return Ok(());
        }
        let text = |key: &ProofWord| farewell.signed_text(key);
        self.check_said(&farewell.site, farewell.proof.as_ref(), text)
            .and_then(|()| check_age(farewell.stamp, FAREWELL_AGE_MAX))
            .map_err(|why| {
                let what = format!("farewell of {} from {told_by}", farewell.site);
                self.deny(&what, why)
            })
    }

    /// Our call for help to `asked`, with a proof in a closed community.
    pub fn signed_sos(&self, sos: Sos, asked: &HostName) -> Sos {
        if !self.is_closed() {
            return sos;
        }
        let (key, stamp) = (word(self.identity.key()), self.stamp().0);
        sos.proved(key, stamp, asked, |text| {
            self.sign(Purpose::RescueRequest, text)
        })
    }

    /// Whether a call for help to us, `asked`, is the origin's own and was not here before.
    /// `caller` is who proved to be at the other end.
    ///
    /// # Errors
    /// When it is not so; that is counted.
    pub fn check_sos(
        &self,
        sos: &Sos,
        asked: &HostName,
        caller: Counterpart,
    ) -> Result<(), Denied> {
        if !self.is_closed() {
            return Ok(());
        }
        self.look_at_sos(sos, asked, caller).map_err(|why| {
            let what = format!("call for help of {}", sos.origin);
            self.deny(&what, why)
        })
    }

    fn look_at_sos(&self, sos: &Sos, asked: &HostName, caller: Counterpart) -> Result<(), Denied> {
        let proof = sos.proof.as_ref().ok_or(Denied::NotSigned)?;
        let text = SosProof::signed_text(&proof.covered, asked);
        let key = verify(Purpose::RescueRequest, &proof.id, &proof.signature, &text)?;
        if caller != Counterpart::Key(key) {
            return Err(Denied::ForeignMessage);
        }
        self.check_member(&sos.origin.host, &key, Deed::CallForHelp)?;
        let stamp = UnixMillis(proof.stamp);
        let taken = |window: &mut levee_trust::ReplayWindow| window.take(&key, stamp, unix_now());
        self.window.with(taken).map_err(Denied::Stale)
    }

    /// A signature of ours over the lines of an answer, bound to the asker's `nonce`.
    pub fn answer_signature(&self, nonce: u64, lines: &str) -> (ProofWord, ProofWord) {
        let signature = self.sign(Purpose::RegistryAnswer, &answer_text(nonce, lines));
        (word(self.identity.key()), signature)
    }

    /// Whether a registry of our community gave these lines as the answer to our question.
    ///
    /// # Errors
    /// When it did not; that is counted.
    pub fn check_answer(
        &self,
        (nonce, lines): (u64, &str),
        signed: Option<&(ProofWord, ProofWord)>,
        registry: Counterpart,
        what: &str,
    ) -> Result<(), Denied> {
        if !self.is_closed() {
            return Ok(());
        }
        let look = || {
            let (id, signature) = signed.ok_or(Denied::NotSigned)?;
            let text = answer_text(nonce, lines);
            let key = verify(Purpose::RegistryAnswer, id, signature, &text)?;
            match registry == Counterpart::Key(key) {
                true => Ok(()),
                false => Err(Denied::ForeignMessage),
            }
        };
        look().map_err(|why| self.deny(what, why))
    }

    fn check_said(
        &self,
        site: &HostName,
        proof: Option<&Proof>,
        text: impl FnOnce(&ProofWord) -> String,
    ) -> Result<(), Denied> {
        let proof = proof.ok_or(Denied::NotSigned)?;
        let text = text(&proof.key);
        let key = verify(Purpose::Registration, &proof.key, &proof.signature, &text)?;
        self.check_member(site, &key, Deed::Register)
    }

    pub(super) fn check_member(
        &self,
        site: &HostName,
        key: &PublicKey,
        deed: Deed,
    ) -> Result<(), Denied> {
        let found = self.roster(|roster| roster.check(site, key, unix_now()));
        let Some(role) = found.transpose()? else {
            return Ok(());
        };
        match may(Some(role), deed) {
            true => Ok(()),
            false => Err(Denied::NotItsRole {
                name: site.clone(),
                role,
                deed,
            }),
        }
    }

    pub(super) fn sign(&self, purpose: Purpose, text: &str) -> ProofWord {
        word(self.identity.sign(purpose, text.as_bytes()))
    }
}

/// Whether an entry whose proof is good says of HTTPS what its site signed. It may say nothing, as
/// older registries leave that word out.
fn check_https(entry: &Entry) -> Result<(), Denied> {
    let Some(proof) = &entry.proof else {
        return Err(Denied::NotSigned);
    };
    let Some(text) = entry.signed_https_text(&proof.key) else {
        return Ok(());
    };
    let signature = proof.https_signature.as_ref().ok_or(Denied::NotSigned)?;
    verify(Purpose::Registration, &proof.key, signature, &text).map(|_| ())
}

/// An entry may be as old as it was to live, and no older: a registry may have passed it on late,
/// but a recorded one is worth nothing. Which of several is the newest, registries know by the
/// stamp.
pub(super) fn check_age(stamp: u64, lives: Duration) -> Result<(), Denied> {
    let (stamp, now) = (UnixMillis(stamp), unix_now());
    let (behind, ahead) = (now.since(stamp), stamp.since(now));
    if behind > lives.saturating_add(CLOCK_SKEW_MAX) {
        return Err(Stale::TooOld(behind).into());
    }
    match ahead > CLOCK_SKEW_MAX {
        true => Err(Stale::FromTheFuture(ahead).into()),
        false => Ok(()),
    }
}

/// As long as any entry lives: a registry that was cut off may learn of a farewell late, and a
/// recorded one takes nothing back that was said after it.
const FAREWELL_AGE_MAX: Duration = Duration::from_secs(3600);

/// The key that `id` names, if it signed `text`.
pub(super) fn verify(
    purpose: Purpose,
    id: &ProofWord,
    signature: &ProofWord,
    text: &str,
) -> Result<PublicKey, Denied> {
    let unreadable = |_| levee_trust::BadSignature;
    let key: PublicKey = id.as_str().parse().map_err(unreadable)?;
    let signature: Signature = signature.as_str().parse().map_err(unreadable)?;
    key.verify(purpose, text.as_bytes(), &signature)?;
    Ok(key)
}

fn answer_text(nonce: u64, lines: &str) -> String {
    format!("{nonce:016x}\n{lines}")
}

/// A key or a signature as it travels.
pub(super) fn word(text: impl ToString) -> ProofWord {
    let word = text.to_string().parse();
    word.expect("keys and signatures are of the letters that a proof word may have")
}
