//! Whether the origins that we serve without a link to them are still members, and we with them
//! (M1).
//!
//! A link looks at each newer member list itself. But an origin that has died has none, and neither
//! has one whose last visitors are served after its rescue: who is let go there gets nothing from
//! the next list on. Where it is we who are no member any more, an origin that we take for dead has
//! let us go.

use std::sync::Arc;

use levee_control::{Input, LinkLoss, OriginPhase, RoutePlan};
use levee_vocab::HostName;
use tokio::sync::{mpsc, watch};

use crate::trust::Trust;

/// Looks at each newer list, and at each origin whose link has ended, until nobody can hear of it
/// any more. `own` is our own name.
///
/// Cancel safety: it may be dropped at any point.
pub async fn watch_members(
    mut plans: watch::Receiver<Arc<RoutePlan>>,
    (trust, own): (Arc<Trust>, HostName),
    events: mpsc::Sender<Input>,
) {
    let mut lists = trust.newer_lists();
    loop {
        let plan = Arc::clone(&plans.borrow_and_update());
        lists.borrow_and_update();
        for input in let_go(&plan, &own, |name| trust.is_listed(name)) {
            if events.send(input).await.is_err() {
                return;
            }
        }
        let changed = tokio::select! {
            changed = plans.changed() => changed,
            changed = lists.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// The origins without a link that are to be let go.
fn let_go(plan: &RoutePlan, own: &HostName, is_listed: impl Fn(&HostName) -> bool) -> Vec<Input> {
    let origins = plan.hosts.origins.iter();
    let lost = origins.filter_map(|origin| {
        let loss = match (origin.phase, is_listed(&origin.origin.host)) {
            (OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. }, false) => {
                LinkLoss::Distrusted
            }
            (OriginPhase::Orphaned { .. }, true) if !is_listed(own) => LinkLoss::NotAMember,
            (
                OriginPhase::Live
                | OriginPhase::Orphaned { .. }
                | OriginPhase::Ending { .. }
                | OriginPhase::Restored { .. }
                | OriginPhase::Expired { .. },
                _,
            ) => return None,
        };
        let link = origin.link;
        Some(Input::LinkLost { link, loss })
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use levee_control::{HostTable, OriginRoute};
    use levee_vocab::{LinkId, Misses, Timestamp, WebAddress};

    use super::*;

    const OWN: &str = "www.own.example";
    const ORIGIN: &str = "www.origin.example";
    const LINK: LinkId = LinkId::Inbound(1);

    /// What becomes of an origin in this phase where these are members.
    fn becomes(phase: OriginPhase, members: &[&str]) -> Vec<Input> {
        let host = |name: &str| name.parse().expect("a good name");
        let route = OriginRoute {
            tls: None,
            slot: 1,
            link: LINK,
            origin: WebAddress {
                host: host(ORIGIN),
                port: 80,
            },
            address: ([127, 0, 0, 1], 80).into(),
            alias: host("vh1.example"),
            key: None,
            ttl: Duration::from_secs(60),
            homes: None,
            misses: Misses::Fetch,
            phase,
        };
        let hosts = HostTable {
            origins: vec![Arc::new(route)],
            ..HostTable::default()
        };
        let plan = RoutePlan {
            hosts,
            ..RoutePlan::default()
        };
        let is_listed = |name: &HostName| members.contains(&name.as_str());
        let_go(&plan, &host(OWN), is_listed)
    }

    #[test]
    fn who_has_no_link_is_let_go_when_one_of_us_is_no_member_any_more() {
        let until = Timestamp::ZERO;
        let (orphaned, ending) = (
            OriginPhase::Orphaned { until },
            OriginPhase::Ending { until },
        );
        let lost = |loss| vec![Input::LinkLost { link: LINK, loss }];
        for phase in [orphaned, ending] {
            assert_eq!(becomes(phase, &[OWN, ORIGIN]), []);
            assert_eq!(becomes(phase, &[OWN]), lost(LinkLoss::Distrusted));
        }
        assert_eq!(becomes(orphaned, &[ORIGIN]), lost(LinkLoss::NotAMember));
        // It ends by itself, and its visitors are innocent.
        assert_eq!(becomes(ending, &[ORIGIN]), []);
        // A link looks itself.
        assert_eq!(becomes(OriginPhase::Live, &[OWN]), []);
        assert_eq!(becomes(OriginPhase::Expired { until }, &[OWN]), []);
    }
}
