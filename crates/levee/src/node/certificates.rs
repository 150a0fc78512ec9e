//! Certificates that are ordered by themselves, put in force while the server runs.

use std::sync::Arc;

use levee_dns::{DomainName, Zone};
use levee_net::Shared;
use levee_observe::CertificateStatus;
use levee_proxy::Front;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Parts;
use crate::acme::{
    Boards, CertificateName, CertificateStore, Keeper, KeeperParts, KnownZones, Lifetime, Records,
    Swap,
};
use crate::dns::{self, Dns};
use crate::https::Https;
use crate::settings::Settings;

/// How it stands with them, for the status page.
pub(super) type CertificateBoard = Arc<Shared<Vec<CertificateStatus>>>;

/// Shows new certificates on the cores.
struct OnCores {
    https: Arc<Https>,
    front: Arc<Front>,
}

impl Swap for OnCores {
    fn swap(&self, settings: &Settings) -> Result<(), String> {
        // Complaints are about the operator's files: an order is none the worse for them.
        let (offer, _) = self.https.renew(settings)?;
        if let Some(offer) = offer {
            self.front.set_tls(&offer);
        }
        Ok(())
    }

    fn lifetime(&self, name: &CertificateName) -> Option<Lifetime> {
        self.https.lifetime(name)
    }
}

/// The ordering of certificates in a running node.
pub(super) struct Ordering {
    /// The settings in force, for whoever follows a reload.
    pub told: watch::Sender<Arc<Settings>>,
    pub board: CertificateBoard,
    /// None where certificates could not be shown, or not be kept.
    pub keeping: Option<Keeping>,
}

/// The task that keeps certificates, and what it may have put into DNS.
pub(super) struct Keeping {
    keeper: JoinHandle<()>,
    records: Arc<Records>,
}

impl Keeping {
    /// Ends it, also in the middle of an order, and takes its records out of DNS.
    ///
    /// Cancel safety: what is still there goes at the next start.
    pub async fn stop(self) {
        self.keeper.abort();
        let _ = self.keeper.await;
        self.records.finish().await;
    }
}

impl Ordering {
    /// Starts the task that keeps certificates.
    ///
    /// # Errors
    /// When the state folder cannot be written.
    pub fn start(parts: &Parts, front: &Arc<Front>, dns: Option<&Dns>) -> Result<Self, String> {
        let settings = &parts.settings;
        let (told, seen) = watch::channel(Arc::new(settings.clone()));
        let mut ordering = Self {
            told,
            board: CertificateBoard::default(),
            keeping: None,
        };
        if let (Some(https), Some(folder)) = (&parts.https, &settings.state_folder) {
            let store = CertificateStore::open(folder).map_err(|error| error.to_string())?;
            let records = Records::open(zones(settings, dns)?, store.clone());
            let records = Arc::new(records.map_err(|error| error.to_string())?);
            let keeper = Keeper::new(KeeperParts {
                settings: seen,
                store,
                boards: Boards {
                    challenges: Arc::clone(https.challenges()),
                    records: Arc::clone(&records),
                },
                swap: Arc::new(OnCores {
                    https: Arc::clone(https),
                    front: Arc::clone(front),
                }),
                board: Arc::clone(&ordering.board),
            });
            let keeper = tokio::spawn(keeper.run());
            ordering.keeping = Some(Keeping { keeper, records });
        }
        Ok(ordering)
    }
}

/// The zones in which we may put records.
fn zones(settings: &Settings, dns: Option<&Dns>) -> Result<KnownZones, String> {
    let site = settings.dns.as_ref().zip(dns);
    let site = site.map(|(settings, dns)| (DomainName::from(&settings.zone), dns.zone()));
    let aliases = settings
        .alias_zone
        .as_ref()
        .map(dns::alias_zone)
        .transpose()?;
    let aliases = aliases.map(|zone| (zone.zone().clone(), Arc::new(zone) as Arc<dyn Zone>));
    Ok(site.into_iter().chain(aliases).collect())
}
