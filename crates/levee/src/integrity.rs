//! What this server signs and permits, and what it finds when it looks at what others deliver for
//! it (M3).
//!
//! ```text
//!  publisher   signs what our rescue servers fetch            (levee_proxy)
//!  permits     our word that they may go on without us, and theirs to us
//!  returns     whether an origin that had died is back
//!  inspector   looks at what rescue servers deliver for us; purges, looks again, expels
//!  ways        by HTTP or by HTTPS, as our visitors come
//!  diversion   whether visitors are sent elsewhere
//!  neighbours  the same, at members who help the same origin; reports to it
//!  expelled    who altered something: kept in the state folder
//!  pardons     who was forgiven: kept there as well
//!  accuser     tells the community whom we have expelled, and hears whom others have
//! ```
//!
//! What looks come to is decided in `levee_control::Inspection`; here are keys, sockets and files.

mod accuser;
mod dismissals;
mod diversion;
mod expelled;
mod inspector;
mod look;
mod neighbours;
mod pardons;
mod permits;
mod returns;
mod scene;
mod ways;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use levee_control::{Input, Look};
use levee_observe::{ExpelledStatus, IntegrityStatus};
use levee_proxy::{Fetcher, Publisher};
use levee_trust::{Identity, PublicKey, Purpose};
use levee_vocab::{HostName, LinkId, WebAddress};
use tokio::sync::{mpsc, watch};

pub use accuser::keep_accusations;
pub use dismissals::watch_members;
pub use expelled::{Expelled, ExpelledList};
pub use inspector::{Inspector, InspectorParts};
pub use neighbours::{ReportLine, watch_neighbours};
pub use pardons::{Pardon, PardonList};
pub use permits::{PermitFault, origin_key};
pub use returns::watch_orphans;
pub use scene::{Scene, SceneBoard};
pub use ways::{InTheClear, Ways};

use crate::state::StateError;
use crate::trust::{Trust, unix_now};

/// Whether a key may be that of the origin of this name; none is the key of who shows none.
type AcceptsKey = Box<dyn Fn(&HostName, Option<&PublicKey>) -> bool + Send + Sync>;

/// Keys, permits, and the list of the expelled. See the file header.
pub struct IntegrityOffice {
    identity: Identity,
    site: WebAddress,
    permit: Duration,
    fetcher: Fetcher,
    accepts_key: AcceptsKey,
    expelled: ExpelledList,
    pardons: PardonList,
    /// Counts what there is to tell the community.
    news: watch::Sender<u64>,
    looks: LookCounts,
    reports: mpsc::Sender<Reported>,
    events: mpsc::Sender<Input>,
}

/// A rescue server says what another one delivered.
#[derive(Debug)]
pub struct Reported {
    /// The link on which it said so.
    pub link: LinkId,
    /// What it said.
    pub report: levee_wire::Report,
}

/// How many looks came to what.
#[derive(Debug, Default)]
struct LookCounts([AtomicU64; Look::ALL.len()]);

impl LookCounts {
    fn note(&self, look: Look) {
        for (kind, counter) in Look::ALL.iter().zip(&self.0) {
            if *kind == look {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn read(&self) -> BTreeMap<String, u64> {
        let counts = Look::ALL.iter().zip(&self.0);
        let count = |(kind, counter): (&Look, &AtomicU64)| {
            (kind.label().to_owned(), counter.load(Ordering::Relaxed))
        };
        counts.map(count).collect()
    }
}

/// Reports that wait. Each makes us look once; more are heard by none.
const REPORTS_MAX: usize = 16;

impl IntegrityOffice {
    /// The office of the site at `site`. `state` is the folder for what must outlive a crash. What
    /// rescue servers report comes out of the receiver.
    ///
    /// # Errors
    /// A sentence for the operator, where the list of the expelled or of pardons is no good.
    pub fn open(
        trust: &Arc<Trust>,
        (site, permit): (WebAddress, Duration),
        state: Option<&Path>,
        fetcher: Fetcher,
        events: mpsc::Sender<Input>,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Reported>), String> {
        let (reports, reported) = mpsc::channel(REPORTS_MAX);
        let told = |error: StateError| error.to_string();
        let roster = Arc::clone(trust);
        let accepts_key = move |host: &HostName, key: Option<&PublicKey>| match key {
            None => !roster.is_closed(),
            Some(key) => {
                let checked = roster.roster(|roster| roster.check(host, key, unix_now()).is_ok());
                checked.unwrap_or(true)
            }
        };
        let office = Self {
            identity: trust.identity().clone(),
            site,
            permit,
            fetcher,
            accepts_key: Box::new(accepts_key),
            expelled: ExpelledList::of(state).map_err(told)?,
            pardons: PardonList::of(state).map_err(told)?,
            news: watch::Sender::default(),
            looks: LookCounts::default(),
            reports,
            events,
        };
        Ok((Arc::new(office), reported))
    }

    /// What signs for the site at `site`, with the key of `identity`.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn publisher(identity: &Identity, site: &WebAddress) -> io::Result<Arc<Publisher>> {
        let signer = identity.clone();
        let sign = move |bytes: &[u8]| *signer.sign(Purpose::Publication, bytes).as_bytes();
        let key = identity.key().to_string();
        Publisher::start(site.to_string(), key, Arc::new(sign))
    }

    /// A rescue server reports another one.
    pub fn report(&self, link: LinkId, report: levee_wire::Report) {
        // Where too many wait, others will see the same.
        let _ = self.reports.try_send(Reported { link, report });
    }

    /// Ends the rescue on this link: what comes from there is late.
    pub async fn part(&self, link: LinkId) {
        // The Brain task is gone only when the server stops.
        let _ = self.events.send(Input::DeliveryLate { link }).await;
    }

    /// Ends what the member has to do with us, for good. Blocks for the disk.
    pub async fn expel(&self, expelled: Expelled) {
        tracing::error!(
            member = %expelled.member,
            target = expelled.target,
            expected = expelled.expected,
            seen = expelled.seen,
            "a member altered what we publish, and is expelled"
        );
        if let Err(error) = self.expelled.add(expelled) {
            tracing::error!("{error}");
        }
        self.news.send_modify(|news| *news += 1);
        self.tell_expelled().await;
    }

    /// Takes a member off the list. Blocks for the disk and for the Brain, so it is called outside
    /// of tasks.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn forgive(&self, member: &HostName) -> Result<String, String> {
        if !self.expelled.names().contains(member) {
            return Err(format!("{member} is not expelled"));
        }
        // First: a crash between the two must not leave our accusation standing with nobody to take
        // it back.
        self.pardon(member)?;
        self.expelled.forgive(member)?;
        // The Brain task is gone only when the server stops.
        let _ = self.events.blocking_send(self.expelled_input());
        Ok(format!("{member} is forgiven, and may be asked again"))
    }

    /// Tells the Brain who is expelled.
    pub async fn tell_expelled(&self) {
        // As above.
        let _ = self.events.send(self.expelled_input()).await;
    }

    fn expelled_input(&self) -> Input {
        Input::MembersExpelled(self.expelled.names())
    }

    /// For the status page.
    pub fn status(&self) -> IntegrityStatus {
        let expelled = self.expelled.members().into_iter();
        IntegrityStatus {
            key: self.identity.key().to_string(),
            looks: self.looks.read(),
            expelled: expelled
                .map(|one| ExpelledStatus {
                    member: one.member.to_string(),
                    since: one.since,
                    target: one.target,
                    expected: one.expected,
                    seen: one.seen,
                })
                .collect(),
        }
    }
}

impl fmt::Debug for IntegrityOffice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntegrityOffice({})", self.site)
    }
}

/// A line of the lists of the expelled and of pardons, for `crate::fuzzing`.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed_line(line: &str) {
    let read = expelled::parse(line);
    assert!(read.is_none() || !line.contains('\n'));
    let read = pardons::parse(line);
    assert!(read.is_none() || line.contains(' '));
}
