//! Showing an old object while a newer one is fetched (RFC 5861 section 3).
//!
//! ```text
//!  fresh ──lifetime over──▶ shown ──first who asks──▶ spared ──▶ fresh      the fetch brought it
//!                             ▲                          │
//!                             └──────── `stale_retry` ───┘                  it runs, or has failed
//! ```
//!
//! Nobody waits: whoever asks first gets the old object like all others, and leaves a flight
//! without readers in the table. A flight that is there already is enough. Until `stale_retry` is
//! over nobody even looks, whatever becomes of the flight, so an object costs its source one fetch
//! in this time.
//!
//! A hot object does not come so far: within the last fifth of its lifetime, a minute at most, the
//! first who asks leaves a flight behind in the same way, and gets the object, which is fresh. So
//! nobody waits and nobody sees anything old. Hot is what was asked for often enough since it came
//! ([`super::FetchSettings::refresh_hits`]); the count lies in the cache's slot, which a hit writes
//! anyway. Each object has its own moment, and only a quarter of a source's turns is for these.
//!
//! Such a flight needs one of the permits of fetches that go on for nobody. Where there is none the
//! old object is shown all the same, and the next who asks after `stale_retry` tries again.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::Shared;
use super::counters::count;
use super::homes::is_elsewhere;
use super::table::{Table, Ticket};
use super::task::Fetch;
use crate::cache::{CacheKey, Stored};
use crate::flight::{Asker, CacheResult, Flight, Purpose, Waiting};

/// Where a source has no turn left for an early renewal, the object is tried again after this.
const EARLY_RETRY: Duration = Duration::from_millis(500);

impl Shared {
    /// The old object under `key` for `asker`, and a fetch of a newer one for whoever comes later.
    pub(super) fn show_and_renew(
        self: &Arc<Self>,
        mut table: MutexGuard<'_, Table>,
        key: CacheKey,
        asker: Box<Asker>,
        old: &Arc<Stored>,
    ) -> Waiting {
        let spared = old.spared(self.now(), self.settings.stale_retry);
        // Where it is gone, the next who asks finds nothing and waits for the flight.
        self.cache.exchange(&key, old, spared);
        let ticket = match table.find(&key) {
            Some(_) => None,
            None => self.unattended(&mut table, key, &asker),
        };
        // Not under the lock: a runtime that shuts down drops the task at once, which takes it.
        drop(table);
        if let Some(ticket) = ticket {
            let flight = Arc::clone(&ticket.flight);
            let fetch = Fetch::shared(Arc::clone(self), ticket, asker, Some(Arc::clone(old)));
            flight.attach_task(self.runtime.spawn(fetch.run()).abort_handle());
        }
        Waiting::of_stored(Arc::clone(old), CacheResult::Stale)
    }

    /// The object under `key`, which is still fresh, and a fetch of a newer one where it is hot.
    /// The next who asks finds it as any other fresh object.
    pub(super) fn show_and_renew_early(
        self: &Arc<Self>,
        mut table: MutexGuard<'_, Table>,
        key: CacheKey,
        asker: Box<Asker>,
        fresh: &Arc<Stored>,
    ) -> Waiting {
        let shown = Waiting::of_stored(Arc::clone(fresh), CacheResult::Hit);
        let ticket = match self.is_worth_renewing(&key, &asker, fresh) {
            true if table.find(&key).is_none() => self.unattended_early(&mut table, &key, &asker),
            true | false => {
                self.cache.exchange(&key, fresh, fresh.undue());
                return shown;
            }
        };
        let next = match ticket {
            Some(_) => fresh.undue(),
            None => fresh.due_from(self.now() + EARLY_RETRY),
        };
        self.cache.exchange(&key, fresh, next);
        drop(table);
        if let Some(ticket) = ticket {
            count(&self.tally.early_renewals);
            let flight = Arc::clone(&ticket.flight);
            let fetch = Fetch::shared(Arc::clone(self), ticket, asker, Some(Arc::clone(fresh)));
            flight.attach_task(self.runtime.spawn(fetch.run()).abort_handle());
        }
        shown
    }

    /// Whether many ask for it, and somebody would have to wait at its end. An origin that we
    /// rescue is not asked early for what may be shown while it is renewed: its link is full. What
    /// has its home elsewhere is renewed there: until then it is as old as ours.
    fn is_worth_renewing(&self, key: &CacheKey, asker: &Asker, fresh: &Stored) -> bool {
        let hits = self.settings.refresh_hits;
        let is_hot = hits.is_some_and(|hits| self.cache.asks(key) >= hits);
        is_hot
            && match asker.source.purpose {
                Purpose::Upstream => true,
                Purpose::Rescue => {
                    let is_elsewhere = is_elsewhere(&asker.source.company, &asker.key);
                    fresh.shown_until <= fresh.fresh_until && !is_elsewhere
                }
            }
    }

    fn unattended_early(&self, table: &mut Table, key: &CacheKey, asker: &Asker) -> Option<Ticket> {
        let permit = Arc::clone(&self.abandoned).try_acquire_owned().ok()?;
        let flight = Flight::begin_unattended(Arc::clone(&self.abandoned), permit);
        let ticket = table.admit_early(&self.settings, &asker.source, &flight, key.clone());
        ticket.ok()
    }

    /// A flight without readers, where there is room for one.
    fn unattended(&self, table: &mut Table, key: CacheKey, asker: &Asker) -> Option<Ticket> {
        let permit = Arc::clone(&self.abandoned).try_acquire_owned().ok()?;
        let flight = Flight::begin_unattended(Arc::clone(&self.abandoned), permit);
        let ticket = table.admit(&self.settings, &asker.source, &flight, Some(key));
        ticket.ok()
    }
}
