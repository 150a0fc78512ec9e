//! The allocator of a server that has promised not to outgrow a limit: jemalloc, which keeps
//! objects of a size together.
//!
//! Under churn of objects of all sizes the holes in a heap of glibc grow with every object that has
//! passed, to a third after ten millions; those between size classes do not
//! (`cargo xtask bench memory`, decision 0021). So what an allocation costs can be told beforehand,
//! and the cache counts that.
//!
//! Fuzzing does without it: its targets keep the allocator of libFuzzer, and jemalloc, which is C,
//! takes longer to build than any parser.

/// To be made the `#[global_allocator]` of a program.
#[cfg(not(fuzzing))]
pub use tikv_jemallocator::Jemalloc as Allocator;

/// How it is to behave, read by itself before the first allocation: two arenas (misses allocate on
/// several threads, hits on none), freed pages go back at once, and threads keep what they freed up
/// to 64 KiB, so that the records and frames of a core need no system call.
#[cfg(not(fuzzing))]
#[used]
#[unsafe(export_name = "_rjem_malloc_conf")]
static BEHAVIOUR: &[u8; 61] = b"narenas:2,lg_tcache_max:16,dirty_decay_ms:0,muzzy_decay_ms:0\0";

/// Lets this thread keep nothing of what it frees: for threads that fill caches. What they kept
/// made the churn grow to 1.18 of the limit instead of 1.02.
pub fn keep_nothing_freed() {
    #[cfg(not(fuzzing))]
    // SAFETY: this name takes a C `bool`, which is Rust's. Where jemalloc is not the allocator of
    // the program, or has no caches, nothing depends on the outcome.
    let _ = unsafe { tikv_jemalloc_ctl::raw::write(b"thread.tcache.enabled\0", false) };
}
