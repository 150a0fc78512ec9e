//! What an allocation costs the process, beside what was asked for.
//!
//! The cache's limit is a promise about memory, so what the allocator adds counts: its header and
//! rounding, whole pages for what is large, and the holes between what is small. The last is a
//! measured share: `cargo xtask bench memory` sends ten million objects of all sizes through a
//! cache and weighs the process.

use levee_net::MAPPED_FROM;

/// Header, and alignment (glibc).
const HEADER: usize = 8;
const ALIGNMENT: usize = 16;
const LEAST: usize = 32;
const PAGE: usize = 4096;
/// Of what lies on the heap a fifth more, for the holes that objects of other sizes leave.
const HOLES: usize = 5;

/// Bytes that an allocation of `bytes` takes.
pub(super) const fn allocation(bytes: usize) -> usize {
    if bytes >= MAPPED_FROM {
        return (bytes + 2 * HEADER).next_multiple_of(PAGE);
    }
    let rounded = (bytes + HEADER).next_multiple_of(ALIGNMENT);
    let rounded = if rounded < LEAST { LEAST } else { rounded };
    rounded + rounded / HOLES
}

/// Bytes of a `Bytes` of its own: what it holds, and the counter of those who share it.
pub(super) const fn shared_bytes(bytes: usize) -> usize {
    allocation(bytes) + allocation(24)
}

/// Bytes of an `Arc`: the value and its two counters.
pub(super) const fn counted<T>() -> usize {
    allocation(size_of::<T>() + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_costs_its_rounding_and_its_share_of_holes() {
        assert_eq!(allocation(0), 38);
        assert_eq!(allocation(100), 134);
        assert_eq!(allocation(MAPPED_FROM), MAPPED_FROM + PAGE);
        assert_eq!(allocation(100_000) % PAGE, 0);
    }
}
