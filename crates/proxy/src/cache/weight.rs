//! What an allocation costs the process, beside what was asked for.
//!
//! The cache's limit is a promise about memory, so what the allocator adds counts: jemalloc rounds
//! every allocation up to a size class, four to each doubling, and whole pages from 16 KiB on.
//! What its runs of pages have free is a measured share: `cargo xtask bench memory` sends ten
//! million objects of all sizes through a cache and weighs the process.

const QUANTUM: usize = 16;
/// Up to here the classes are all multiples of the quantum.
const LINEAR_MAX: usize = 128;
/// From here on an allocation has pages of its own, and one more that places it.
const LARGE: usize = 16 * 1024;
const PAGE: usize = 4096;
/// Of what is small a fifth more, for places in runs that no object has taken. With a seventh the
/// process grew to 1.05 of the limit in ten millions, when all that the threads held was set down.
const FREE_PLACES: usize = 5;

/// Bytes that an allocation of `bytes` takes.
pub(super) const fn allocation(bytes: usize) -> usize {
    let class = size_class(bytes);
    if class >= LARGE {
        return class + PAGE;
    }
    class + class / FREE_PLACES
}

/// The size class of jemalloc that holds `bytes`.
const fn size_class(bytes: usize) -> usize {
    if bytes <= LINEAR_MAX {
        return match bytes {
            0 => QUANTUM,
            bytes => bytes.next_multiple_of(QUANTUM),
        };
    }
    // Four classes to each doubling: a quarter of the largest power of two below apart.
    let doubling = 1 << (usize::BITS - 1 - (bytes - 1).leading_zeros());
    bytes.next_multiple_of(doubling / 4)
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
    fn sizes_are_rounded_as_jemalloc_rounds_them() {
        let classes = [
            (0, 16),
            (16, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (4097, 5120),
            (16_384, 16_384),
            (16_385, 20_480),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, (1 << 20) + (1 << 18)),
        ];
        for (bytes, class) in classes {
            assert_eq!(size_class(bytes), class, "{bytes}");
        }
    }

    #[test]
    fn an_allocation_costs_its_class_and_its_share_of_free_places() {
        assert_eq!(allocation(100), 112 + 22);
        assert_eq!(allocation(100_000), 114_688 + PAGE);
    }
}
