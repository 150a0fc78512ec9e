//! The command's side of a drill: orders it, makes the visits, and tells what came of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::account::{Account, Part};
use super::crowd::{Fair, Tally, gather};
use super::names::{Found, look_up};
use super::report::{Report, Seen, with_port};
use super::visit::{Ground, Guide, Print, look_first, since};
use crate::admin_client;
use crate::way::Authorities;

/// What is rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Visits a second.
    pub rate: u32,
    /// How long, whole seconds.
    pub length: Duration,
    /// Paths that are visited by turn.
    pub paths: Vec<String>,
    /// Whose certificates are believed, in PEM; without it those of this machine's authorities.
    pub authorities: Option<PathBuf>,
}

/// How often the server is asked how it goes; it takes three seconds of silence for our end.
const LOOK: Duration = Duration::from_millis(500);

/// Time for the first look at all pages: less than the silence that the server takes for our end.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(2);

/// A server that does not answer so often in a row is gone.
const MISSES_MAX: u32 = 4;

/// Rehearses at the server with this admin address, until the time is over, somebody ends it, or
/// `interrupted` is done.
///
/// # Errors
/// A sentence, where the drill did not begin.
///
/// Cancel safety: dropped half-way, the server ends the drill by itself after three seconds.
pub async fn drill(
    admin: SocketAddr,
    wanted: &Wanted,
    interrupted: impl Future<Output = ()>,
) -> Result<Report, String> {
    let authorities = Authorities::read(wanted.authorities.as_deref())?;
    let invitation = admin_client::begin_drill(admin, wanted.length, wanted.rate).await?;
    let began = Instant::now();
    let (guides, guide) = watch::channel(Guide::default());
    let ground = Ground {
        invitation: Arc::new(invitation),
        guide,
        authorities,
    };
    let pages = match look_around_within(FIRST_LOOK_MAX, &ground, wanted).await {
        Ok(pages) => pages,
        Err(complaint) => {
            // It ends by itself as well, only later.
            let _ = admin_client::stop_drill(admin, "by=client").await;
            return Err(complaint);
        }
    };
    let bytes: u64 = pages.iter().map(|(_, print)| print.bytes).sum();
    let page_bytes = bytes as f64 / pages.len().max(1) as f64;
    let fair = Fair {
        ground: ground.clone(),
        pages,
        rate: wanted.rate,
    };
    let (stop, stopped) = watch::channel(false);
    let crowd = tokio::spawn(gather(fair, stopped));
    let mut watcher = Watcher::new(admin, guides);
    watcher.watch(interrupted).await;
    let lasted = since(began);
    // The crowd is gone only if it panicked; then there is nothing to tell.
    let _ = stop.send(true);
    let tally: Tally = crowd.await.unwrap_or_default();
    let names = watcher.troubles();
    Ok(Report::new(&Seen {
        site: &ground.invitation.site,
        wanted,
        lasted,
        account: &watcher.account,
        tally: &tally,
        names: &names,
        page_bytes,
    }))
}

/// Ends the drill that the server holds or takes part in.
///
/// # Errors
/// A sentence, where it does not answer.
///
/// Cancel safety: dropped half-way, it may be over or not.
pub async fn stop(admin: SocketAddr) -> Result<String, String> {
    admin_client::stop_drill(admin, "").await
}

/// The same, unless that takes longer than `limit`.
async fn look_around_within(
    limit: Duration,
    ground: &Ground,
    wanted: &Wanted,
) -> Result<Vec<(String, Print)>, String> {
    let looking = timeout(limit, look_around(ground, wanted)).await;
    looking.unwrap_or_else(|_| {
        Err(format!(
            "the site does not show its pages within {limit:?}; try again when it is calm, or \
             choose smaller ones with --path"
        ))
    })
}

/// What the site shows before anybody helps.
async fn look_around(ground: &Ground, wanted: &Wanted) -> Result<Vec<(String, Print)>, String> {
    let mut pages = Vec::new();
    for path in &wanted.paths {
        let print = look_first(ground, path).await;
        let print = print.map_err(|error| format!("{path} cannot be rehearsed: {error}"))?;
        pages.push((path.clone(), print));
    }
    Ok(pages)
}

/// Looks how the drill goes, and where its aliases lead.
struct Watcher {
    admin: SocketAddr,
    account: Account,
    guides: watch::Sender<Guide>,
    found: BTreeMap<String, Option<Found>>,
    lookups: JoinSet<(String, Found)>,
    misses: u32,
}

impl Watcher {
    fn new(admin: SocketAddr, guides: watch::Sender<Guide>) -> Self {
        Self {
            admin,
            account: Account::default(),
            guides,
            found: BTreeMap::new(),
            lookups: JoinSet::new(),
            misses: 0,
        }
    }

    /// Until it is over.
    async fn watch(&mut self, interrupted: impl Future<Output = ()>) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(interrupted);
        let mut is_interrupted = false;
        loop {
            tokio::select! {
                () = &mut interrupted, if !is_interrupted => {
                    is_interrupted = true;
                    // Whether it came through shows in the next account.
                    let _ = admin_client::stop_drill(self.admin, "by=client").await;
                }
                _ = looks.tick() => {
                    self.look().await;
                    if self.account.ended.is_some() || self.misses >= MISSES_MAX {
                        return;
                    }
                }
                Some(looked_up) = self.lookups.join_next(), if !self.lookups.is_empty() => {
                    // A lookup that panicked is a fault of ours, and the runtime has said so.
                    if let Ok((alias, found)) = looked_up {
                        self.note(alias, found);
                    }
                }
            }
        }
    }

    async fn look(&mut self) {
        match admin_client::drill_account(self.admin).await {
            Ok(account) => {
                self.misses = 0;
                self.account = account;
            }
            Err(_) => self.misses += 1,
        }
        for member in &self.account.members {
            if let Part::Helps { alias, address, .. } = &member.part
                && !alias.is_empty()
            {
                let (alias, address) = (with_port(alias), *address);
                if !self.found.contains_key(&alias) {
                    self.found.insert(alias.clone(), None);
                    self.lookups.spawn(async move {
                        let found = look_up(&alias, address).await;
                        (alias, found)
                    });
                }
            }
        }
    }

    fn note(&mut self, alias: String, found: Found) {
        self.guides.send_modify(|guide| {
            Arc::make_mut(guide).insert(alias.clone(), found.address);
        });
        self.found.insert(alias, Some(found));
    }

    fn troubles(&self) -> BTreeMap<String, String> {
        let found = self.found.iter();
        let trouble = |(alias, found): (&String, &Option<Found>)| {
            Some((alias.clone(), found.as_ref()?.trouble.clone()?))
        };
        found.filter_map(trouble).collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::super::account::Invitation;
    use super::*;
    use crate::way::Scheme;

    #[tokio::test]
    async fn a_site_that_does_not_answer_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_guides, guide) = watch::channel(Guide::default());
        let ground = Ground {
            invitation: Arc::new(Invitation {
                site: "www.example.org:80".to_owned(),
                address: silent.local_addr().unwrap(),
                key: String::new(),
                scheme: Scheme::Http,
            }),
            guide,
            authorities: Authorities::read(None).unwrap(),
        };
        let wanted = Wanted {
            rate: 1,
            length: Duration::from_secs(1),
            paths: vec!["/".to_owned()],
            authorities: None,
        };
        let limit = Duration::from_millis(1);
        let looked = look_around_within(limit, &ground, &wanted).await;
        let complaint = looked.unwrap_err();
        assert!(complaint.contains("within 1ms"), "{complaint}");
    }
}
