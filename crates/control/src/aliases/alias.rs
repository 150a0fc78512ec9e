//! One alias: who gave it out, and how it goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_vocab::{HostName, LinkId, Misses, Timestamp};

use crate::plan::{OriginPhase, OriginRoute};
use crate::view::{AliasRecord, OwnName};

/// See the file header.
#[derive(Clone, Debug)]
pub(super) enum Alias {
    /// Given out by this process.
    Given(Arc<OriginRoute>),
    /// Restored from the state folder: only good for the way back.
    Restored {
        record: AliasRecord,
        phase: OriginPhase,
    },
}

impl Alias {
    pub(super) fn name(&self) -> &HostName {
        match self {
            Self::Given(route) => &route.alias,
            Self::Restored { record, .. } => &record.alias,
        }
    }

    pub(super) fn record(&self, number: u64, own_name: OwnName) -> AliasRecord {
        match self {
            Self::Given(route) => AliasRecord {
                number,
                alias: route.alias.clone(),
                origin: route.origin.clone(),
                tls: route.tls,
                own_name,
            },
            Self::Restored { record, .. } => record.clone(),
        }
    }

    fn phase(&self) -> OriginPhase {
        match self {
            Self::Given(route) => route.phase,
            Self::Restored { phase, .. } => *phase,
        }
    }

    /// The way of an origin whose visitors are served.
    pub(super) fn served(&self) -> Option<&OriginRoute> {
        match self {
            Self::Given(route) => match route.phase {
                OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => {
                    Some(&**route)
                }
                OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => None,
            },
            Self::Restored { .. } => None,
        }
    }

    /// It leads back, and nobody else is asked for its objects.
    pub(super) fn expire(&mut self, until: Timestamp) {
        let next = OriginPhase::Expired { until };
        match self {
            Self::Given(route) => {
                let route = Arc::make_mut(route);
                route.phase = next;
                route.homes = None;
            }
            Self::Restored { phase, .. } => *phase = next,
        }
    }

    /// When it begins to lead back.
    pub(super) fn ends_at(&self) -> Option<Timestamp> {
        match self.phase() {
            OriginPhase::Ending { until } | OriginPhase::Restored { until } => Some(until),
            // The rescue that it belongs to ends it in time.
            OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Expired { .. } => None,
        }
    }

    pub(super) fn forgotten_at(&self) -> Option<Timestamp> {
        match self.phase() {
            OriginPhase::Expired { until } => Some(until),
            OriginPhase::Live
            | OriginPhase::Orphaned { .. }
            | OriginPhase::Ending { .. }
            | OriginPhase::Restored { .. } => None,
        }
    }

    pub(super) fn route(&self) -> Arc<OriginRoute> {
        match self {
            Self::Given(route) => route.clone(),
            // Never fetched from: only the way back is known.
            Self::Restored { record, phase } => Arc::new(OriginRoute {
                slot: 0,
                link: LinkId::Inbound(0),
                origin: record.origin.clone(),
                address: SocketAddr::from(([0, 0, 0, 0], 0)),
                tls: record.tls,
                alias: record.alias.clone(),
                key: None,
                ttl: Duration::ZERO,
                homes: None,
                misses: Misses::SendBack,
                phase: *phase,
            }),
        }
    }
}
