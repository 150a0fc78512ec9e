//! Knows signed messages again, so that a recorded one is worth nothing.
//!
//! Each signed message carries a stamp. One that is further from our clock than
//! [`CLOCK_SKEW_MAX`] is refused whatever it says; of the others each key's stamps are kept until
//! they are too old anyway, so memory is bounded by the members and by a limit for each. Of those
//! that were forgotten the newest is kept: were the clock set back, older ones would fit it again.
//!
//! A window that was opened a moment ago knows nothing of what came before it: so it refuses what
//! was signed before that. A member whose clock is behind waits for as long as it is behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thiserror::Error;

use crate::stamp::CLOCK_SKEW_MAX;
use crate::{PublicKey, UnixMillis};

/// The stamps of the last two minutes.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// What was signed earlier may have been taken already, by the process before this one.
    opened: UnixMillis,
    seen: BTreeMap<PublicKey, Seen>,
    /// When the stamps of all keys were last looked through.
    swept: UnixMillis,
}

/// The stamps of one key.
#[derive(Clone, Debug, Default)]
struct Seen {
    stamps: BTreeSet<UnixMillis>,
    /// The newest of those that were forgotten.
    forgotten: UnixMillis,
}

/// Why a stamp is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Stale {
    /// Its time has passed.
    #[error(
        "signed {} s ago: recorded and replayed, or the clocks of the two machines differ \
         by more than {} s",
        .0.as_secs(), CLOCK_SKEW_MAX.as_secs()
    )]
    TooOld(Duration),
    /// Its time has not come.
    #[error(
        "signed {} s in the future: the clocks of the two machines differ by more than {} s",
        .0.as_secs(), CLOCK_SKEW_MAX.as_secs()
    )]
    FromTheFuture(Duration),
    /// We may have taken it before we were restarted.
    #[error(
        "signed {} ms before this server was started: recorded and replayed, or the clocks of the \
         two machines differ; it is taken when it is signed anew", .0.as_millis()
    )]
    BeforeStart(Duration),
    /// It was here before.
    #[error("received before: recorded and replayed")]
    Replayed,
    /// More messages of one key than anybody needs.
    #[error("too many signed messages of one key within two minutes")]
    TooMany,
}

impl ReplayWindow {
    /// A window that takes what is signed from `now` on.
    pub fn opened(now: UnixMillis) -> Self {
        Self {
            opened: now,
            ..Self::default()
        }
    }

    /// Takes the stamp of a message whose signature has been checked. Each is taken once.
    ///
    /// # Errors
    /// When the stamp is too far from `now`, or was taken before.
    pub fn take(
        &mut self,
        key: &PublicKey,
        stamp: UnixMillis,
        now: UnixMillis,
    ) -> Result<(), Stale> {
        check_clock(stamp, now)?;
        if stamp < self.opened {
            return Err(Stale::BeforeStart(self.opened.since(stamp)));
        }
        let oldest = UnixMillis(now.0.saturating_sub(CLOCK_SKEW_MAX.as_millis() as u64));
        self.sweep(oldest, now);
        let seen = self.seen.entry(*key).or_default();
        seen.forget(&oldest);
        if stamp <= seen.forgotten || seen.stamps.contains(&stamp) {
            return Err(Stale::Replayed);
        }
        if seen.stamps.len() >= STAMPS_PER_KEY_MAX {
            return Err(Stale::TooMany);
        }
        seen.stamps.insert(stamp);
        Ok(())
    }

    /// Stamps that are held now.
    pub fn held(&self) -> usize {
        self.seen.values().map(|seen| seen.stamps.len()).sum()
    }

    /// Once a second is often enough: thousands of members may each send several.
    fn sweep(&mut self, oldest: UnixMillis, now: UnixMillis) {
        if now.since(self.swept) < SWEEP_EVERY {
            return;
        }
        self.swept = now;
        self.seen.values_mut().for_each(|seen| seen.forget(&oldest));
    }
}

impl Seen {
    fn forget(&mut self, oldest: &UnixMillis) {
        let kept = self.stamps.split_off(oldest);
        let gone = std::mem::replace(&mut self.stamps, kept);
        self.forgotten = gone.last().copied().unwrap_or_default().max(self.forgotten);
    }
}

/// Checks that a stamp is of about now.
fn check_clock(stamp: UnixMillis, now: UnixMillis) -> Result<(), Stale> {
    let (behind, ahead) = (now.since(stamp), stamp.since(now));
    if behind > CLOCK_SKEW_MAX {
        return Err(Stale::TooOld(behind));
    }
    if ahead > CLOCK_SKEW_MAX {
        return Err(Stale::FromTheFuture(ahead));
    }
    Ok(())
}

const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// A site in distress asks a rescue server once in some seconds.
pub const STAMPS_PER_KEY_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000_000);

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    #[test]
    fn a_message_is_taken_once_whatever_the_order() {
        let mut window = ReplayWindow::default();
        let mut take = |by, stamp| window.take(&key(by), UnixMillis(stamp), NOW);
        assert_eq!(take(1, 1_000_000), Ok(()));
        assert_eq!(take(1, 999_999), Ok(()));
        assert_eq!(take(1, 1_000_000), Err(Stale::Replayed));
        assert_eq!(take(2, 1_000_000), Ok(()));
    }

    #[test]
    fn clocks_may_differ_by_a_minute_and_no_more() {
        let mut window = ReplayWindow::default();
        let mut take = |stamp| window.take(&key(1), UnixMillis(stamp), NOW);
        assert_eq!(take(940_000), Ok(()));
        assert_eq!(take(1_060_000), Ok(()));
        let late = Duration::from_millis(60_001);
        assert_eq!(take(939_999), Err(Stale::TooOld(late)));
        assert_eq!(take(1_060_001), Err(Stale::FromTheFuture(late)));
    }

    #[test]
    fn what_the_process_before_may_have_taken_is_not_taken_again() {
        let mut window = ReplayWindow::opened(NOW);
        let mut take = |stamp| window.take(&key(1), UnixMillis(stamp), NOW);
        let before = Duration::from_millis(1);
        assert_eq!(take(NOW.0 - 1), Err(Stale::BeforeStart(before)));
        assert_eq!(take(NOW.0), Ok(()));
    }

    #[test]
    fn what_is_forgotten_is_too_old_anyway() {
        let mut window = ReplayWindow::default();
        for second in 0..1000 {
            let stamp = UnixMillis(NOW.0 + second * 1000);
            let mut take = || window.take(&key(1), stamp, stamp);
            assert_eq!(take(), Ok(()));
            assert_eq!(take(), Err(Stale::Replayed));
        }
        assert_eq!(window.held(), 61);
        let end = UnixMillis(NOW.0 + 999_000);
        for second in 0..1000 {
            let stamp = UnixMillis(NOW.0 + second * 1000);
            assert!(window.take(&key(1), stamp, end).is_err());
        }
    }

    #[test]
    fn what_is_forgotten_is_not_taken_again_when_the_clock_is_set_back() {
        let mut window = ReplayWindow::default();
        let mut take = |by, stamp, now| window.take(&key(by), UnixMillis(stamp), UnixMillis(now));
        let (now, later) = (NOW.0, NOW.0 + 3_600_000);
        assert_eq!(take(1, now, now), Ok(()));
        assert_eq!(take(2, later, later), Ok(()));
        assert_eq!(take(1, now, now), Err(Stale::Replayed));
        assert_eq!(take(1, now - 1, now), Err(Stale::Replayed));
        // What is signed after it is taken at once.
        assert_eq!(take(1, now + 1, now), Ok(()));
        assert_eq!(take(2, now, now), Ok(()));
    }

    #[test]
    fn one_key_fills_only_its_own_part() {
        let mut window = ReplayWindow::default();
        for stamp in 0..STAMPS_PER_KEY_MAX as u64 {
            assert_eq!(window.take(&key(1), UnixMillis(NOW.0 + stamp), NOW), Ok(()));
        }
        let more = UnixMillis(NOW.0 - 1);
        assert_eq!(window.take(&key(1), more, NOW), Err(Stale::TooMany));
        assert_eq!(window.take(&key(2), more, NOW), Ok(()));
    }
}
