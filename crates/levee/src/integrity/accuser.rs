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

use levee_proxy::digest_of;
use levee_registry::ACCUSATION_LIFETIME;
use levee_vocab::HostName;
use levee_wire::Digest;
use levee_wire::registry::{Accusation, Sight};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Expelled, IntegrityOffice, Pardon, unix_now};
use crate::registry_client::RegistryClient;
use crate::trust::Trust;

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
            let accused = accusation.accused.clone();
            // It is said again in the next period, as long as it counts.
            if let Err(error) = registry.accuse(accusation).await {
                tracing::debug!(%accused, %error, "no registry heard");
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
            let counts = age_of(stamp) < ACCUSATION_LIFETIME;
            counts.then(|| trust.accusation(names(&one.member), stamp, Some(sight)))
        });
        let pardons = self
            .pardons
            .at(unix_now().0)
            .into_iter()
            .map(|pardon| trust.accusation(names(&pardon.member), pardon.stamp, None));
        expelled.chain(pardons).collect()
    }

    /// Takes back what we have said of a member. Blocks for the disk.
    ///
    /// # Errors
    /// When that cannot be kept over a restart: then it is not taken back either.
    pub(super) fn pardon(&self, member: &HostName) -> Result<(), String> {
        let (member, stamp) = (member.clone(), unix_now().0);
        self.pardons.add(Pardon { member, stamp })?;
        self.news.send_modify(|news| *news += 1);
        Ok(())
    }
}

/// How long ago that was, in milliseconds since 1970.
fn age_of(stamp: u64) -> Duration {
    Duration::from_millis(unix_now().0.saturating_sub(stamp))
}

/// What we have seen ourselves; none where we know it from others.
fn sight_of(expelled: &Expelled) -> Option<Sight> {
    let digest = |text: &str| Digest::from_hexadecimal(text.strip_prefix("sha-256:")?);
    digest(&expelled.expected)?;
    let seen = match expelled.seen.as_str() {
        "-" => return None,
        // Where it sent visitors is no page: the digest of the words stands for it.
        text => digest(text).unwrap_or_else(|| digest_of(text.as_bytes())),
    };
    Some(Sight::of(&expelled.target, seen))
}
