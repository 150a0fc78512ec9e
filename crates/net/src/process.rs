//! What this process uses and may use.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::clock::read;

/// Processor time of all threads of this process since its start.
pub fn cpu_time() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the calling thread since its start.
pub fn thread_cpu_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Raises the soft limit of open files to the hard limit, and tells how many there may be.
/// A limit that cannot be raised stays; it is told as it is.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let wanted = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Refused in some containers: the answer below says what is left.
        let _ = setrlimit(Resource::Nofile, wanted);
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_knows_its_means() {
        assert!(raise_open_files() >= 64);
        assert!(cpu_time() >= thread_cpu_time());
    }
}
