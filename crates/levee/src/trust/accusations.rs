//! What members of a closed community say of each other: signed here, checked here, and kept for
//! the status page.
//!
//! Who counts for how much is decided in `levee_registry::Accusations`, by registries for their
//! answers, and here once more for what the page says.

use std::collections::BTreeSet;

use levee_net::Clock;
use levee_observe::AccusationStatus;
use levee_registry::{ACCUSATION_LIFETIME, Accusations};
use levee_trust::{Deed, Purpose};
use levee_vocab::HostName;
use levee_wire::registry::{Accusation, AccusationProof, Sight};

use super::messages::{check_age, verify, word};
use super::{Denied, Trust, unix_now};

impl Trust {
    /// That `accuser`, who we are, says this of `accused`; without a sight, that it takes back what
    /// it said.
    pub fn accusation(
        &self,
        (accuser, accused): (HostName, HostName),
        stamp: u64,
        sight: Option<Sight>,
    ) -> Accusation {
        let key = word(self.identity().key());
        let mut accusation = Accusation {
            accuser,
            accused,
            stamp,
            sight,
            proof: AccusationProof {
                signature: key.clone(),
                key,
            },
        };
        let text = accusation.signed_text(&accusation.proof.key);
        accusation.proof.signature = self.sign(Purpose::Accusation, &text);
        accusation
    }

    /// Whether a member said this of a member. `told_by` is who passed it on.
    ///
    /// # Errors
    /// When it is not so, or the community is open; that is counted.
    pub fn check_accusation(&self, accusation: &Accusation, told_by: &str) -> Result<(), Denied> {
        self.look_at_accusation(accusation).map_err(|why| {
            let what = format!("accusation by {} from {told_by}", accusation.accuser);
            self.deny(&what, why)
        })
    }

    fn look_at_accusation(&self, accusation: &Accusation) -> Result<(), Denied> {
        if !self.is_closed() {
            return Err(Denied::OpenCommunity);
        }
        let AccusationProof { key, signature } = &accusation.proof;
        let text = accusation.signed_text(key);
        let key = verify(Purpose::Accusation, key, signature, &text)?;
        self.check_member(&accusation.accuser, &key, Deed::Accuse)?;
        let accused = &accusation.accused;
        let is_member = self.roster(|roster| {
            let list = roster.newest().map(levee_trust::SignedList::list);
            list.is_some_and(|list| list.member(accused).is_some())
        });
        if is_member == Some(false) {
            return Err(Denied::NobodyAccused(accused.clone()));
        }
        check_age(accusation.stamp, ACCUSATION_LIFETIME)
    }

    /// Those among the accusers who are no members by the newest list, or have another key now.
    pub fn gone_accusers(&self, said: &Accusations) -> BTreeSet<HostName> {
        let is_gone = |said: &&Accusation| {
            let key = said.proof.key.as_str().parse();
            let is_member = key.is_ok_and(|key| {
                let checked = self.roster(|roster| {
                    let checked = roster.check(&said.accuser, &key, unix_now());
                    checked.is_ok()
                });
                checked.unwrap_or(true)
            });
            !is_member
        };
        let gone = said.all().filter(is_gone);
        gone.map(|said| said.accuser.clone()).collect()
    }

    /// Whether enough members accuse this one.
    pub fn is_left_out(&self, member: &HostName) -> bool {
        self.said_now(|said| said.are_believed_of(member))
    }

    /// Takes what a registry tells of what members say of each other. Each word holds until a newer
    /// one of the same member takes its place, until it expires, or until who said it is no member
    /// any more: that a registry is silent about it lifts nothing.
    pub fn note_accusations(&self, told: Vec<Accusation>) {
        self.said_now(|said| {
            for accusation in told {
                said.hear(Clock.now(), unix_now().0, accusation);
            }
            let gone = self.gone_accusers(said);
            if !gone.is_empty() {
                said.forget(&gone);
            }
        });
    }

    /// What members say of each other and what has not expired.
    pub(super) fn said_now<R>(&self, ask: impl FnOnce(&mut Accusations) -> R) -> R {
        self.accusations.with(|said| {
            said.expire(Clock.now());
            ask(said)
        })
    }
}

/// As the status tells them.
pub fn accusations(said: &Accusations) -> Vec<AccusationStatus> {
    let shown = said.in_force().into_iter().filter_map(|said_by_one| {
        let sight = said_by_one.sight.as_ref()?;
        Some(AccusationStatus {
            accuser: said_by_one.accuser.to_string(),
            accused: said_by_one.accused.to_string(),
            since: said_by_one.stamp / 1000,
            target: sight.target.clone(),
            seen: format!("sha-256:{}", sight.seen.hexadecimal()),
            left_out: said.are_believed_of(&said_by_one.accused),
        })
    });
    shown.collect()
}
