//! The allocator of a server that has promised not to outgrow a limit: jemalloc, which keeps
//! objects of a size together.
//!
//! Under churn of objects of all sizes the holes in a heap of glibc grow with every object that has
//! passed, to a third after ten millions; those between size classes do not
//! (`cargo xtask bench memory`, decision 0021). So what an allocation costs can be told beforehand,
//! and the cache counts that.

/// To be made the `#[global_allocator]` of a program.
pub use tikv_jemallocator::Jemalloc as Allocator;

/// How it is to behave, read by itself before the first allocation: freed pages go back at once,
/// two arenas (misses allocate on several threads, hits on none), and nothing stays with the thread
/// that freed it: those caches alone made the churn grow to 1.18 of the limit instead of 1.02.
#[used]
#[unsafe(export_name = "_rjem_malloc_conf")]
static BEHAVIOUR: &[u8; 57] = b"narenas:2,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0\0";
