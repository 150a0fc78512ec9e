//! Tells the community whom we have caught, and hears whom others have.
//!
//! ```text
//!  expelled list ── seen with our own eyes, in the last day ──▶ ACCUSE ──▶ a registry ──▶ all
//!  forgiven      ── taken back ────────────────────────────▶
//!  status page   ◀── ACCUSATIONS ─── what members say of each other, each proved
//! ```
//!
//! Only in a closed community: in an open one a name costs nothing, and two are as cheap. We accuse
//! only whom we have seen ourselves, of whom the list has what was expected beside what was seen;
//! on other members' word we part from somebody, and they can accuse as well as we. An accusation
//! is said again in each period, so that a registry that was restarted knows it. What it comes to
//! is decided in `levee_registry::Accusations`.

use std::time::Duration;

use levee_registry::ACCUSATION_LIFETIME;
use levee_vocab::HostName;
use levee_wire::Digest;
use levee_wire::registry::{Accusation, Sight};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Expelled, IntegrityOffice, unix_now};
use crate::registry_client::RegistryClient;
use crate::trust::Trust;

/// What was taken back and is not known to any registry yet.
#[derive(Clone, Debug)]
pub(super) struct Pardon {
    pub(super) member: HostName,
    pub(super) stamp: u64,
}

/// Pardons that wait for a registry at most; the accusation ends by itself, too.
pub(super) const PARDONS_MAX: usize = 64;

/// Says and hears accusations until the server stops, every `period` and when there is news.
///
/// Cancel safety: it may be dropped at any point.
pub async fn keep_accusations(
    office: &IntegrityOffice,
    trust: &Trust,
    registry: RegistryClient,
    period: Duration,
) {
    if !trust.is_closed() {
        return;
    }
    let mut news: watch::Receiver<u64> = office.news.subscribe();
    loop {
        for accusation in office.accusations(trust) {
            let (accused, stamp) = (accusation.accused.clone(), accusation.stamp);
            let is_pardon = accusation.sight.is_none();
            match registry.accuse(accusation).await {
                Ok(_) if is_pardon => office.note_pardoned(&accused, stamp),
                Ok(_) => {}
                // It is said again in the next period.
                Err(error) => tracing::debug!(%accused, %error, "no registry heard"),
            }
        }
        match registry.accusations().await {
            Ok(said) => trust.note_accusations(said),
            Err(error) => tracing::debug!(%error, "no registry tells of accusations"),
        }
        // Ends early when there is news.
        let _ = timeout(period, news.changed()).await;
    }
}

impl IntegrityOffice {
    /// What we have to say.
    fn accusations(&self, trust: &Trust) -> Vec<Accusation> {
        let names = |member: &HostName| (self.site.host.clone(), member.clone());
        let expelled = self.expelled.members().into_iter().filter_map(|one| {
            let sight = sight_of(&one)?;
            let stamp = one.since.saturating_mul(1000);
            let age = Duration::from_millis(unix_now().0.saturating_sub(stamp));
            let is_over = age >= ACCUSATION_LIFETIME;
            (!is_over).then(|| trust.accusation(names(&one.member), stamp, Some(sight)))
        });
        let pardons = self.pardons.with(|pardons| pardons.clone());
        let pardons = pardons
            .into_iter()
            .map(|pardon| trust.accusation(names(&pardon.member), pardon.stamp, None));
        expelled.chain(pardons).collect()
    }

    /// A registry knows that we have taken it back.
    fn note_pardoned(&self, member: &HostName, stamp: u64) {
        self.pardons.with(|pardons| {
            pardons.retain(|pardon| (&pardon.member, pardon.stamp) != (member, stamp));
        });
    }

    /// Takes back what we have said of a member.
    pub(super) fn pardon(&self, member: &HostName) {
        let (member, stamp) = (member.clone(), unix_now().0);
        self.pardons.with(|pardons| {
            pardons.retain(|pardon| pardon.member != member);
            pardons.push(Pardon { member, stamp });
            let surplus = pardons.len().saturating_sub(PARDONS_MAX);
            pardons.drain(..surplus);
        });
        self.news.send_modify(|news| *news += 1);
    }
}

/// What we have seen ourselves; none where we know it from others.
fn sight_of(expelled: &Expelled) -> Option<Sight> {
    let digest = |text: &str| Digest::from_hexadecimal(text.strip_prefix("sha-256:")?);
    digest(&expelled.expected)?;
    Some(Sight::of(&expelled.target, digest(&expelled.seen)?))
}
