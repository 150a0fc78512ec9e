//! Whom this server trusts: its own identity, and in a closed community the member list.
//!
//! [`Trust`] is what the rest of the server asks. In an open community every question is answered
//! with yes and connections stay as they are; so callers ask always and never look at which kind
//! of community it is. In a closed one connections are TLS by identity ([`Channel`]), a peer may
//! do what its role permits, and signed messages are checked here. The rules are those of
//! `levee_trust`; here are the clock, the files and the counters. Everything that is refused is
//! counted by its cause, and the last one told on the status page.

mod accusations;
mod denied;
mod identity_file;
mod list_keeper;
mod messages;
mod status;
mod tls;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use levee_net::{Clock, Shared};
use levee_registry::Accusations;
use levee_trust::{
    Deed, Identity, Membership, NotAMember, PublicKey, ReplayWindow, Role, Roster, SignedList,
    Stamps, UnixMillis, may,
};
use levee_vocab::HostName;
use levee_wire::MessageBudget;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::settings::TrustSettings;
use crate::state::{Readers, replace};
pub use accusations::accusations;
pub use denied::{Denied, DeniedCount, DeniedCounts, Missed};
pub use identity_file::{fresh_identity, identity_at};
pub use list_keeper::{ListSources, keep_list};
pub use tls::Channel;
use tls::Tls;

/// Who we are and whom we trust.
pub struct Trust {
    identity: Identity,
    /// The name that we say is ours; a registry says none.
    name: Option<HostName>,
    membership: Shared<Membership>,
    /// In a closed community.
    tls: Option<Tls>,
    window: Shared<ReplayWindow>,
    stamps: Shared<Stamps>,
    denied: DeniedCounts,
    /// What members say of each other.
    accusations: Shared<Accusations>,
    /// Limits the log: a flood of bogus messages must not become a flood of lines.
    notices: Shared<MessageBudget>,
    /// Where the operator keeps the list, if anywhere.
    given: Option<PathBuf>,
    /// Where we keep the newest list that we have seen.
    kept: Option<PathBuf>,
    /// Tells of each newer list.
    newer: watch::Sender<u64>,
    /// Why the last look for a newer list failed.
    list_trouble: Shared<Option<String>>,
}

/// A connection between members, in clear or inside TLS.
pub type CommunityStream = Box<dyn Duplex>;

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// In an open community nobody proves anything.
    Anybody,
    /// The holder of this key.
    Key(PublicKey),
}

/// Calendar time. Only here and in the desk of the authority: everything else goes by a clock that
/// nobody sets.
pub fn unix_now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    UnixMillis(u64::try_from(millis).unwrap_or(u64::MAX))
}

impl Trust {
    /// Reads the identity, or makes it, and the newest member list that there is. `state` is the
    /// folder for what must outlive a crash. Blocks for the disk.
    ///
    /// A copy that we kept and that is no good (a disk failed, or the authority is a new one) is
    /// passed over with a warning: it stops no site, and the registries have the list.
    ///
    /// # Errors
    /// A sentence for the operator: a key, or a list of the operator's own, that is no good.
    pub fn open(settings: &TrustSettings, state: Option<&Path>) -> Result<Self, String> {
        let opened = unix_now();
        let identity = match &settings.identity {
            Some(path) => identity_at(path)?,
            None => fresh_identity()?,
        };
        let (membership, tls) = match &settings.authority {
            None => (Membership::Open, None),
            Some(authority) => {
                let roster = Box::new(Roster::new(*authority));
                (Membership::Closed(roster), Some(Tls::new(&identity)?))
            }
        };
        let trust = Self {
            identity,
            name: None,
            membership: Shared::new(membership),
            tls,
            window: Shared::new(ReplayWindow::opened(opened)),
            stamps: Shared::default(),
            denied: DeniedCounts::default(),
            accusations: Shared::default(),
            notices: Shared::new(MessageBudget::new(NOTICES_BURST, NOTICES_PER_SECOND)),
            given: settings.members.clone(),
            kept: state.map(|folder| folder.join(LIST_FILE)),
            newer: watch::Sender::default(),
            list_trouble: Shared::default(),
        };
        trust.read_at_start()?;
        Ok(trust)
    }

    /// The same of a site that is called `name`: it is a member only where the list has its key
    /// under that name.
    #[must_use]
    pub fn named(mut self, name: HostName) -> Self {
        self.name = Some(name);
        self
    }

    /// Our own identity.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether only members take part.
    pub const fn is_closed(&self) -> bool {
        self.tls.is_some()
    }

    /// What was refused, by cause.
    pub const fn denied(&self) -> &DeniedCounts {
        &self.denied
    }

    /// Asks the roster; none in an open community.
    pub fn roster<R>(&self, ask: impl FnOnce(&Roster) -> R) -> Option<R> {
        self.membership.with(|membership| match membership {
            Membership::Open => None,
            Membership::Closed(roster) => Some(ask(roster)),
        })
    }

    /// Whether `name` stands on our newest list, also where that has expired: an authority that is
    /// late has taken nobody off it. Everybody does in an open community.
    pub fn is_listed(&self, name: &HostName) -> bool {
        let found = self.roster(|roster| {
            let list = roster.newest().map(SignedList::list);
            list.is_none_or(|list| list.member(name).is_some())
        });
        found.unwrap_or(true)
    }

    /// Whether it is worth asking `name` for help: not where one of us is no member.
    pub fn may_be_asked(&self, name: &HostName) -> bool {
        self.is_listed(name) && self.exclusion(Role::Site).is_none()
    }

    /// Makes a connection that we opened one between members; a plain one stays so in an open
    /// community. Set a deadline.
    ///
    /// Dropped half-way, the connection is closed.
    ///
    /// # Errors
    /// When the other side does not prove a key; that is counted, unless the connection broke.
    pub async fn connect(
        &self,
        stream: TcpStream,
        channel: Channel,
    ) -> io::Result<(CommunityStream, Counterpart)> {
        let Some(tls) = &self.tls else {
            return Ok((Box::new(stream), Counterpart::Anybody));
        };
        let address = stream.peer_addr()?;
        match tls.connect(stream, channel).await {
            Ok((stream, key)) => Ok((stream, Counterpart::Key(key))),
            // It died on the way, which is no lie.
            Err(error) if is_broken(&error) => Err(error),
            Err(error) => {
                let what = format!("connection to {address}");
                self.deny(&what, Denied::NoKey(error.to_string()));
                Err(error)
            }
        }
    }

    /// As [`Self::connect`], for a connection that the other side opened.
    ///
    /// Dropped half-way, the connection is closed.
    ///
    /// # Errors
    /// When the other side does not prove a key; that is counted.
    pub async fn accept(
        &self,
        stream: TcpStream,
        channel: Channel,
    ) -> Result<(CommunityStream, Counterpart), Denied> {
        let Some(tls) = &self.tls else {
            return Ok((Box::new(stream), Counterpart::Anybody));
        };
        let address = stream.peer_addr().map(|address| address.to_string());
        match tls.accept(stream, channel).await {
            Ok((stream, key)) => Ok((stream, Counterpart::Key(key))),
            Err(error) => {
                let what = format!("connection from {}", address.unwrap_or_default());
                // It may be a member whose own line is full.
                let why = match is_broken(&error) {
                    true => Denied::BrokenOff(error.to_string()),
                    false => Denied::NoKey(error.to_string()),
                };
                Err(self.deny(&what, why))
            }
        }
    }

    /// Whether the other side may do `deed`; `what` says in words what it tries, for the status
    /// page. Gives its name where it has proved one.
    ///
    /// # Errors
    /// When it may not; that is counted.
    pub fn permits(
        &self,
        other: Counterpart,
        deed: Deed,
        what: &str,
    ) -> Result<Option<HostName>, Denied> {
        self.look_up(other, deed)
            .map_err(|why| self.deny(what, why))
    }

    fn look_up(&self, other: Counterpart, deed: Deed) -> Result<Option<HostName>, Denied> {
        let now = unix_now();
        let Counterpart::Key(key) = other else {
            return match self.is_closed() {
                true => Err(Denied::NotSigned),
                false => Ok(None),
            };
        };
        let found = self.roster(|roster| {
            let who = roster.who(&key, now);
            who.map(|(name, role)| (name.clone(), role))
        });
        match found {
            None => Ok(None),
            Some(Ok((name, role))) if may(Some(role), deed) => Ok(Some(name)),
            Some(Ok((name, role))) => Err(Denied::NotItsRole { name, role, deed }),
            Some(Err(_)) if may(None, deed) => Ok(None),
            Some(Err(why)) => Err(why.into()),
        }
    }

    /// Whether the other side is the member `name` and may do `deed`.
    ///
    /// # Errors
    /// When it is not, or may not; that is counted.
    pub fn permits_as(
        &self,
        other: Counterpart,
        name: &HostName,
        deed: Deed,
        what: &str,
    ) -> Result<(), Denied> {
        self.permits(other, deed, what)?;
        let Counterpart::Key(key) = other else {
            return Ok(());
        };
        let now = unix_now();
        match self.roster(|roster| roster.check(name, &key, now)) {
            Some(Err(why)) => Err(self.deny(what, why.into())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Takes a list if it is the authority's and newer than ours, and keeps it. Blocks for the
    /// disk. Gives its serial if it was newer.
    ///
    /// # Errors
    /// When it is no list of our authority, or cannot be kept; it counts all the same then.
    pub fn take_list(&self, text: &str) -> Result<Option<u64>, String> {
        let taken = self.take(text)?;
        if taken.is_some() {
            self.keep(text)?;
        }
        Ok(taken)
    }

    fn take(&self, text: &str) -> Result<Option<u64>, String> {
        let taken = self.membership.with(|membership| match membership {
            Membership::Open => Ok(None),
            Membership::Closed(roster) => {
                let is_newer = roster.take(text).map_err(|error| error.to_string())?;
                Ok::<_, String>(is_newer.then(|| roster.serial()))
            }
        })?;
        if let Some(serial) = taken {
            self.newer.send_replace(serial);
        }
        Ok(taken)
    }

    fn keep(&self, text: &str) -> Result<(), String> {
        let Some(path) = &self.kept else {
            return Ok(());
        };
        replace(path, text, Readers::Everybody)
            .map_err(|error| format!("cannot keep {}: {error}", path.display()))
    }

    /// Changes with each newer list: who stood on the old one may not stand on it.
    pub fn newer_lists(&self) -> watch::Receiver<u64> {
        self.newer.subscribe()
    }

    /// What a disk has done to our own copy stops no site: the registries have the list.
    fn read_at_start(&self) -> Result<(), String> {
        let is_there = |path: &&PathBuf| path.exists();
        if let Some(kept) = self.kept.as_ref().filter(is_there) {
            let place = kept.display();
            if let Err(why) = read(kept).and_then(|text| self.take(&text)) {
                tracing::warn!("{place}: {why}; this copy is not used, the next list replaces it");
            }
        }
        // Who copies it here a moment later need not start us again.
        let Some(given) = self.given.as_ref().filter(is_there) else {
            return Ok(());
        };
        let taken = read(given).and_then(|text| Ok((self.take(&text)?, text)));
        match taken.map_err(|why| format!("{}: {why}", given.display())) {
            Ok((None, _)) => Ok(()),
            Ok((Some(_), text)) => {
                if let Err(trouble) = self.keep(&text) {
                    tracing::warn!("{trouble}");
                }
                Ok(())
            }
            // With a list that holds a mistake can be mended while we run.
            Err(trouble) if self.roster(Roster::serial) > Some(0) => {
                tracing::warn!("{trouble}");
                Ok(())
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Reads the operator's list, if one was named. Blocks for the disk. Gives its serial if it
    /// was newer than ours.
    ///
    /// # Errors
    /// When it is not there, or no good.
    pub fn read_given(&self) -> Result<Option<u64>, String> {
        let Some(given) = &self.given else {
            return Ok(None);
        };
        let taken = read(given).and_then(|text| self.take_list(&text));
        taken.map_err(|why| format!("{}: {why}", given.display()))
    }

    /// Why the last look for a newer list failed, if it did.
    pub fn list_trouble(&self) -> Option<String> {
        self.list_trouble.with(|trouble| trouble.clone())
    }

    /// Remembers it for the status, and logs what is new.
    fn note_list_trouble(&self, trouble: Option<String>) {
        if let Some(trouble) = &trouble
            && self.list_trouble().as_ref() != Some(trouble)
        {
            tracing::warn!("cannot look for a newer member list: {trouble}");
        }
        self.list_trouble.replace(trouble);
    }

    /// Counts what was refused elsewhere.
    pub fn refuse(&self, what: &str, why: Denied) {
        self.deny(what, why);
    }

    /// Counts a refusal, and gives it back.
    fn deny(&self, what: &str, why: Denied) -> Denied {
        // That is our own lack, and the status tells of it.
        if why == Denied::NotAMember(NotAMember::NoList) {
            return why;
        }
        if matches!(why, Denied::BrokenOff(_)) {
            // Nobody was refused, and there is nothing to do.
            tracing::debug!(cause = why.cause(), "{what}: {why}");
        } else if self.notices.with(|notices| notices.take(Clock.now())) {
            tracing::warn!(cause = why.cause(), "refused: {what}: {why}");
        }
        self.denied.note(what, &why, unix_now());
        why
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}

/// Whether a handshake failed because the connection did.
fn is_broken(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::TimedOut,
    ];
    kinds.contains(&error.kind())
}

/// Enough to see what is going on, too little to fill a disk.
const NOTICES_BURST: u32 = 20;
const NOTICES_PER_SECOND: u32 = 1;
/// The newest list, in the state folder.
const LIST_FILE: &str = "members.list";
