//! Whether the state folder can still be written: known before somebody in need asks.
//!
//! An alias is given out only when it is safe on disk, so a server whose disk is full can help
//! nobody, and must not be offered to anybody either. Looked at each second, without a write: room,
//! free inodes, permissions. Where one of them says no, a small file is written to find out, and
//! what the system says is what the operator is told. That it can be written again is known when
//! all that could not be written was. That is tried on a thread that may wait: the Brain's may not.

use std::path::Path;
use std::time::Duration;

use levee_control::{AliasRecord, Records};
use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::StateFolder;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// Between two attempts to write what could not be written: each may wait for the disk.
const RETRY: Duration = Duration::from_secs(2);
/// Bytes that always suffice for our files.
const ROOM: u64 = 256 * 1024;

/// Looks at a state folder as long as it lives.
#[derive(Debug)]
pub struct StateWatch {
    state: Option<StateFolder>,
    told: Records,
    retry_at: Instant,
    /// At most one at a time: a disk that hangs is not written to twice.
    retries: JoinSet<()>,
    _looks: JoinSet<()>,
}

impl StateWatch {
    /// Begins to look; at nothing where there is no folder. Needs a tokio runtime.
    pub fn start(state: Option<StateFolder>) -> Self {
        let mut looks = JoinSet::new();
        if let Some(state) = state.clone() {
            looks.spawn(look(state));
        }
        Self {
            state,
            told: Records::Kept,
            retry_at: Instant::now(),
            retries: JoinSet::new(),
            _looks: looks,
        }
    }

    /// What has changed since it was asked last. Has what could not be written tried again, now and
    /// then, with the aliases as they are now. Never waits for the disk.
    pub fn change(&mut self, aliases: impl FnOnce() -> Vec<AliasRecord>) -> Option<Records> {
        let state = self.state.as_ref()?;
        while self.retries.try_join_next().is_some() {}
        let trouble = state.trouble();
        let is_due = Instant::now() >= self.retry_at && self.retries.is_empty();
        if !trouble.is_empty() && self.told == Records::Lost && is_due {
            self.retry_at = Instant::now() + RETRY;
            state.remember_later(&aliases());
            let state = state.clone();
            self.retries.spawn_blocking(move || state.try_again());
        }
        let (now, before) = match trouble.is_empty() {
            true => (Records::Kept, self.told),
            false => (Records::Lost, self.told),
        };
        if now == before {
            return None;
        }
        match now {
            Records::Kept => {
                tracing::info!("the state folder can be written again: others can be helped")
            }
            Records::Lost => tracing::error!("nobody can be helped: {trouble}"),
        }
        self.told = now;
        Some(now)
    }
}

async fn look(state: StateFolder) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let state = state.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if state.trouble().is_empty() && is_doubtful(state.path()) {
                state.probe();
            }
        });
        // It can only fail when the process ends.
        if looked.await.is_err() {
            return;
        }
    }
}

/// Whether it may be that nothing can be written there.
fn is_doubtful(folder: &Path) -> bool {
    has_no_room(folder) || access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err()
}

/// Whether the disk of `folder` may have no room for our files, or takes none.
pub fn has_no_room(folder: &Path) -> bool {
    let Ok(disk) = statvfs(folder) else {
        return true;
    };
    disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM
        // Some file systems do not count inodes.
        || (disk.f_files > 0 && disk.f_favail == 0)
        || disk.f_flag.contains(StatVfsMountFlags::RDONLY)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// The next change that it tells, while what it tries is done.
    async fn next_change(watch: &mut StateWatch) -> Records {
        loop {
            if let Some(records) = watch.change(Vec::new) {
                return records;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_is_gone_is_told_once_and_its_return_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let state = StateFolder::open(&path).unwrap();
        let mut watch = StateWatch::start(Some(state.clone()));
        assert_eq!(watch.change(Vec::new), None);
        std::fs::remove_dir(&path).unwrap();
        state.probe();
        assert_eq!(watch.change(Vec::new), Some(Records::Lost));
        assert_eq!(watch.change(Vec::new), None);
        std::fs::create_dir(&path).unwrap();
        tokio::time::advance(RETRY).await;
        assert_eq!(next_change(&mut watch).await, Records::Kept);
        assert_eq!(state.trouble(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_does_not_hold_up_who_asks() {
        let place = tempfile::tempdir().unwrap();
        let state = StateFolder::open(place.path()).unwrap();
        let aliases = place.path().join("aliases");
        std::fs::create_dir(&aliases).unwrap();
        state.remember(&[]).unwrap_err();
        let mut watch = StateWatch::start(Some(state.clone()));
        assert_eq!(watch.change(Vec::new), Some(Records::Lost));
        std::fs::remove_dir(&aliases).unwrap();
        // Whoever opens this to write waits until somebody reads.
        let hanging = place.path().join("aliases.new");
        mknodat(CWD, &hanging, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(watch.change(Vec::new), None);
        assert_eq!(watch.retries.len(), 1);
        tokio::time::advance(RETRY).await;
        assert_eq!(watch.change(Vec::new), None);
        assert_eq!(watch.retries.len(), 1, "it is not written to twice");
        let text = std::fs::read_to_string(&hanging).unwrap();
        assert!(text.starts_with("# levee aliases"), "{text}");
        while !watch.retries.is_empty() {
            watch.retries.join_next().await;
        }
        tokio::time::advance(RETRY).await;
        assert_eq!(next_change(&mut watch).await, Records::Kept);
    }

    #[test]
    fn a_folder_with_room_is_not_in_doubt() {
        let place = tempfile::tempdir().unwrap();
        assert!(!is_doubtful(place.path()));
        assert!(is_doubtful(&place.path().join("missing")));
    }
}
