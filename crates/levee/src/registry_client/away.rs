//! The registries that do not answer: why, and when each is tried again.
//!
//! While another one answers nobody needs them, so nothing else would notice that one has come
//! back, or fails for another reason now. So each is asked one small question from time to time,
//! beside everything else: at first after the shortest pause, then after ones that double. What is
//! told is what the newest attempt said.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use levee_observe::RegistryPlace;
use levee_vocab::Random;
use levee_wire::registry::Request;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::exchange::Exchange;
use super::{DirectoryError, RegistryClientSettings};
use crate::trust::unix_now;

/// Registries that are taken for away.
pub(super) struct AwayRegistries {
    known: BTreeMap<SocketAddr, Away>,
    under_way: BTreeSet<SocketAddr>,
    probes: JoinSet<Probed>,
}

/// What came of a question: the registry, and what is wrong with it.
pub(super) type Probed = (SocketAddr, Result<(), DirectoryError>);

struct Away {
    /// Until then it is left alone.
    until: Instant,
    /// How long it is left alone after the next failure, before chance is taken off.
    pause: Duration,
    /// What the newest attempt came to, in a sentence.
    cause: String,
    /// Unix seconds of that attempt.
    tried_at: f64,
}

impl AwayRegistries {
    pub(super) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            under_way: BTreeSet::new(),
            probes: JoinSet::new(),
        }
    }

    /// It failed and is left alone until then; the first question after that has the shortest of
    /// pauses, where it was not away before.
    pub(super) fn note(
        &mut self,
        registry: SocketAddr,
        (until, pause): (Instant, Duration),
        cause: String,
    ) {
        let before = self.known.get(&registry);
        let away = Away {
            until,
            pause: before.map_or(pause, |before| before.pause),
            cause,
            tried_at: now(),
        };
        self.known.insert(registry, away);
    }

    /// It answers; whether it was away.
    pub(super) fn forget(&mut self, registry: SocketAddr) -> bool {
        self.known.remove(&registry).is_some()
    }

    /// What is left of its rest; none when it may be asked.
    pub(super) fn rest_left(&self, registry: SocketAddr) -> Option<Duration> {
        let away = self.known.get(&registry)?;
        let left = away.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// When it may be asked.
    pub(super) fn ready_at(&self, registry: SocketAddr) -> Option<Instant> {
        self.known.get(&registry).map(|away| away.until)
    }

    /// How it stands with `registry`, beside its being `asked` or `ready`.
    pub(super) fn place(&self, registry: SocketAddr, otherwise: &str) -> RegistryPlace {
        let address = registry.to_string();
        match self.known.get(&registry) {
            Some(away) => RegistryPlace {
                address,
                state: "away".to_owned(),
                cause: away.cause.clone(),
                tried_at: away.tried_at,
            },
            None => RegistryPlace {
                address,
                state: otherwise.to_owned(),
                ..RegistryPlace::default()
            },
        }
    }

    /// When the next of `places` is to be asked whether it is back.
    pub(super) fn next_probe(&self, places: &[SocketAddr]) -> Option<Instant> {
        let idle = places
            .iter()
            .filter(|place| !self.under_way.contains(place));
        idle.filter_map(|place| self.ready_at(*place)).min()
    }

    /// Asks those of `places` whose rest is over. Needs a tokio runtime.
    pub(super) fn probe(&mut self, places: &[SocketAddr], settings: &RegistryClientSettings) {
        for registry in places.iter().copied() {
            let rests = self.rest_left(registry).is_some();
            if rests || !self.known.contains_key(&registry) || !self.under_way.insert(registry) {
                continue;
            }
            let settings = settings.clone();
            self.probes.spawn(async move {
                let result = ask(registry, &settings).await;
                (registry, result)
            });
        }
    }

    /// The next answer; for ever while nobody is asked. Dropped half-way, nothing is lost.
    pub(super) async fn probed(&mut self) -> Probed {
        loop {
            match self.probes.join_next().await {
                Some(Ok(probed)) => {
                    self.under_way.remove(&probed.0);
                    return probed;
                }
                // It was ended with the runtime.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// A question came to nothing. The next pause is twice as long, up to `longest`; of each a
    /// random part is taken, as of those between attempts.
    pub(super) fn still_away(
        &mut self,
        registry: SocketAddr,
        cause: String,
        (longest, random): (Duration, &mut Random),
    ) {
        // It may have answered somebody else meanwhile.
        let Some(away) = self.known.get_mut(&registry) else {
            return;
        };
        away.until = Instant::now() + away.pause.mul_f64(0.5 + 0.5 * random.fraction());
        away.pause = (away.pause * 2).min(longest);
        away.cause = cause;
        away.tried_at = now();
    }
}

/// One small question. Whoever refuses it is there.
async fn ask(
    registry: SocketAddr,
    settings: &RegistryClientSettings,
) -> Result<(), DirectoryError> {
    let asking = async {
        let opened = Exchange::open(settings, registry).await;
        let mut exchange =
            opened.map_err(|source| DirectoryError::Unreachable { registry, source })?;
        match exchange.ask(&Request::Query(settings.site.clone())).await {
            Ok(_) | Err(DirectoryError::Refused { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    };
    let wait = settings.exchange_wait;
    let answer = timeout(wait, asking).await;
    answer.unwrap_or(Err(DirectoryError::TimedOut { registry, wait }))
}

/// Unix seconds.
fn now() -> f64 {
    unix_now().0 as f64 / 1000.0
}
