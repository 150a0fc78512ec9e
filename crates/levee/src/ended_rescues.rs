//! What is forgotten of an origin when its rescue is over: its objects and its key.
//!
//! A rescue may outlive its link, where the origin has died and permits it, and an alias serves for
//! a moment after its rescue. So it is the plan that says whose rescue is over, not the link.

use levee_control::{OriginPhase, OriginRoute, RoutePlan};
use levee_proxy::{Fetcher, Space};
use levee_vocab::WebAddress;

/// Objects of an origin whose rescue is over make room for others. A new rescue of the same origin
/// begins with nothing: what was purged while there was no link is still here. Keys are kept for
/// those alone whom we serve by `now`; each is learned after the plan with its origin is out.
pub(crate) fn forget_ended(fetcher: &Fetcher, before: &RoutePlan, now: &RoutePlan) {
    let ended = before.hosts.origins.iter();
    let ended =
        ended.filter(|origin| is_served(before, &origin.origin) && !is_served(now, &origin.origin));
    let began = now.hosts.origins.iter();
    let began = began.filter(|origin| is_live(now, origin) && !is_live(before, origin));
    for origin in ended.chain(began) {
        fetcher.forget(&space(&origin.origin));
    }
    // After the objects: what is still on its way is checked, or not kept.
    fetcher.keep_keys(|space| match space {
        Space::Own(_) => true,
        Space::Origin(host, port) => is_served(
            now,
            &WebAddress {
                host: host.clone(),
                port: *port,
            },
        ),
    });
}

fn space(origin: &WebAddress) -> Space {
    Space::Origin(origin.host.clone(), origin.port)
}

fn is_served(plan: &RoutePlan, origin: &WebAddress) -> bool {
    let mut routes = plan.hosts.origins.iter();
    routes.any(|route| route.origin == *origin && serves(route.phase))
}

fn is_live(plan: &RoutePlan, origin: &OriginRoute) -> bool {
    let mut routes = plan.hosts.origins.iter();
    routes.any(|route| route.link == origin.link && route.phase == OriginPhase::Live)
}

const fn serves(phase: OriginPhase) -> bool {
    match phase {
        OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => true,
        OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use levee_control::HostTable;
    use levee_net::Clock;
    use levee_proxy::{FetchSettings, OriginKey};
    use levee_vocab::{LinkId, Misses, Timestamp};
    use tokio::runtime::Handle;

    use super::*;

    fn web(name: &str) -> WebAddress {
        let host = name.parse().expect("a good name");
        WebAddress { host, port: 80 }
    }

    /// A plan with these origins, on the links 1, 2 and so on.
    fn plan(origins: &[(&str, OriginPhase)]) -> RoutePlan {
        let routes = (1..).zip(origins).map(|(number, (name, phase))| {
            Arc::new(OriginRoute {
                tls: None,
                slot: 1,
                link: LinkId::Inbound(number),
                origin: web(name),
                address: ([127, 0, 0, 1], 80).into(),
                alias: format!("vh{number}.example").parse().expect("an alias"),
                key: None,
                ttl: Duration::from_secs(60),
                homes: None,
                misses: Misses::Fetch,
                phase: *phase,
            })
        });
        RoutePlan {
            hosts: HostTable {
                origins: routes.collect(),
                ..HostTable::default()
            },
            ..RoutePlan::default()
        }
    }

    #[tokio::test]
    async fn the_key_of_an_origin_is_kept_as_long_as_it_is_served_and_no_longer() {
        let clock: levee_proxy::Clock = Arc::new(|| Clock.now());
        let fetcher = Fetcher::new(FetchSettings::default(), Handle::current(), clock);
        let fetcher = fetcher.expect("a fetcher");
        let (site, until) = ("www.origin.example", Timestamp::ZERO);
        let key = || OriginKey {
            text: "ed25519:test".to_owned(),
            verify: Arc::new(|_, _| true),
        };
        let is_known = || fetcher.origin_key(&space(&web(site))).is_some();
        let mut before = plan(&[]);
        let mut next = |origins: &[(&str, OriginPhase)]| {
            let now = plan(origins);
            forget_ended(&fetcher, &before, &now);
            before = now;
        };
        next(&[(site, OriginPhase::Live)]);
        fetcher.believe(space(&web(site)), key());
        for phase in [
            OriginPhase::Live,
            OriginPhase::Orphaned { until },
            OriginPhase::Ending { until },
        ] {
            next(&[(site, phase)]);
            assert!(is_known(), "{phase:?}");
        }
        // It has come back by another link meanwhile.
        let expired = OriginPhase::Expired { until };
        next(&[(site, expired), (site, OriginPhase::Live)]);
        assert!(is_known());
        next(&[(site, expired), ("www.other.example", OriginPhase::Live)]);
        assert!(!is_known());
        // Its last words may be heard after its end; then it goes with the next plan.
        fetcher.believe(space(&web(site)), key());
        next(&[(site, expired)]);
        assert!(!is_known());
    }
}
