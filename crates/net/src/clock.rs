//! The real clock, as a [`Timestamp`].
//!
//! Read once per turn of an event loop and passed on as an argument, so that whoever decides does
//! not read it itself.

use std::time::Duration;

use levee_vocab::Timestamp;

/// Time since the machine started. Never jumps when somebody sets the date.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Now, to the nanosecond.
    pub fn now(self) -> Timestamp {
        Timestamp::ZERO + read(libc::CLOCK_MONOTONIC)
    }
}

/// Reads one of the system's clocks. The C library is asked, not rustix, because rustix finds the
/// kernel's fast path in a way that dies under valgrind, by which our benchmarks count
/// instructions.
pub(crate) fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live, writable timespec. The clocks asked for here exist on every
    // Linux, so the call cannot fail; if it did, the time would be zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_backwards() {
        let clock = Clock;
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(first > Timestamp::ZERO);
    }
}
