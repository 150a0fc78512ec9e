//! How the C library's allocator is to behave in a server that has promised not to outgrow a limit.
//!
//! Left alone, glibc moves the size from which an allocation has pages of its own upwards, to 32
//! MB, and keeps a heap for each thread, up to eight for each processor. Objects of all sizes that
//! come and go then leave holes in each heap (`cargo xtask bench memory`; decision 0021). With the
//! size fixed and two heaps there are fewer, and large objects leave none.

/// An allocation of so many bytes or more has pages of its own, which go back when it does.
/// 32 KiB: buffers for a TLS record or an HTTP/2 frame stay on the heap.
pub const MAPPED_FROM: usize = 32 * 1024;

/// Fixes the behaviour for this process; to be called before threads are started. Does nothing
/// where the C library is not glibc.
pub fn settle_allocator() {
    #[cfg(target_env = "gnu")]
    {
        /// Misses allocate on several threads, hits on none: two heaps are enough.
        const HEAPS: libc::c_int = 2;
        // SAFETY: mallopt reads two numbers and changes nothing that Rust relies on; it is called
        // before there are threads that could allocate at the same time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM as libc::c_int);
            libc::mallopt(libc::M_ARENA_MAX, HEAPS);
        }
    }
}
