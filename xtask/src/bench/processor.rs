//! Processor time and memory of a server: of all its processes and all their threads.
//!
//! The kernel counts the time of each running thread in nanoseconds (`schedstat`). How that
//! divides between user and kernel it only samples at each clock tick (`stat`), so the share of
//! user time needs a run of seconds to be worth something.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Processor time up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    exact: Duration,
    user: Duration,
    system: Duration,
    processes: u32,
}

/// Processor time between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In user space and in the kernel.
    pub total: Duration,
    /// The part in user space, sampled.
    pub user: Duration,
}

/// USER_HZ: the kernel tells ticks of this length on every platform that Levee runs on.
const TICK: Duration = Duration::from_millis(10);

/// Time used so far by `root`, the processes that it started, and those that they started.
pub fn used_by(root: u32) -> Used {
    let mut used = Used::default();
    for process in family(root) {
        let folder = format!("/proc/{process}");
        let Some((_, user, system)) = stat(Path::new(&folder)) else {
            continue;
        };
        used.user += user;
        used.system += system;
        used.processes += 1;
        for thread in entries(&format!("{folder}/task")) {
            let path = format!("{folder}/task/{thread}/schedstat");
            let text = fs::read_to_string(path).unwrap_or_default();
            let first = text.split(' ').next().unwrap_or_default();
            used.exact += Duration::from_nanos(first.parse().unwrap_or_default());
        }
    }
    used
}

/// Memory in bytes of `root` and all that descends from it: pages that several of them share are
/// counted once.
pub fn memory_of(root: u32) -> u64 {
    let of = |process: u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    family(root).into_iter().filter_map(of).sum()
}

/// `root` and everything that descends from it.
pub fn family(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in entries("/proc") {
        if let Some((parent, ..)) = stat(Path::new(&format!("/proc/{process}"))) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = vec![root];
    let mut index = 0;
    while let Some(process) = found.get(index) {
        found.extend(children.remove(process).unwrap_or_default());
        index += 1;
    }
    found
}

impl std::ops::Add for Used {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            exact: self.exact + other.exact,
            user: self.user + other.user,
            system: self.system + other.system,
            processes: self.processes + other.processes,
        }
    }
}

impl Used {
    /// What was spent since `earlier`. Threads that ended meanwhile are missing in the exact count
    /// and present in the ticks; so where the ticks say clearly more, they are right.
    pub fn since(self, earlier: Self) -> Spent {
        let exact = self.exact.saturating_sub(earlier.exact);
        let user = self.user.saturating_sub(earlier.user);
        let ticks = user + self.system.saturating_sub(earlier.system);
        let rounding = TICK * 2 * self.processes.max(1);
        let total = match ticks > exact + rounding {
            true => ticks,
            false => exact,
        };
        let share = match ticks.is_zero() {
            true => 0.0,
            false => user.as_secs_f64() / ticks.as_secs_f64(),
        };
        Spent {
            total,
            user: total.mul_f64(share),
        }
    }
}

/// Parent, user time and system time of a process.
fn stat(folder: &Path) -> Option<(u32, Duration, Duration)> {
    parse_stat(&fs::read_to_string(folder.join("stat")).ok()?)
}

/// The name stands in brackets and may hold anything, so the fields are counted from its end.
fn parse_stat(text: &str) -> Option<(u32, Duration, Duration)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let user: u32 = fields.nth(9)?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((parent, TICK * user, TICK * system))
}

/// Entries of a folder of /proc whose names are numbers.
fn entries(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let text = "12 (a) b (c)) S 7 12 12 0 -1 4194560 1 2 3 4 150 250 0 0 20 0 1 0 99";
        let (parent, user, system) = parse_stat(text).unwrap();
        assert_eq!(parent, 7);
        assert_eq!((user.as_millis(), system.as_millis()), (1500, 2500));
    }

    fn used(exact_ms: u64, user_ms: u64, system_ms: u64) -> Used {
        Used {
            exact: Duration::from_millis(exact_ms),
            user: Duration::from_millis(user_ms),
            system: Duration::from_millis(system_ms),
            processes: 1,
        }
    }

    #[test]
    fn the_exact_count_wins_and_ticks_divide_it() {
        let spent = used(1105, 110, 990).since(used(100, 10, 90));
        assert_eq!(spent.total.as_millis(), 1005);
        assert_eq!(spent.user.as_micros(), 100_500);
    }

    #[test]
    fn time_of_threads_that_ended_is_not_lost() {
        let spent = used(200, 100, 900).since(used(100, 0, 0));
        assert_eq!(spent.total.as_millis(), 1000);
    }

    #[test]
    fn our_own_time_and_family_are_found() {
        let own = std::process::id();
        assert!(family(own).contains(&own));
        let before = used_by(own);
        assert!(before.processes >= 1);
        assert!(memory_of(own) > 100_000);
        assert!(used_by(own).since(before).total < Duration::from_secs(60));
    }
}
