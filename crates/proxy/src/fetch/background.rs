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
//! Such a flight needs one of the permits of fetches that go on for nobody. Where there is none the
//! old object is shown all the same, and the next who asks after `stale_retry` tries again.

use std::sync::{Arc, MutexGuard};

use super::Shared;
use super::table::{Table, Ticket};
use super::task::Fetch;
use crate::cache::{CacheKey, Stored};
use crate::flight::{Asker, CacheResult, Flight, Waiting};

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

    /// A flight without readers, where there is room for one.
    fn unattended(&self, table: &mut Table, key: CacheKey, asker: &Asker) -> Option<Ticket> {
        let permit = Arc::clone(&self.abandoned).try_acquire_owned().ok()?;
        let flight = Flight::begin_unattended(Arc::clone(&self.abandoned), permit);
        let ticket = table.admit(&self.settings, &asker.source, &flight, Some(key));
        ticket.ok()
    }
}
