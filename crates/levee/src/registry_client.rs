//! What a site has to do with its registry: offers itself, looks for candidates, looks up callers.
//!
//! [`Directory`] is what the rest of the server sees; SLP or an external store would be another
//! `Directory`. [`RegistryClient`] speaks the registry protocol. One task owns the
//! connection, keeps it open between exchanges, and opens it again with growing pauses when it is
//! lost. What was registered last is registered again after each loss, because a registry that was
//! restarted knows nothing; so a site is found again soon after its registry has come back.
//! Of several, those that are away are asked now and then whether they are back (`away`).
//!
//! Where several registries are known, what the others say counts as well (`witnesses`).
//!
//! Every exchange has a deadline and every failure is a sentence for the status page.

mod away;
mod exchange;
mod keeper;
mod witnesses;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use levee_control::Candidate;
use levee_observe::RegistryStatus;
use levee_trust::NotAMember;
use levee_vocab::HostName;
use levee_wire::ParseError;
use levee_wire::registry::{Accusation, Entry, Farewell, Refusal, Reply, Request, Search};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::registry_finder::KnownRegistries;
use crate::rescue_link::{AddressBook, LinkCharge};
use crate::trust::{Denied, Trust};
use away::AwayTable;
use keeper::{Ask, Keeper};
use witnesses::Witnesses;

/// A place where the sites of a community find each other.
pub trait Directory: Send + Sync {
    /// Offers this site to the community for the entry's lifetime; gives the lifetime granted.
    fn register(
        &self,
        entry: Entry,
    ) -> impl Future<Output = Result<Duration, DirectoryError>> + Send;

    /// Takes this site's offer back.
    fn deregister(&self, site: HostName)
    -> impl Future<Output = Result<(), DirectoryError>> + Send;

    /// The best `count` offers of others, largest first.
    fn search(
        &self,
        count: usize,
    ) -> impl Future<Output = Result<Vec<Candidate>, DirectoryError>> + Send;

    /// The offer of one site.
    fn lookup(
        &self,
        site: HostName,
    ) -> impl Future<Output = Result<Option<Entry>, DirectoryError>> + Send;
}

impl DirectoryError {
    /// Whether a registry refuses because we say too much. What it knows of us stays.
    fn is_for_saying_too_much(&self) -> bool {
        let too_much = [Refusal::TooManyUpdates, Refusal::TooMany].map(Refusal::code);
        matches!(self, Self::Refused { code, .. } if too_much.contains(code))
    }

    /// Whether nobody can be believed yet, because we have no member list.
    fn is_for_want_of_a_list(&self) -> bool {
        let Self::Unreachable { source, .. } = self else {
            return false;
        };
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref());
        inner == Some(&Denied::NotAMember(NotAMember::NoList))
    }
}

/// Why a directory did not do what was asked.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Nobody says where one is.
    #[error("no registry is known: {why}")]
    NoneKnown {
        /// What went wrong when we looked.
        why: String,
    },
    /// It could not be connected to.
    #[error("cannot connect to registry {registry}: {source}")]
    Unreachable {
        /// Its address.
        registry: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It was away a moment ago and is not tried again yet.
    #[error("registry {registry} is away, next attempt in {:.1} s", .left.as_secs_f64())]
    Resting {
        /// Its address.
        registry: SocketAddr,
        /// Time to the next attempt.
        left: Duration,
    },
    /// No answer in time.
    #[error("registry {registry} did not answer within {:.1} s", .wait.as_secs_f64())]
    TimedOut {
        /// Its address.
        registry: SocketAddr,
        /// How long we waited.
        wait: Duration,
    },
    /// It closed the connection.
    #[error("registry {registry} closed the connection")]
    Closed {
        /// Its address.
        registry: SocketAddr,
    },
    /// It closed the connection before it said anything at all.
    #[error(
        "registry {registry} closed the connection without an answer: that of a closed community \
         does so where community.authority is not set"
    )]
    ClosedAtOnce {
        /// Its address.
        registry: SocketAddr,
    },
    /// What it said is no answer to what was asked.
    #[error("registry {registry} gave an answer that makes no sense: {what}")]
    Garbage {
        /// Its address.
        registry: SocketAddr,
        /// What was wrong with it.
        what: Nonsense,
    },
    /// What it said is not signed as it must be.
    #[error("the answer of registry {registry} is not believed: {why}")]
    Denied {
        /// Its address.
        registry: SocketAddr,
        /// Why.
        why: Denied,
    },
    /// It said no.
    #[error("registry {registry} refused: {code} {text}")]
    Refused {
        /// Its address.
        registry: SocketAddr,
        /// Its code.
        code: u16,
        /// Its reason.
        text: String,
    },
    /// We have sent it too many updates. What we offered last is told when the pause is over.
    #[error(
        "registry {registry} takes no more updates of ours for {:.1} s", .left.as_secs_f64()
    )]
    HeldBack {
        /// Its address.
        registry: SocketAddr,
        /// What is left of the pause.
        left: Duration,
    },
    /// Too many requests are waiting for it already.
    #[error("too many requests to registry {registry} are waiting")]
    Busy {
        /// Its address.
        registry: SocketAddr,
    },
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Nonsense {
    /// A line is no message.
    #[error("{0}")]
    Line(#[from] ParseError),
    /// A line has no end.
    #[error("{0}")]
    TooLong(#[from] levee_wire::LineTooLong),
    /// It answers another request.
    #[error("wrong sequence number")]
    WrongNumber,
    /// More entries than were asked for.
    #[error("more entries than were asked for")]
    TooManyEntries,
    /// It answers another kind of request.
    #[error("not an answer to this kind of request")]
    WrongKind,
}

/// What a client of a registry needs to know.
#[derive(Clone)]
pub struct RegistryClientSettings {
    /// The registries, the preferred one first; all know the same.
    pub registries: KnownRegistries,
    /// This site, which does not look for itself.
    pub site: HostName,
    /// The address to speak from, if this machine has it: the one that is registered.
    pub source: Option<IpAddr>,
    /// Longest time for one exchange, connecting included.
    pub exchange_wait: Duration,
    /// Shortest pause before the registry is tried again; each further one is twice as long.
    pub retry_delay_min: Duration,
    /// Longest pause.
    pub retry_delay_max: Duration,
    /// Seed of the jitter.
    pub seed: u64,
    /// Told of what is sent.
    pub charge: LinkCharge,
    /// Who we are, and who is a registry.
    pub trust: Arc<Trust>,
}

impl RegistryClientSettings {
    /// The defaults for a site and its registries.
    pub fn new(registries: KnownRegistries, site: HostName, trust: Arc<Trust>, seed: u64) -> Self {
        Self {
            trust,
            registries,
            site,
            source: None,
            exchange_wait: Duration::from_secs(2),
            // A registry that restarts is back within a second; one that is gone for good is asked
            // six times a minute.
            retry_delay_min: Duration::from_millis(200),
            retry_delay_max: Duration::from_secs(10),
            seed,
            charge: Arc::new(|_| {}),
        }
    }
}

/// A connection to a registry. Cheap to clone; the connection ends with the last clone.
#[derive(Clone, Debug)]
pub struct RegistryClient {
    asks: mpsc::Sender<Ask>,
    status: watch::Receiver<RegistryStatus>,
    registries: KnownRegistries,
    witnesses: Arc<Witnesses>,
    site: HostName,
    wait: Duration,
}

impl RegistryClient {
    /// Starts the task that keeps the connection. Needs a tokio runtime.
    pub fn start(settings: RegistryClientSettings) -> Self {
        let (asks, inbox) = mpsc::channel(ASKS_MAX);
        let first = settings.registries.borrow().registries.first().copied();
        let (told, status) = watch::channel(RegistryStatus {
            address: first.map_or_else(|| NONE_YET.to_owned(), |one| one.to_string()),
            ..RegistryStatus::default()
        });
        let away = AwayTable::default();
        let client = Self {
            asks,
            status,
            registries: settings.registries.clone(),
            witnesses: Arc::new(Witnesses::new(settings.clone(), away.clone())),
            site: settings.site.clone(),
            wait: settings.exchange_wait,
        };
        tokio::spawn(Keeper::new(settings, told, away).run(inbox));
        client
    }

    /// How it stands with the registry.
    pub fn status(&self) -> RegistryStatus {
        self.status.borrow().clone()
    }

    /// Waits until how it stands with the registry has changed; false when it will not change
    /// again. Dropped half-way, nothing is lost.
    pub async fn status_changed(&mut self) -> bool {
        self.status.changed().await.is_ok()
    }

    /// Whether the other members do not take us for one of them.
    pub fn is_excluded(&self) -> bool {
        self.witnesses.is_excluded()
    }

    /// Tells everybody what this member says of another one; whether that was news.
    ///
    /// # Errors
    /// When no registry takes it.
    ///
    /// Cancel safety: dropped half-way, it may be known or not.
    pub async fn accuse(&self, accusation: Accusation) -> Result<bool, DirectoryError> {
        let accuse = Request::Accuse(Box::new(accusation.clone()));
        let noted = match self.ask_or_hear_no(accuse).await? {
            Ok(Reply::Noted(count)) => Ok(count > 0),
            Ok(_) => return Err(self.wrong_kind()),
            Err(refusal) => Err(refusal),
        };
        let is_heard = self.witnesses.tell(self.registry(), accusation).await;
        match noted {
            Err(_) if is_heard => Ok(true),
            noted => noted,
        }
    }

    /// What members say of each other by the registry that we use, as far as they prove that they
    /// said so. What the others tell is noted by each search.
    ///
    /// # Errors
    /// When no registry tells.
    ///
    /// Cancel safety: dropped half-way, nothing is lost.
    pub async fn accusations(&self) -> Result<Vec<Accusation>, DirectoryError> {
        match self.ask(Request::Accusations).await? {
            Reply::Said(said) => Ok(said),
            Reply::Registered(_)
            | Reply::Removed(_)
            | Reply::Found(_)
            | Reply::Noted(_)
            | Reply::Refused(_) => Err(self.wrong_kind()),
        }
    }

    /// What the registry that we use finds; nothing where it refuses, and why: others may know.
    async fn find(
        &self,
        request: Request,
    ) -> Result<(Vec<Entry>, Option<DirectoryError>), DirectoryError> {
        match self.ask_or_hear_no(request).await? {
            Ok(Reply::Found(entries)) => Ok((entries, None)),
            Ok(_) => Err(self.wrong_kind()),
            Err(refusal) => Ok((Vec::new(), Some(refusal))),
        }
    }

    /// What the registry that we use answers, or its refusal. One that refuses is not all of them:
    /// the others may do what was asked. Any other error ends it.
    async fn ask_or_hear_no(
        &self,
        request: Request,
    ) -> Result<Result<Reply, DirectoryError>, DirectoryError> {
        match self.ask(request).await {
            Err(refusal @ DirectoryError::Refused { .. }) => Ok(Err(refusal)),
            answer => answer.map(Ok),
        }
    }

    async fn ask(&self, request: Request) -> Result<Reply, DirectoryError> {
        let (answer, answered) = oneshot::channel();
        let registry = self.registry();
        let busy = |_| DirectoryError::Busy { registry };
        self.asks.try_send(Ask { request, answer }).map_err(busy)?;
        // The next one is asked when one does not answer, which takes its time.
        let several = self.registries.borrow().registries.len() > 1;
        let wait = if several { self.wait * 2 } else { self.wait };
        match timeout(wait, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(DirectoryError::Closed { registry }),
            Err(_) => Err(DirectoryError::TimedOut { registry, wait }),
        }
    }

    fn wrong_kind(&self) -> DirectoryError {
        let (registry, what) = (self.registry(), Nonsense::WrongKind);
        DirectoryError::Garbage { registry, what }
    }

    /// The one that is asked now.
    fn registry(&self) -> SocketAddr {
        let used = self.status.borrow().address.parse().ok();
        used.unwrap_or_else(|| (IpAddr::from([0; 4]), 0).into())
    }
}

/// Dropped half-way, an exchange that has begun is finished, and its result thrown away.
impl Directory for RegistryClient {
    async fn register(&self, entry: Entry) -> Result<Duration, DirectoryError> {
        self.witnesses.note_offered(&entry);
        let register = Request::Register(entry.clone());
        let lifetime = match self.ask_or_hear_no(register).await? {
            Ok(Reply::Registered(lifetime)) => lifetime,
            Ok(_) => return Err(self.wrong_kind()),
            Err(refusal) => {
                let elsewhere = self.witnesses.register(self.registry(), &entry).await;
                elsewhere.ok_or(refusal)?
            }
        };
        self.witnesses.note_registered(self.registry(), lifetime);
        Ok(lifetime)
    }

    async fn deregister(&self, site: HostName) -> Result<(), DirectoryError> {
        self.witnesses.note_left();
        let farewell = self.ask(Request::Deregister(Farewell::new(site.clone())));
        let result = farewell.await;
        self.witnesses.leave(self.registry(), &site).await;
        let Reply::Removed(_) = result? else {
            return Err(self.wrong_kind());
        };
        Ok(())
    }

    async fn search(&self, count: usize) -> Result<Vec<Candidate>, DirectoryError> {
        let except = Some(self.site.clone());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let search = Search {
            count,
            except,
            per_domain: Some(PER_DOMAIN_MAX),
            ..Search::default()
        };
        let (entries, refusal) = self.find(Request::Search(search.clone())).await?;
        let found = (self.registry(), entries);
        let entries = self.witnesses.compare(found, &search).await;
        match refusal {
            Some(refusal) if entries.is_empty() => Err(refusal),
            Some(_) | None => Ok(entries.into_iter().map(candidate).collect()),
        }
    }

    async fn lookup(&self, site: HostName) -> Result<Option<Entry>, DirectoryError> {
        let (entries, refusal) = self.find(Request::Query(site.clone())).await?;
        if let Some(entry) = entries.into_iter().find(|entry| entry.site.host == site) {
            return Ok(Some(entry));
        }
        match (
            self.witnesses.look_up(self.registry(), &site).await,
            refusal,
        ) {
            (None, Some(refusal)) => Err(refusal),
            (found, _) => Ok(found),
        }
    }
}

/// Rescue links ask the registry whether a caller is at the address that it names.
impl AddressBook for RegistryClient {
    fn address_of<'a>(
        &'a self,
        site: &'a HostName,
    ) -> Pin<Box<dyn Future<Output = Option<IpAddr>> + Send + 'a>> {
        Box::pin(async move {
            let entry = self.lookup(site.clone()).await.ok().flatten();
            entry.map(|entry| entry.rescue.ip())
        })
    }
}

fn candidate(entry: Entry) -> Candidate {
    Candidate {
        site: entry.site,
        rescue: entry.rescue,
        free: entry.free,
        https: entry.https,
    }
}

/// Stands for the address of a registry until one is known.
const NONE_YET: &str = "(none found yet)";
/// Candidates of one domain that a search brings while there are others: sites of one operator fail
/// together.
const PER_DOMAIN_MAX: u32 = 2;
/// A site asks a few times in ten seconds; more than this is waiting only when the registry is
/// away.
const ASKS_MAX: usize = 32;
