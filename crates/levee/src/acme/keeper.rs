//! The task that sees to it that each name has a certificate in force.
//!
//! It asks the schedule which name is due, gets a certificate for it, and has it swapped in. It
//! looks again when somebody reloads the settings: whoever has just mended what was wrong need not
//! wait for the rest to be over. It never looks away for more than an hour, so that a clock that
//! was put right, or a machine that was asleep, costs no more than that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::CertificateIdentifier;
use levee_net::Shared;
use levee_observe::{CertificateStatus, OrderCount};
use tokio::sync::watch;

use super::advice::{Advice, identifier};
use super::authority::Authority;
use super::challenge::{Boards, Way};
use super::delegation::first_place;
use super::error::AcmeError;
use super::name::CertificateName;
use super::order::Client;
use super::records::LeftBehind;
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
    /// When the authority is asked again when it wants the certificate to be renewed; none means
    /// now.
    next_question: Option<SystemTime>,
    /// How many ways of showing that the name is ours have failed.
    ways_failed: u32,
    /// Why the last attempt failed, in a sentence and in a word.
    problem: (String, &'static str),
    /// Orders, by what became of them.
    orders: BTreeMap<&'static str, u64>,
}

/// What is done for a name, in this order where both are due: an authority that wants to be left
/// alone for longer than usual is heard first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    Ask,
    Order,
}

/// The longest look away.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// The same while a record is to be taken out of DNS: a name server that was away comes back.
const TIDY_REST: Duration = Duration::from_secs(60);
/// How soon an authority that gave no advice is asked again.
const QUESTION_REST: Duration = Duration::from_secs(6 * 3600);
/// How the metrics call a certificate that came.
const ISSUED: &str = "issued";
/// How they call one that came and cannot be shown.
const NOT_IN_FORCE: &str = "not_in_force";

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
                Some((name, Errand::Ask, None)) => {
                    self.ask(&name).await;
                    continue;
                }
                // An order that a kill cut short is gone on with before its record goes: the
                // authority may be looking.
                Some((name, Errand::Order, None)) => {
                    self.renew(&name).await;
                    self.tidy_up().await;
                    continue;
                }
                Some((_, _, Some(due))) => {
                    due.duration_since(SystemTime::now()).unwrap_or_default()
                }
                None => SLEEP_MAX,
            };
            let longest = self.tidy_up().await;
            if self.sleep(wait.min(longest)).await == Woken::Stopped {
                return;
            }
        }
    }

    /// What is due first, and when; none means now.
    fn next(&self) -> Option<(CertificateName, Errand, Option<SystemTime>)> {
        let now = SystemTime::now();
        let later = |due: Option<SystemTime>| due.filter(|due| *due > now);
        let is_in_force = |kept: &Kept| {
            let lifetime = kept.standing.lifetime;
            lifetime.is_some_and(|lifetime| lifetime.until > now)
        };
        let all = self.names.iter();
        let errands = all.flat_map(|(name, kept)| {
            let order = (later(kept.standing.due()), Errand::Order, name);
            let question = (later(kept.next_question), Errand::Ask, name);
            [order]
                .into_iter()
                .chain(is_in_force(kept).then_some(question))
        });
        // None is less than any time.
        let (due, errand, name) = errands.min()?;
        Some((name.clone(), errand, due))
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
                kept.next_question = None;
                kept
            });
            let lifetime = self.parts.swap.lifetime(name);
            let fresh = || Kept {
                standing: Standing::new(lifetime, jitter()),
                next_question: None,
                ways_failed: 0,
                problem: <_>::default(),
                orders: BTreeMap::new(),
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
        let now = SystemTime::now();
        let result = match done {
            Ok(()) => {
                tracing::info!(%name, "a new certificate is in force");
                kept.standing.note_success(now, lifetime);
                kept.next_question = None;
                kept.problem = <_>::default();
                ISSUED
            }
            Err(failure) => {
                kept.standing.note_failure(now, failure.retry_after);
                tracing::warn!(%name, "no certificate: {}", failure.problem);
                kept.ways_failed += failure.ways_failed;
                kept.problem = (failure.problem, failure.cause);
                failure.cause
            }
        };
        *kept.orders.entry(result).or_default() += 1;
        self.tell("");
    }

    /// Asks the authority when it wants the certificate for `name` to be renewed.
    async fn ask(&mut self, name: &CertificateName) {
        let asked = self.advice(name).await;
        let now = SystemTime::now();
        let Some(kept) = self.names.get_mut(name) else {
            return;
        };
        match asked {
            Ok(Some(advice)) => {
                let before = kept.standing.due();
                kept.standing.window = advice.window;
                kept.next_question = Some(now + advice.again);
                if let Some(why) = advice.why.filter(|_| kept.standing.due() != before) {
                    tracing::info!(%name, why, "the authority says when it wants it renewed");
                }
            }
            Ok(None) => self.ask_nothing_for(Advice::NONE.again),
            // What it said before stays. Whether it is there at all is seen by the next order.
            Err(failure) => {
                tracing::debug!(%name, "no advice from the authority: {}", failure.problem);
                self.ask_nothing_for(QUESTION_REST);
            }
        }
        self.tell("");
    }

    /// What one name was not told, the others are not told either.
    fn ask_nothing_for(&mut self, rest: Duration) {
        let next = SystemTime::now() + rest;
        for kept in self.names.values_mut() {
            kept.next_question = Some(next);
        }
    }

    async fn advice(&self, name: &CertificateName) -> Result<Option<Advice>, Failure> {
        match (&self.settings, self.parts.store.files(name)) {
            (Some(acme), Some(files)) => {
                let authority = authority(acme).await?;
                let client = self.client(acme, &authority);
                Ok(client.advice(&files.certificate).await?)
            }
            (None, _) | (_, None) => Ok(None),
        }
    }

    async fn obtain(&self, name: &CertificateName) -> Result<(), Failure> {
        let Some(acme) = &self.settings else {
            return Ok(());
        };
        let failed = self.names.get(name).map_or(0, |kept| kept.ways_failed);
        let way = Way::choose(acme, name, failed);
        let authority = authority(acme).await?;
        let client = Client {
            replaces: self.replaced(name),
            ..self.client(acme, &authority)
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

    fn client<'a>(&'a self, acme: &'a AcmeSettings, authority: &'a Authority) -> Client<'a> {
        Client {
            settings: acme,
            store: &self.parts.store,
            boards: &self.parts.boards,
            authority,
            replaces: None,
        }
    }

    /// What the next certificate for `name` replaces, where the authority gives advice.
    fn replaced(&self, name: &CertificateName) -> Option<CertificateIdentifier<'static>> {
        self.names.get(name)?.standing.window?;
        identifier(&self.parts.store.files(name)?.certificate)
    }

    /// Takes records out of DNS that nobody needs any more, and says how soon to look again.
    async fn tidy_up(&mut self) -> Duration {
        let left = self.parts.boards.records.take_back().await;
        let rest = match &left {
            Some(_) => TIDY_REST,
            None => SLEEP_MAX,
        };
        if left != self.left_behind {
            if let Some(LeftBehind { name, cause, .. }) = &left {
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
        let place = first_place(name).ok()?;
        let is_its = place == left.name || place.to_string() == left.asked_at;
        let LeftBehind { name, cause, .. } = left;
        is_its.then(|| format!("the TXT record {name} is still in DNS: {cause}; it is tried again"))
    }

    /// Tells how it stands; `busy` is the name that is being worked on.
    fn tell(&self, busy: &str) {
        let all = self.names.iter();
        let all = all.map(|(name, kept)| {
            let mut status = kept.status(name.to_string(), busy);
            if let Some(problem) = self.left_for(name).filter(|_| status.problem.is_empty()) {
                status.problem = problem;
                status.cause = "dns".to_owned();
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
            problem: self.problem.0.clone(),
            cause: self.problem.1.to_owned(),
            orders: self.orders.iter().map(count).collect(),
        }
    }
}

fn count((result, count): (&&'static str, &u64)) -> OrderCount {
    OrderCount {
        result: (*result).to_owned(),
        count: *count,
    }
}

/// A new way to the authority each time, so that a root that was replaced is read.
async fn authority(acme: &AcmeSettings) -> Result<Authority, Failure> {
    let root = acme.root.clone();
    let authority = tokio::task::spawn_blocking(move || Authority::new(root.as_deref()));
    Ok(authority.await.map_err(Failure::of)??)
}

/// Why an attempt has failed.
struct Failure {
    problem: String,
    /// The same in one word.
    cause: &'static str,
    /// How long the authority wants to be left alone.
    retry_after: Option<Duration>,
    /// 1 where another way of showing that the name is ours may do better.
    ways_failed: u32,
}

impl Failure {
    fn of(problem: impl ToString) -> Self {
        Self {
            problem: problem.to_string(),
            cause: NOT_IN_FORCE,
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
            cause: error.cause(),
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
