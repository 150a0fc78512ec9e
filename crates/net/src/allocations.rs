//! Counts allocations, for benchmarks that claim to make none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, with a counter. A benchmark makes it its `#[global_allocator]`; the
/// server itself does not.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
}

impl CountingAllocator {
    /// A counter at zero.
    pub const fn new() -> Self {
        Self {
            allocations: AtomicU64::new(0),
        }
    }

    /// Allocations and reallocations of all threads so far.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Relaxed)
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract of
// the trait; counting touches no memory but the counter.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator, by `alloc` or `realloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.allocations.fetch_add(1, Relaxed);
        // SAFETY: as for `dealloc`, and the caller vouches for the size.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
