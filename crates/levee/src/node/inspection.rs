//! The parts of a node that sign, permit, look and expel: made and started here.

use std::sync::Arc;

use levee_control::{Input, RoutePlan};
use levee_proxy::{Fetcher, Front};
use levee_registry::PrivateAddresses;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::made::{https_ports, private_addresses};
use super::{Made, Parts, charge, seed};
use crate::community::Community;
use crate::integrity::{
    InTheClear, Inspector, InspectorParts, IntegrityOffice, Reported, Scene, SceneBoard, Ways,
    keep_accusations, watch_members, watch_neighbours, watch_orphans,
};

/// What looks at others, before it is started.
pub(super) struct Inspection {
    office: Arc<IntegrityOffice>,
    reports: mpsc::Receiver<Reported>,
    scene: watch::Receiver<Arc<Scene>>,
    events: mpsc::Sender<Input>,
    charge: crate::rescue_link::LinkCharge,
    fetcher: Fetcher,
}

/// Where it is told whom to look at, what looks, and its office, for all who need it.
type Opened = (SceneBoard, Option<Inspection>, Option<Arc<IntegrityOffice>>);

impl Parts {
    /// What rescue servers fetch is signed from the start.
    pub(super) fn sign(&self, fetcher: &Fetcher) -> Result<(), String> {
        if self.settings.community.is_none() {
            return Ok(());
        }
        let publisher = IntegrityOffice::publisher(self.trust.identity(), &self.web);
        fetcher.publish_by(publisher.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Nothing looks where the site stands alone.
    pub(super) fn open_inspection(
        &self,
        made: &Made,
        events: mpsc::Sender<Input>,
    ) -> Result<Opened, String> {
        let (board, scene) = SceneBoard::new(seed());
        if self.settings.community.is_none() {
            return Ok((board, None, None));
        }
        let site = (self.web.clone(), self.settings.integrity.permit);
        let state = self.settings.state_folder.as_deref();
        let fetcher = made.fetcher.clone();
        let (office, reports) =
            IntegrityOffice::open(&self.trust, site, state, fetcher.clone(), events.clone())?;
        let inspection = Inspection {
            office: Arc::clone(&office),
            reports,
            scene,
            events,
            charge: charge(made),
            fetcher,
        };
        Ok((board, Some(inspection), Some(office)))
    }

    /// How our visitors come to rescue servers.
    fn ways(&self) -> Ways {
        let tls = self.settings.tls.as_ref();
        let is_sent_on =
            tls.is_some_and(|tls| tls.redirect) || self.settings.site.listen.is_empty();
        let in_the_clear = match is_sent_on {
            true => InTheClear::SentOn,
            false => InTheClear::Served,
        };
        Ways::new(https_ports(self), in_the_clear)
    }

    /// Starts to look.
    pub(super) fn inspect(
        &self,
        inspection: Option<Inspection>,
        (front, community): (&Arc<Front>, Option<&Community>),
        plans: watch::Receiver<Arc<RoutePlan>>,
    ) -> Vec<JoinHandle<()>> {
        let (Some(inspection), Some(community)) = (inspection, community) else {
            return Vec::new();
        };
        let Inspection {
            office,
            reports,
            scene,
            events,
            charge,
            fetcher,
        } = inspection;
        let own = self.settings.community.as_ref();
        let every = self.settings.integrity.sampling;
        let period = self.settings.rescue.registry_period;
        let (trust, registry) = (Arc::clone(&self.trust), community.registry());
        let members = (Arc::clone(&trust), self.web.host.clone());
        let accusing = Arc::clone(&office);
        let accuser = async move {
            keep_accusations(&accusing, &trust, registry, period).await;
        };
        let inspector = Inspector::new(InspectorParts {
            office,
            front: Arc::downgrade(front),
            site: self.web.clone(),
            scene: scene.clone(),
            reports,
            purges: community.purge_line(),
            places: community.alias_places(),
            private_addresses: own.map_or(PrivateAddresses::Refused, private_addresses),
            ways: self.ways(),
            charge: Arc::clone(&charge),
            every,
            seed: seed(),
        });
        let word = (fetcher, community.word());
        let neighbours = watch_neighbours(scene, word, Arc::clone(&charge), (every, seed()));
        vec![
            tokio::spawn(inspector.run()),
            tokio::spawn(accuser),
            tokio::spawn(neighbours),
            tokio::spawn(watch_members(plans.clone(), members, events.clone())),
            tokio::spawn(watch_orphans(plans, charge, events)),
        ]
    }
}
