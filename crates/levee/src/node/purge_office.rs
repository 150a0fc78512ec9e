//! Carries out what operators and their programs want purged: here first, then everywhere.
//!
//! The order matters: a rescue server that removes an object fetches it anew at the next request,
//! and must not get what we were about to remove. For the same reason files of a folder, which have
//! no cache of ours before them, are looked at again.

use std::sync::{Arc, OnceLock, Weak};

use http::StatusCode;
use levee_proxy::{Fetcher, Front, PurgeInlet, Reply, Spaces};
use levee_vocab::Purge;

use crate::community::Community;
use crate::purge_report::{PurgeAnswers, PurgeReport};
use crate::rescue_link::PurgeLine;

/// See the head of this file.
pub(super) struct PurgeOffice {
    fetcher: Fetcher,
    /// Known when the node is built.
    front: OnceLock<Weak<Front>>,
    line: OnceLock<PurgeLine>,
    answers: Arc<PurgeAnswers>,
}

impl PurgeOffice {
    pub fn new(fetcher: Fetcher) -> Arc<Self> {
        Arc::new(Self {
            fetcher,
            front: OnceLock::new(),
            line: OnceLock::new(),
            answers: Arc::default(),
        })
    }

    /// Whose files are to be looked at again, and how to reach our rescue servers.
    pub fn open(&self, front: &Arc<Front>, community: Option<&Community>) {
        // Both are told once.
        let _ = self.front.set(Arc::downgrade(front));
        if let Some(community) = community {
            let _ = self.line.set(community.purge_line());
        }
    }

    /// What rescue servers said, for the figures.
    pub fn answers(&self) -> Arc<PurgeAnswers> {
        Arc::clone(&self.answers)
    }

    /// Removes it everywhere, and says what became of it.
    ///
    /// Cancel safety: dropped half-way, the purge goes on where it has begun.
    pub async fn purge(&self, purge: Purge) -> PurgeReport {
        let (fetcher, here) = (self.fetcher.clone(), purge.clone());
        let work = move || fetcher.purge(&Spaces::Own, &here);
        // It fails only when the server stops.
        let objects = tokio::task::spawn_blocking(work).await.unwrap_or_default();
        if let Some(front) = self.front.get().and_then(Weak::upgrade) {
            front.recheck_files();
        }
        let servers = match self.line.get() {
            Some(line) => line.purge(purge.clone()).await,
            None => Vec::new(),
        };
        let report = PurgeReport::new(&purge, objects, &servers);
        self.answers.note(&report);
        tracing::info!(
            objects,
            confirmed = report.confirmed,
            unconfirmed = report.unconfirmed,
            "purged {}",
            report.purged
        );
        report
    }

    /// For the cores, which take purges from visitors.
    pub fn inlet(self: &Arc<Self>) -> PurgeInlet {
        let office = Arc::clone(self);
        Arc::new(move |purge| {
            let office = Arc::clone(&office);
            Box::pin(async move {
                let report = office.purge(purge).await;
                Reply {
                    status: status(&report),
                    json: report.json() + "\n",
                }
            })
        })
    }
}

/// 200 when it is done everywhere, 202 where a rescue server has not confirmed.
fn status(report: &PurgeReport) -> StatusCode {
    match report.unconfirmed {
        0 => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    }
}
