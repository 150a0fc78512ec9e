//! Looks at every server's `status.json`, five times a second, and remembers what matters.
//!
//! The admin address is not on the limited link, so looking costs the sites nothing. The JSON is
//! read as any other program would read it: by field names, unknown ones left alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::crowd::client::{Habit, Trail, Visitor};
use crate::crowd::meter::Traffic;
use crate::crowd::url::{Scheme, Url};

/// What a server says of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// `normal`, `sos` or `rescue`.
    pub state: String,
    /// Whether it serves.
    pub ready: bool,
    /// Its link.
    pub link: LinkSeen,
    /// T_low, T_alert, T_high, T_coff.
    pub thresholds: [f64; 4],
    /// Rates of its last control interval.
    pub rates: RatesSeen,
    /// Its counters.
    pub lifetime: LifetimeSeen,
    /// Who rescues it.
    pub rescue_servers: Vec<PeerSeen>,
    /// Whom it rescues.
    pub origins: Vec<PeerSeen>,
    /// Whom it would ask, and what they offer in bytes a second.
    pub candidates: Vec<(String, u64)>,
}

/// A link.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LinkSeen {
    /// B.
    pub capacity: u64,
    /// D_out.
    pub usable: u64,
    /// Bytes that left over it, with overhead.
    pub carried: u64,
    /// The most within any second.
    pub peak: u64,
}

/// Rates of a control interval.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RatesSeen {
    /// d_out.
    pub out: u64,
}

/// Counters since the start.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LifetimeSeen {
    /// Redirects.
    pub redirects: u64,
    /// Requests by rescue servers.
    pub fetches_served: u64,
    /// Responses given for rescued origins.
    pub rescue_requests: u64,
    /// Refused with 503.
    pub refused: u64,
    /// Closed without an answer.
    pub dropped: u64,
}

/// The other side of a rescue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PeerSeen {
    /// Name and port.
    pub site: String,
    /// The alias in use, with its port.
    pub alias: String,
    /// D_redi.
    pub rate: u64,
}

/// One look at a server.
#[derive(Clone, Debug)]
pub struct Look {
    /// When, since the start of the crowd.
    pub at: Duration,
    /// What it said.
    pub seen: Seen,
}

/// Remembers the looks at several servers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    looks: Arc<Mutex<BTreeMap<String, Vec<Look>>>>,
}

/// Often enough to tell a control interval from the next.
const PERIOD: Duration = Duration::from_millis(200);
/// A server that does not answer this fast on its admin address is looked at again later.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

impl Watch {
    /// Looks at the server behind `admin` until dropped; times count from `start`.
    pub async fn follow(&self, name: String, admin: SocketAddr, start: Instant) {
        let visitor = Visitor::new(
            Traffic::since(start),
            "levee-lab watch".to_owned(),
            Habit::KeepAlive,
        );
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if let Some(seen) = look(&visitor, admin).await {
                let at = start.elapsed();
                let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
                looks
                    .entry(name.clone())
                    .or_default()
                    .push(Look { at, seen });
            }
        }
    }

    /// The last look at a server; all empty before the first.
    pub fn last(&self, name: &str) -> Seen {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let last = looks.get(name).and_then(|looks| looks.last());
        last.map(|look| look.seen.clone()).unwrap_or_default()
    }

    /// Every look at a server, oldest first.
    pub fn all(&self, name: &str) -> Vec<Look> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.get(name).cloned().unwrap_or_default()
    }
}

/// One look; none where the server does not answer, or not with a status.
pub async fn look<T: DeserializeOwned>(visitor: &Visitor, admin: SocketAddr) -> Option<T> {
    let url = Url {
        scheme: Scheme::Http,
        host: admin.ip().to_string(),
        port: admin.port(),
        target: "/status.json".to_owned(),
    };
    let mut trail = Trail::default();
    let fetching = visitor.fetch(&Method::GET, &url, &mut trail);
    let fetched = tokio::time::timeout(ANSWER_WITHIN, fetching).await;
    serde_json::from_slice(&fetched.ok()?.ok()?.body).ok()
}

/// When a site in need was calm again, and when nobody helped it any more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recovery {
    /// d_out fell below T_low for good.
    pub calm: Option<Duration>,
    /// State normal, and no rescue server left.
    pub normal: Option<Duration>,
}

impl Recovery {
    /// Reads it from the looks at the site since `since`, which must be in SOS then.
    pub fn of(looks: &[Look], since: Duration) -> Self {
        let mut recovery = Self::default();
        for look in looks.iter().filter(|look| look.at >= since) {
            let usable = look.seen.link.usable as f64;
            let is_calm = (look.seen.rates.out as f64) < look.seen.thresholds[0] * usable;
            recovery.calm = match is_calm {
                true => recovery.calm.or(Some(look.at)),
                false => None,
            };
            if look.seen.is_normal() {
                recovery.normal = Some(look.at);
                return recovery;
            }
        }
        recovery
    }

    /// Seconds from calm to normal; none where it has not come to that.
    pub fn seconds(&self) -> Option<f64> {
        Some((self.normal?.checked_sub(self.calm?)?).as_secs_f64())
    }
}

impl Seen {
    /// Whether it neither rescues nor is rescued.
    pub fn is_normal(&self) -> bool {
        self.state == "normal" && self.rescue_servers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_at(second: u64, out: u64, state: &str) -> Look {
        Look {
            at: Duration::from_secs(second),
            seen: Seen {
                state: state.to_owned(),
                link: LinkSeen {
                    usable: 1_000,
                    ..LinkSeen::default()
                },
                thresholds: [0.1, 0.5, 0.75, 0.9],
                rates: RatesSeen { out },
                ..Seen::default()
            },
        }
    }

    #[test]
    fn recovery_counts_from_the_last_time_it_became_calm() {
        let looks = [
            look_at(1, 0, "normal"),
            look_at(5, 50, "sos"),
            look_at(6, 500, "sos"),
            look_at(9, 99, "sos"),
            look_at(20, 0, "sos"),
            look_at(40, 0, "normal"),
        ];
        let recovery = Recovery::of(&looks, Duration::from_secs(2));
        assert_eq!(recovery.seconds(), Some(31.0));
        let unfinished = Recovery::of(&looks[..5], Duration::from_secs(2));
        assert_eq!(unfinished.seconds(), None);
    }

    #[test]
    fn a_status_is_read_by_names_and_strangers_are_left_alone() {
        let text = r#"{"state":"sos","unknown":[1],"link":{"capacity":54000,"peak":53999},
            "candidates":[["alice.localhost",400000]],"rescue_servers":[{"site":"a","rate":3}]}"#;
        let seen: Seen = serde_json::from_str(text).unwrap();
        assert_eq!(seen.link.peak, 53_999);
        assert_eq!(seen.candidates[0].1, 400_000);
        assert!(!seen.is_normal());
    }
}
