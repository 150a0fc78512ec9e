//! Where a name leads: one question, asked of one place.

use std::sync::Arc;

use levee_control::{Destination, HostTable, OriginRoute};

use crate::request::LowerName;
use crate::site::SiteTable;

/// Whom a request is for.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// A site of our own, by its index in the table.
    Own(usize),
    /// An origin that we rescue.
    Rescued(Arc<OriginRoute>),
    /// An origin that may not know yet that we no longer rescue it.
    Restored(Arc<OriginRoute>),
    /// An origin that we no longer rescue.
    Expired(Arc<OriginRoute>),
    /// Nobody here.
    Nobody,
}

impl Route {
    /// The origin that is rescued.
    pub const fn rescued(&self) -> Option<&Arc<OriginRoute>> {
        match self {
            Self::Rescued(origin) => Some(origin),
            Self::Own(_) | Self::Restored(_) | Self::Expired(_) | Self::Nobody => None,
        }
    }

    /// The one name under which its resources are noted and copied, by whichever of its names and
    /// in whichever letters they were asked for.
    pub fn resource_host<'a>(&'a self, sites: &'a SiteTable, asked: &'a str) -> &'a str {
        match self {
            Self::Own(site) => match sites.sites().get(*site) {
                Some(site) => site.name.host.as_str(),
                None => asked,
            },
            Self::Rescued(origin) | Self::Restored(origin) | Self::Expired(origin) => {
                origin.alias.as_str()
            }
            Self::Nobody => asked,
        }
    }
}

/// Where the request for `host` (as sent, without port) leads. Our own names come first: no plan
/// can take them away.
pub(crate) fn route(host: &str, sites: &SiteTable, plan: &HostTable) -> Route {
    let name = LowerName::of(host);
    if let Some(site) = sites.find(name.as_str()) {
        return Route::Own(site);
    }
    match plan.destination(name.as_str()) {
        Destination::Rescued(origin) => Route::Rescued(Arc::clone(origin)),
        Destination::Restored(origin, _) => Route::Restored(Arc::clone(origin)),
        Destination::Expired(origin) => Route::Expired(Arc::clone(origin)),
        Destination::NotOurs => sites.fallback().map_or(Route::Nobody, Route::Own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{Content, Site, UnknownHost};
    use crate::upstream::{UpstreamSettings, Upstreams};
    use crate::{Folder, Upstream};
    use levee_control::OriginPhase;
    use levee_vocab::{LinkId, Misses, Timestamp, WebAddress};
    use std::time::Duration;

    fn address(name: &str) -> WebAddress {
        WebAddress {
            host: name.parse().unwrap(),
            port: 80,
        }
    }

    fn origin(name: &str, phase: OriginPhase) -> Arc<OriginRoute> {
        Arc::new(OriginRoute {
            tls: None,
            slot: 1,
            link: LinkId::Inbound(1),
            origin: address(name),
            address: ([127, 0, 0, 1], 80).into(),
            alias: format!("{name}.alias").parse().unwrap(),
            key: None,
            ttl: Duration::from_secs(60),
            homes: None,
            misses: Misses::Fetch,
            phase,
        })
    }

    fn sites(unknown: UnknownHost) -> SiteTable {
        let place = tempfile::tempdir().unwrap();
        let site = |name, content| Site {
            name: address(name),
            other_names: vec![format!("other-{name}").parse().unwrap()],
            content,
        };
        let folder = Content::Folder(Arc::new(Folder::open(place.path()).unwrap()));
        let upstream = Content::Upstream(Upstream {
            servers: Upstreams::new(
                UpstreamSettings::at(&[([127, 0, 0, 1], 80).into()]),
                Arc::new(|| Timestamp::ZERO),
            ),
            authority: None,
        });
        SiteTable::new(
            vec![site("a.example", folder), site("b.example", upstream)],
            unknown,
        )
    }

    fn plan() -> HostTable {
        let until = Timestamp::ZERO;
        let origins = vec![
            origin("live.example", OriginPhase::Live),
            origin("ending.example", OriginPhase::Ending { until }),
            origin("over.example", OriginPhase::Expired { until }),
            origin("restored.example", OriginPhase::Restored { until }),
            origin("a.example", OriginPhase::Live),
        ];
        let names = origins.iter().enumerate().flat_map(|(index, origin)| {
            [
                (origin.origin.host.clone(), index),
                (origin.alias.clone(), index),
            ]
        });
        HostTable {
            names: names.collect(),
            origins,
        }
    }

    fn check(host: &str, unknown: UnknownHost, expected: &str) {
        let found = match route(host, &sites(unknown), &plan()) {
            Route::Own(site) => format!("own {site}"),
            Route::Rescued(origin) => format!("rescued {}", origin.origin),
            Route::Restored(origin) => format!("restored {}", origin.origin),
            Route::Expired(origin) => format!("expired {}", origin.origin),
            Route::Nobody => "nobody".into(),
        };
        assert_eq!(found, expected, "{host}");
    }

    #[test]
    fn each_name_leads_to_one_place() {
        use UnknownHost::{Refuse, Serve};
        check("A.example", Refuse, "own 0");
        check("a.example.", Refuse, "own 0");
        check("other-b.example", Refuse, "own 1");
        check("live.example", Refuse, "rescued live.example");
        check("LIVE.example.alias", Refuse, "rescued live.example");
        check("ending.example.alias", Refuse, "rescued ending.example");
        check("over.example.alias", Serve, "expired over.example");
        check("restored.example.alias", Serve, "restored restored.example");
        check("nobody.example", Refuse, "nobody");
        check("127.0.0.1", Serve, "own 0");
        check("", Serve, "own 0");
    }

    #[test]
    fn resources_of_a_site_have_one_name() {
        let sites = sites(UnknownHost::Serve);
        for (asked, expected) in [
            ("A.Example", "a.example"),
            ("other-a.example", "a.example"),
            ("192.0.2.1", "a.example"),
            ("other-b.example.", "b.example"),
            ("LIVE.example", "live.example.alias"),
            ("live.example.alias", "live.example.alias"),
        ] {
            let route = route(asked, &sites, &plan());
            let found = route.resource_host(&sites, asked);
            assert_eq!(found, expected, "{asked}");
        }
    }
}
