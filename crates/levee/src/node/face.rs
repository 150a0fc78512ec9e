//! What the admin pages see of a node, and the reload behind one of them.
//!
//! A reload reads the settings again, builds what may change anew, and swaps it whole; what fails
//! changes nothing.

use std::net::IpAddr;
use std::sync::Arc;

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
        let mut kept = vec![];
        if let Some(https) = &self.https {
            let (offer, errors) = https.renew(&settings)?;
            if let Some(offer) = offer {
                self.front.set_tls(&offer);
            }
            kept = errors;
        }
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
        let mut told = "reloaded".to_owned();
        if !later.is_empty() {
            let later = later.join(", ");
            told.push_str(&format!("; these take effect at the next start: {later}"));
        }
        if let Some(Ok(Some(zone)) | Err(zone)) = zone {
            told.push_str(&format!("; {zone}"));
        }
        for error in kept {
            told.push_str(&format!("; {error}: the certificate in force stays"));
        }
        Ok(told)
    }
}
