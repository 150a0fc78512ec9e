//! The registries that do not answer: why, and when each is tried again.
//!
//! While another one answers nobody needs them, so nothing else would notice that one has come
//! back, or fails for another reason now. So each is asked one small question from time to time,
//! beside everything else: at first after the shortest pause, then after ones that double. What is
//! told is what the newest attempt said.
//!
//! One table serves whoever asks registries, the keeper of the connection and the witnesses of
//! searches: what one of them finds out the other need not wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_net::Shared;
use levee_observe::RegistryPlace;
use levee_vocab::Random;
use levee_wire::registry::Request;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::exchange::Exchange;
use super::{DirectoryError, RegistryClientSettings};
use crate::trust::unix_now;

/// Who is away. Clones are the same table.
#[derive(Clone, Default)]
pub(super) struct AwayTable(Arc<Table>);

#[derive(Default)]
struct Table {
    places: Shared<BTreeMap<SocketAddr, Away>>,
    /// Tells the keeper that a witness has found one away.
    news: Notify,
}

/// The keeper's end of the table: asks those that are away whether they are back.
pub(super) struct AwayRegistries {
    table: AwayTable,
    under_way: BTreeSet<SocketAddr>,
    probes: JoinSet<Probed>,
}

/// What came of a question: the registry, and what is wrong with it.
pub(super) type Probed = (SocketAddr, Result<(), DirectoryError>);

/// Whether the registry says anything at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contact {
    Answers,
    Away,
}

struct Away {
    /// By the newest attempt. One that answers again has still to be of use in a search: until then
    /// its pauses are not forgotten, or who answers small questions only would make each search
    /// wait.
    contact: Contact,
    /// Until then it is left alone.
    until: Instant,
    /// How long it is left alone after the next failure, before chance is taken off.
    pause: Duration,
    /// What the newest attempt came to, in a sentence.
    cause: String,
    /// Unix seconds of that attempt.
    tried_at: f64,
}

impl AwayTable {
    /// The keeper could not use it, and leaves it alone until then; the first question after that
    /// has the shortest of pauses, where it was not away before.
    pub(super) fn note(
        &self,
        registry: SocketAddr,
        (until, pause): (Instant, Duration),
        cause: String,
    ) {
        self.0.places.with(|places| {
            let before = places.get(&registry);
            let before = before.filter(|before| before.contact == Contact::Away);
            let away = Away {
                contact: Contact::Away,
                until,
                pause: before.map_or(pause, |before| before.pause),
                cause,
                tried_at: now(),
            };
            places.insert(registry, away);
        });
    }

    /// A witness had no answer of it in a search. Each pause is twice as long as the one before,
    /// from the shortest to the longest.
    pub(super) fn failed_in_search(
        &self,
        registry: SocketAddr,
        cause: String,
        (shortest, longest): (Duration, Duration),
    ) {
        self.0.places.with(|places| {
            let before = places.get(&registry);
            // What was so long ago says nothing of now.
            let counts = |before: &&Away| Instant::now() < before.until + longest;
            let rest = before.filter(counts).map_or(shortest, |one| one.pause);
            let away = Away {
                contact: Contact::Away,
                until: Instant::now() + rest,
                pause: (rest * 2).min(longest),
                cause,
                tried_at: now(),
            };
            places.insert(registry, away);
        });
        self.0.news.notify_one();
    }

    /// Waits until a witness has found one away. Only one may wait. Dropped half-way, nothing is
    /// lost.
    pub(super) async fn changed(&self) {
        self.0.news.notified().await;
    }

    /// It is of use; whether it was away.
    pub(super) fn forget(&self, registry: SocketAddr) -> bool {
        let before = self.0.places.with(|places| places.remove(&registry));
        before.is_some_and(|before| before.contact == Contact::Away)
    }

    /// Forgets all but these.
    pub(super) fn keep(&self, registries: &[SocketAddr]) {
        let is_kept = |place: &SocketAddr, _: &mut Away| registries.contains(place);
        self.0.places.with(|places| places.retain(is_kept));
    }

    /// Whether a search goes without it: it is away, or has only just come back.
    pub(super) fn spares_searches(&self, registry: SocketAddr) -> bool {
        let is_spared = |one: &Away| one.contact == Contact::Away || Instant::now() < one.until;
        self.0
            .places
            .with(|places| places.get(&registry).is_some_and(is_spared))
    }

    /// When it may be asked, where it is away.
    fn ready_at(&self, registry: SocketAddr) -> Option<Instant> {
        self.0.places.with(|places| {
            let away = places.get(&registry)?;
            (away.contact == Contact::Away).then_some(away.until)
        })
    }

    /// It answers a small question; whether it was away.
    fn is_back(&self, registry: SocketAddr) -> bool {
        self.0.places.with(|places| {
            let Some(away) = places.get_mut(&registry) else {
                return false;
            };
            away.until = Instant::now() + away.pause;
            std::mem::replace(&mut away.contact, Contact::Answers) == Contact::Away
        })
    }

    /// A question came to nothing. Of each pause a random part is taken, as of those between
    /// attempts.
    fn still_away(
        &self,
        registry: SocketAddr,
        cause: String,
        (longest, random): (Duration, &mut Random),
    ) {
        self.0.places.with(|places| {
            // It may have answered somebody else meanwhile.
            let Some(away) = places.get_mut(&registry) else {
                return;
            };
            away.until = Instant::now() + away.pause.mul_f64(0.5 + 0.5 * random.fraction());
            away.pause = (away.pause * 2).min(longest);
            away.cause = cause;
            away.tried_at = now();
        });
    }

    fn place(&self, registry: SocketAddr, otherwise: &str) -> RegistryPlace {
        let address = registry.to_string();
        let told = |places: &mut BTreeMap<SocketAddr, Away>| {
            let away = places.get(&registry)?;
            (away.contact == Contact::Away).then(|| (away.cause.clone(), away.tried_at))
        };
        match self.0.places.with(told) {
            Some((cause, tried_at)) => RegistryPlace {
                address,
                state: "away".to_owned(),
                cause,
                tried_at,
            },
            None => RegistryPlace {
                address,
                state: otherwise.to_owned(),
                ..RegistryPlace::default()
            },
        }
    }
}

impl AwayRegistries {
    pub(super) fn new(table: AwayTable) -> Self {
        Self {
            table,
            under_way: BTreeSet::new(),
            probes: JoinSet::new(),
        }
    }

    /// As [`AwayTable::note`].
    pub(super) fn note(
        &mut self,
        registry: SocketAddr,
        pauses: (Instant, Duration),
        cause: String,
    ) {
        self.table.note(registry, pauses, cause);
    }

    /// It has answered what we wanted of it.
    pub(super) fn forget(&mut self, registry: SocketAddr) {
        self.table.forget(registry);
    }

    /// It answers a small question; whether it was away.
    pub(super) fn is_back(&mut self, registry: SocketAddr) -> bool {
        self.table.is_back(registry)
    }

    /// What is left of its rest; none when it may be asked.
    pub(super) fn rest_left(&self, registry: SocketAddr) -> Option<Duration> {
        let until = self.ready_at(registry)?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// When it may be asked, where it is away.
    pub(super) fn ready_at(&self, registry: SocketAddr) -> Option<Instant> {
        self.table.ready_at(registry)
    }

    /// How it stands with `registry`, beside its being `asked` or `ready`.
    pub(super) fn place(&self, registry: SocketAddr, otherwise: &str) -> RegistryPlace {
        self.table.place(registry, otherwise)
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
            let is_due = self
                .ready_at(registry)
                .is_some_and(|at| at <= Instant::now());
            if !is_due || !self.under_way.insert(registry) {
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

    /// A question came to nothing. The next pause is twice as long, up to `longest`.
    pub(super) fn still_away(
        &mut self,
        registry: SocketAddr,
        cause: String,
        pauses: (Duration, &mut Random),
    ) {
        self.table.still_away(registry, cause, pauses);
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

    fn registry() -> SocketAddr {
        ([127, 0, 0, 1], 7400).into()
    }

    #[tokio::test(start_paused = true)]
    async fn who_answers_small_questions_only_makes_searches_wait_ever_less_often() {
        let table = AwayTable::default();
        let mut failures = 0;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(600) {
            if table
                .ready_at(registry())
                .is_some_and(|at| at <= Instant::now())
            {
                assert!(table.is_back(registry()));
                assert_eq!(table.place(registry(), "ready").state, "ready");
            }
            if !table.spares_searches(registry()) {
                table.failed_in_search(registry(), "no answer".to_owned(), PAUSES);
                assert_eq!(table.place(registry(), "ready").state, "away");
                failures += 1;
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!(failures < 20, "{failures}");
        // Once it was of use in a search, all that is forgotten.
        table.forget(registry());
        table.failed_in_search(registry(), "no answer".to_owned(), PAUSES);
        let rest = table.ready_at(registry()).map(|at| at - Instant::now());
        assert_eq!(rest, Some(PAUSES.0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_keeper_finds_away_no_search_waits_for_and_the_other_way_round() {
        let table = AwayTable::default();
        let keeper = AwayRegistries::new(table.clone());
        let until = Instant::now() + PAUSES.0;
        table.note(registry(), (until, PAUSES.0), "refused".to_owned());
        assert!(table.spares_searches(registry()));
        assert!(table.forget(registry()));
        table.failed_in_search(registry(), "no answer".to_owned(), PAUSES);
        assert_eq!(keeper.rest_left(registry()), Some(PAUSES.0));
        assert_eq!(keeper.place(registry(), "ready").cause, "no answer");
        assert!(keeper.next_probe(&[registry()]).is_some());
        table.keep(&[]);
        assert!(!table.spares_searches(registry()));
    }
}
