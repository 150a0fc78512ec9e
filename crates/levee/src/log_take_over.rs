//! Takes back the access-log lines of our visitors from the rescue servers that served them.
//!
//! The core that received the POST has checked the fetch key; here each line is validated, marked
//! with the rescue server's name, and written to our own log. What is not a log line is counted and
//! thrown away: a rescue server may be old, broken, or a liar, and must not be able to forge ours.
//!
//! The last lines of a rescue come when it is over and no plan names the rescue server any more, so
//! names are remembered beyond it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use levee_control::RoutePlan;
use levee_observe::{AccessLog, HandedOver};
use levee_proxy::HandedOverLog;
use levee_vocab::LinkId;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How many lines came back.
#[derive(Debug, Default)]
pub struct Counts {
    taken: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    /// Lines written to our log.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Lines that were none.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Where the cores bring what rescue servers handed over.
#[derive(Clone, Debug)]
pub struct TakeOver {
    log: AccessLog,
    counts: Arc<Counts>,
    names: Arc<Mutex<BTreeMap<LinkId, String>>>,
}

/// Names that are remembered. There are at most 64 rescues at once, and lines come at most some 20
/// s after the end of theirs.
const NAMES_MAX: usize = 256;

impl TakeOver {
    /// Lines go to `log`.
    pub fn new(log: AccessLog) -> Self {
        Self {
            log,
            counts: Arc::default(),
            names: Arc::default(),
        }
    }

    /// Learns the names of our rescue servers until `plans` is closed.
    ///
    /// Cancel safety: dropped, it learns no more names; those that it knows stay.
    pub async fn learn_names(self, mut plans: watch::Receiver<Arc<RoutePlan>>) {
        while plans.changed().await.is_ok() {
            let plan = Arc::clone(&plans.borrow_and_update());
            let targets = plan.redirect.iter().flat_map(|redirect| &redirect.targets);
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            for target in targets {
                names
                    .entry(target.link)
                    .or_insert_with(|| target.alias.host.to_string());
            }
            while names.len() > NAMES_MAX {
                // The oldest: links are numbered upwards.
                names.pop_first();
            }
        }
    }

    /// What the cores call with each POST. The work is done away from them, on the present runtime.
    pub fn inlet(&self) -> HandedOverLog {
        let (runtime, take_over) = (Handle::current(), self.clone());
        Arc::new(move |link: LinkId, body: Bytes| {
            let take_over = take_over.clone();
            drop(runtime.spawn_blocking(move || take_over.take(&body, &take_over.name_of(link))));
        })
    }

    /// The alias that `link` gave us, or the link's number while it gave none.
    fn name_of(&self, link: LinkId) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .get(&link)
            .cloned()
            .unwrap_or_else(|| link.to_string())
    }

    /// How many lines came back.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Takes the body of one POST by `rescue_server`. Costs a few microseconds a line; the body is
    /// at most one MiB.
    pub fn take(&self, body: &[u8], rescue_server: &str) {
        let handed_over = HandedOver::parse(body, rescue_server);
        self.counts
            .taken
            .fetch_add(handed_over.records.len() as u64, Ordering::Relaxed);
        self.counts
            .refused
            .fetch_add(handed_over.refused, Ordering::Relaxed);
        for record in handed_over.records {
            self.log.write(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use levee_control::{Law, RedirectPlan, Redirects, Target};
    use levee_observe::{LogFormat, LogTarget};
    use levee_vocab::{ByteRate, WebAddress};

    use super::*;

    fn plan(targets: Vec<Target>) -> Arc<RoutePlan> {
        Arc::new(RoutePlan {
            redirect: Some(RedirectPlan {
                redirects: Redirects::On,
                law: Law::Load,
                early: ByteRate::ZERO,
                hot: Arc::default(),
                direct: ByteRate::ZERO,
                direct_ceiling: ByteRate::ZERO,
                usable: ByteRate::ZERO,
                usable_share: 0.8,
                connection_overhead: 358,
                large_file: 100_000,
                targets,
            }),
            ..RoutePlan::default()
        })
    }

    #[tokio::test]
    async fn the_name_of_a_rescue_server_outlives_its_rescue() {
        let (log, _thread) = AccessLog::start(LogTarget::Off, LogFormat::Json).unwrap();
        let take_over = TakeOver::new(log);
        let (plans, seen) = watch::channel(plan(vec![]));
        let learning = tokio::spawn(take_over.clone().learn_names(seen));
        let link = LinkId::Outbound(7);
        let target = Target {
            tls: None,
            link,
            slot: 1,
            alias: WebAddress {
                host: "www-vh1.rescue.example".parse().unwrap(),
                port: 8080,
            },
            address: [192, 0, 2, 1].into(),
            rate: ByteRate::ZERO,
        };
        assert_eq!(take_over.name_of(link), "out7");
        plans.send_replace(plan(vec![target]));
        let known = async {
            while take_over.name_of(link) == "out7" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), known)
            .await
            .unwrap();
        plans.send_replace(plan(vec![]));
        drop(plans);
        learning.await.unwrap();
        assert_eq!(take_over.name_of(link), "www-vh1.rescue.example");
    }
}
