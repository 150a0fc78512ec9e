//! What the admin pages see of a node, and the reload behind one of them.
//!
//! A reload reads the settings again, builds what may change anew, and swaps it whole; what fails
//! changes nothing. Certificates are the exception: each stands for itself, so those that are good
//! are renewed, the others stay what they were, and the reload fails with the complaint about them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use levee_net::Shared;
use levee_observe::{AccessLog, History, Status, StatusBoard};
use levee_proxy::{Fetcher, Front, Upstreams};
use levee_vocab::{ByteRate, HostName, Purge, WebAddress};
use tokio::sync::{mpsc, watch};

use super::made::{copied, sites};
use super::purge_office::PurgeOffice;
use crate::admin::{Reporting, StatusSource};
use crate::brain_task::Order;
use crate::dns::{Dns, NewZone};
use crate::drill::{DrillDesk, DrillOffice};
use crate::https::Https;
use crate::integrity::IntegrityOffice;
use crate::replicator::CopiedSite;
use crate::serve::Again;
use crate::settings::Settings;

/// What the admin pages see of the node, and the reload behind one of them.
pub(super) struct Face {
    pub board: Arc<StatusBoard>,
    pub again: Again,
    pub orders: mpsc::Sender<Order>,
    pub front: Arc<Front>,
    pub fetcher: Fetcher,
    pub upstreams: Arc<Upstreams>,
    pub https: Option<Arc<Https>>,
    pub log: AccessLog,
    pub purges: Arc<PurgeOffice>,
    pub drills: Arc<DrillOffice>,
    pub integrity: Option<Arc<IntegrityOffice>>,
    pub dns: Option<Arc<Dns>>,
    pub copied: watch::Sender<CopiedSite>,
    pub told: watch::Sender<Arc<Settings>>,
    pub in_force: Shared<Settings>,
    pub web: WebAddress,
    pub address: IpAddr,
    pub link: ByteRate,
}

impl StatusSource for Face {
    fn status(&self) -> Arc<Status> {
        self.board.status()
    }

    fn history(&self) -> History {
        self.board.history()
    }

    fn drills(&self) -> &dyn DrillDesk {
        &*self.drills
    }

    fn purge(&self, purge: Purge) -> Reporting {
        let office = Arc::clone(&self.purges);
        Box::pin(async move { office.purge(purge).await })
    }

    fn forgive(&self, member: &HostName) -> Result<String, String> {
        match &self.integrity {
            Some(office) => office.forgive(member),
            None => Err(format!("{member} is not expelled: this site stands alone")),
        }
    }

    fn reload(&self) -> Result<String, String> {
        let Reloaded { told, not_taken } = self.change()?;
        match not_taken.is_empty() {
            true => Ok(told),
            false => Err(format!("{told}; but {}", not_taken.join("; "))),
        }
    }
}

/// What a reload came to that changed something.
pub(super) struct Reloaded {
    /// What was done.
    pub told: String,
    /// Certificates that were not taken: those in force stay.
    pub not_taken: Vec<String>,
}

impl Face {
    /// Reads the settings again, and all that they name.
    ///
    /// # Errors
    /// A complaint, and then nothing has changed.
    pub fn change(&self) -> Result<Reloaded, String> {
        let (mut settings, changed) = (self.again)()?;
        let later = self
            .in_force
            .with(|old| settings.wait_for_restart(old, &changed));
        let zone = match &self.dns {
            Some(dns) => dns.read_again(&settings)?,
            None => None,
        };
        let sites = Arc::new(sites(&settings, &self.web, &self.upstreams)?);
        let parameters = settings
            .parameters(self.web.port, self.address, self.link)
            .check();
        let parameters = parameters
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
        let not_taken = self.renew_certificates(&settings)?;
        self.orders
            .try_send(Order::Change(Box::new(parameters)))
            .map_err(|_| "the server is busy or stopping; try again".to_owned())?;
        let gone = self.upstreams.change(settings.upstream.group.clone());
        self.fetcher.close_idle(&gone);
        self.front.set_sites(&sites);
        self.fetcher.limit_disk_of_others(settings.help.disk);
        // Looked at before: nothing can be sent while somebody looks.
        let https = self.copied.borrow().https;
        self.copied.send_replace(copied(
            &settings,
            (&self.web, https),
            self.fetcher.publisher().cloned(),
        ));
        self.log.reopen();
        self.told.send_replace(Arc::new(settings.clone()));
        self.in_force.replace(settings);
        let zone = zone.map(NewZone::serve);
        let zone = match zone {
            Some(Ok(Some(zone)) | Err(zone)) => Some(zone),
            Some(Ok(None)) | None => None,
        };
        let told = self.account(&later, zone);
        Ok(Reloaded { told, not_taken })
    }

    /// Puts renewed certificates in force, and gives the complaints about those that were not
    /// taken.
    fn renew_certificates(&self, settings: &Settings) -> Result<Vec<String>, String> {
        let Some(https) = &self.https else {
            return Ok(vec![]);
        };
        let (offer, not_taken) = https.renew(settings)?;
        if let Some(offer) = offer {
            self.front.set_tls(&offer);
        }
        Ok(not_taken)
    }

    /// What was done, in a sentence.
    fn account(&self, later: &[&str], zone: Option<String>) -> String {
        let mut told = "reloaded".to_owned();
        if !later.is_empty() {
            let later = later.join(", ");
            told.push_str(&format!("; these take effect at the next start: {later}"));
        }
        let https = self.https.iter();
        let troubles = https.flat_map(|https| https.troubles(SystemTime::now()));
        // One that was not taken is a failure, and told as such.
        let expired = troubles.filter(|one| one.in_force_until.is_none());
        for note in zone.into_iter().chain(expired.map(|one| one.problem)) {
            told.push_str(&format!("; {note}"));
        }
        told
    }
}
