//! The task that sees to it that each name has a certificate in force.
//!
//! It asks the schedule which name is due, gets a certificate for it, and has it swapped in. It
//! looks again when somebody reloads the settings: whoever has just mended what was wrong need not
//! wait for the rest to be over. It never looks away for more than an hour, so that a clock that
//! was put right, or a machine that was asleep, costs no more than that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use levee_net::Shared;
use levee_observe::CertificateStatus;
use tokio::sync::watch;

use super::authority::Authority;
use super::challenge::{Boards, Way};
use super::error::AcmeError;
use super::name::CertificateName;
use super::order::Client;
use super::records::{LeftBehind, place};
use super::schedule::{Lifetime, Standing};
use super::store::CertificateStore;
use crate::settings::{AcmeSettings, Settings};

/// See the head of this file.
pub struct Keeper {
    parts: KeeperParts,
    names: BTreeMap<CertificateName, Kept>,
    /// None while no certificates are ordered.
    settings: Option<AcmeSettings>,
    /// A record that could not be taken out of DNS yet.
    left_behind: Option<LeftBehind>,
}

/// What the keeper works with.
pub struct KeeperParts {
    /// The settings in force; a new value is a reload.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// Where certificates are kept.
    pub store: CertificateStore,
    /// Where authorities are shown that names are ours.
    pub boards: Boards,
    /// Puts certificates in force.
    pub swap: Arc<dyn Swap>,
    /// How it stands, for the status page.
    pub board: Arc<Shared<Vec<CertificateStatus>>>,
}

/// Puts certificates in force.
pub trait Swap: Send + Sync {
    /// Reads the certificates again and shows them from now on. Blocks while it reads.
    ///
    /// # Errors
    /// A sentence, where they cannot be used.
    fn swap(&self, settings: &Settings) -> Result<(), String>;

    /// From when until when the certificate in force that was ordered for `name` is valid.
    fn lifetime(&self, name: &CertificateName) -> Option<Lifetime>;
}

/// One name.
struct Kept {
    standing: Standing,
    /// How many ways of showing that the name is ours have failed.
    ways_failed: u32,
    /// Why the last attempt failed.
    problem: String,
}

/// The longest look away.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// The same while a record is to be taken out of DNS: a name server that was away comes back.
const TIDY_REST: Duration = Duration::from_secs(60);

impl Keeper {
    /// A keeper for the names in the settings in force.
    pub fn new(mut parts: KeeperParts) -> Self {
        let settings = parts.settings.borrow_and_update().acme.clone();
        let mut keeper = Self {
            parts,
            names: BTreeMap::new(),
            settings,
            left_behind: None,
        };
        keeper.adopt_names();
        keeper.tell("");
        keeper
    }

    /// Keeps the certificates until the server stops.
    ///
    /// Cancel safety: an order that is under way is gone on with at the next start.
    pub async fn run(mut self) {
        loop {
            let wait = match self.next() {
                // An order that a kill cut short is gone on with before its record goes: the
                // authority may be looking.
                Some((name, None)) => {
                    self.renew(&name).await;
                    self.tidy_up().await;
                    continue;
                }
                Some((_, Some(due))) => due.duration_since(SystemTime::now()).unwrap_or_default(),
                None => SLEEP_MAX,
            };
            let longest = self.tidy_up().await;
            if self.sleep(wait.min(longest)).await == Woken::Stopped {
                return;
            }
        }
    }

    /// The name that is due first, and when; none means now.
    fn next(&self) -> Option<(CertificateName, Option<SystemTime>)> {
        let now = SystemTime::now();
        let due = |kept: &Kept| kept.standing.due().filter(|due| *due > now);
        let all = self.names.iter().map(|(name, kept)| (name, due(kept)));
        // None is less than any time.
        let (name, due) = all.min_by_key(|(_, due)| *due)?;
        Some((name.clone(), due))
    }

    async fn sleep(&mut self, time: Duration) -> Woken {
        tokio::select! {
            () = tokio::time::sleep(time) => Woken::Rested,
            changed = self.parts.settings.changed() => match changed {
                Ok(()) => {
                    self.adopt();
                    Woken::Reloaded
                }
                Err(_) => Woken::Stopped,
            },
        }
    }

    /// Takes up settings that were reloaded.
    fn adopt(&mut self) {
        self.settings = self.parts.settings.borrow_and_update().acme.clone();
        self.adopt_names();
        self.tell("");
    }

    fn adopt_names(&mut self) {
        let mut old = std::mem::take(&mut self.names);
        for name in self.settings.iter().flat_map(|acme| &acme.names) {
            let kept = old.remove(name).map(|mut kept| {
                kept.standing.end_rest();
                kept
            });
            let lifetime = self.parts.swap.lifetime(name);
            let fresh = || Kept {
                standing: Standing::new(lifetime, jitter()),
                ways_failed: 0,
                problem: String::new(),
            };
            self.names.insert(name.clone(), kept.unwrap_or_else(fresh));
        }
    }

    async fn renew(&mut self, name: &CertificateName) {
        self.tell(&name.to_string());
        let done = self.obtain(name).await;
        let lifetime = self.parts.swap.lifetime(name);
        let Some(kept) = self.names.get_mut(name) else {
            return;
        };
        match done {
            Ok(()) => {
                tracing::info!(%name, "a new certificate is in force");
                kept.standing.note_success(lifetime);
                kept.problem.clear();
            }
            Err(failure) => {
                let now = SystemTime::now();
                kept.standing.note_failure(now, failure.retry_after);
                tracing::warn!(%name, "no certificate: {}", failure.problem);
                kept.ways_failed += failure.ways_failed;
                kept.problem = failure.problem;
            }
        }
        self.tell("");
    }

    async fn obtain(&self, name: &CertificateName) -> Result<(), Failure> {
        let Some(acme) = &self.settings else {
            return Ok(());
        };
        let failed = self.names.get(name).map_or(0, |kept| kept.ways_failed);
        let way = Way::choose(acme, name, failed);
        // A new way each time, so that a root that was replaced is read.
        let root = acme.root.clone();
        let authority = tokio::task::spawn_blocking(move || Authority::new(root.as_deref()));
        let authority = authority.await.map_err(Failure::of)??;
        let client = Client {
            settings: acme,
            store: &self.parts.store,
            boards: &self.parts.boards,
            authority: &authority,
        };
        let done = client.obtain(name, way).await;
        done.map_err(|error| Failure {
            retry_after: authority.retry_after(),
            ..error.into()
        })?;
        let swap = Arc::clone(&self.parts.swap);
        let settings = Arc::clone(&self.parts.settings.borrow());
        let swapped = tokio::task::spawn_blocking(move || swap.swap(&settings));
        swapped.await.map_err(Failure::of)?.map_err(Failure::of)
    }

    /// Takes records out of DNS that nobody needs any more, and says how soon to look again.
    async fn tidy_up(&mut self) -> Duration {
        let left = self.parts.boards.records.take_back().await;
        let rest = match &left {
            Some(_) => TIDY_REST,
            None => SLEEP_MAX,
        };
        if left != self.left_behind {
            if let Some(LeftBehind { name, cause }) = &left {
                tracing::warn!(%name, %cause, "a record for the authority is still in DNS");
            }
            self.left_behind = left;
            self.tell("");
        }
        rest
    }

    /// What is still in DNS for `name`, for people.
    fn left_for(&self, name: &CertificateName) -> Option<String> {
        let left = self.left_behind.as_ref()?;
        let is_its = place(name).is_ok_and(|place| place == left.name);
        let LeftBehind { name, cause } = left;
        is_its.then(|| format!("the TXT record {name} is still in DNS: {cause}; it is tried again"))
    }

    /// Tells how it stands; `busy` is the name that is being worked on.
    fn tell(&self, busy: &str) {
        let all = self.names.iter();
        let all = all.map(|(name, kept)| {
            let mut status = kept.status(name.to_string(), busy);
            if status.problem.is_empty() {
                status.problem = self.left_for(name).unwrap_or_default();
            }
            status
        });
        self.parts.board.replace(all.collect());
    }
}

impl Kept {
    fn status(&self, name: String, busy: &str) -> CertificateStatus {
        let unix = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            since.map_or(0.0, |since| since.as_secs_f64())
        };
        let is_valid = |lifetime: Lifetime| lifetime.until > SystemTime::now();
        let state = match (name == busy, self.standing.lifetime) {
            (true, _) => "ordering",
            (false, Some(lifetime)) if is_valid(lifetime) => "valid",
            (false, Some(_)) => "expired",
            (false, None) => "missing",
        };
        CertificateStatus {
            state: state.to_owned(),
            name,
            expires: self.standing.lifetime.map(|lifetime| unix(lifetime.until)),
            next_attempt: self.standing.due().map(unix),
            problem: self.problem.clone(),
        }
    }
}

/// Why an attempt has failed.
struct Failure {
    problem: String,
    /// How long the authority wants to be left alone.
    retry_after: Option<Duration>,
    /// 1 where another way of showing that the name is ours may do better.
    ways_failed: u32,
}

impl Failure {
    fn of(problem: impl ToString) -> Self {
        Self {
            problem: problem.to_string(),
            retry_after: None,
            ways_failed: 0,
        }
    }
}

impl From<AcmeError> for Failure {
    fn from(error: AcmeError) -> Self {
        let is_way = matches!(
            error,
            AcmeError::CheckFailed { .. } | AcmeError::NotOffered(_)
        );
        Self {
            ways_failed: u32::from(is_way),
            ..Self::of(error)
        }
    }
}

/// Why a sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Rested,
    Reloaded,
    Stopped,
}

/// 0 to 1. A predictable one would only make servers renew in one moment.
fn jitter() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}
