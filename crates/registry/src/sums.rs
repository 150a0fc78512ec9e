//! What a registry knows, in few numbers: so that two of them can find out where they differ.
//!
//! Names fall into 1024 buckets, 32 in each of 32 groups. The sum of a bucket is the exclusive or
//! of a hash of each version in it, that of a group the exclusive or of its buckets. Two registries
//! that know the same have the same sums, whatever the order in which they learned it.
//!
//! The hash has no secret, so whoever may register anything can make up two versions with the same
//! hash. That delays their own repair until their next registration, and nobody else's.

use levee_vocab::HostName;
use levee_wire::mesh::SUMS;

/// Group and bucket of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// Less than [`SUMS`].
    pub group: u8,
    /// Less than [`SUMS`].
    pub bucket: u8,
}

/// Which of two statements of a site is the newer one: the larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The site's counter.
    pub stamp: u64,
    /// What it said, so that two that carry the same stamp are ordered alike everywhere. A farewell
    /// is the largest.
    pub content: u64,
}

/// The sums of all buckets and groups.
#[derive(Clone, Debug)]
pub struct Sums {
    buckets: Vec<[u64; SUMS]>,
    groups: [u64; SUMS],
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            buckets: vec![[0; SUMS]; SUMS],
            groups: [0; SUMS],
        }
    }
}

impl Sums {
    /// Adds a version of a name, or takes it away where it was added.
    pub fn toggle(&mut self, name: &HostName, version: Version) {
        let Bucket { group, bucket } = Bucket::of(name);
        let mut hash = fnv(FNV_START, name.as_str().as_bytes());
        hash = fnv(hash, &version.stamp.to_le_bytes());
        hash = mixed(fnv(hash, &version.content.to_le_bytes()));
        self.buckets[usize::from(group)][usize::from(bucket)] ^= hash;
        self.groups[usize::from(group)] ^= hash;
    }

    /// The sums of all groups.
    pub const fn groups(&self) -> &[u64; SUMS] {
        &self.groups
    }

    /// The sums of the buckets of `group`; none for a group that is not.
    pub fn buckets(&self, group: u8) -> Option<&[u64; SUMS]> {
        self.buckets.get(usize::from(group))
    }
}

impl Bucket {
    /// Where `name` belongs; the same in all registries.
    pub fn of(name: &HostName) -> Self {
        let hash = mixed(fnv(FNV_START, name.as_str().as_bytes()));
        Self {
            group: (hash >> 59) as u8,
            bucket: ((hash >> 54) & 31) as u8,
        }
    }
}

impl Version {
    /// The farewell with this stamp.
    pub const fn farewell(stamp: u64) -> Self {
        let content = u64::MAX;
        Self { stamp, content }
    }

    /// The entry with this stamp that says `text`.
    pub fn entry(stamp: u64, text: &str) -> Self {
        let content = mixed(fnv(FNV_START, text.as_bytes())).min(u64::MAX - 1);
        Self { stamp, content }
    }
}

/// Where two rows of sums differ, one bit for each.
pub fn differences(one: &[u64; SUMS], other: &[u64; SUMS]) -> u32 {
    let pairs = one.iter().zip(other).enumerate();
    pairs.fold(0, |bits, (at, (one, other))| {
        bits | u32::from(one != other) << at
    })
}

/// FNV-1a of 64 bits.
fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The finish of SplitMix64: FNV alone spreads short names badly over the upper bits.
const fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

const FNV_START: u64 = 0xCBF2_9CE4_8422_2325;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_what_is_known_and_not_how_it_was_learned() {
        let names = ["a.org", "b.org", "c.org"].map(|name| name.parse::<HostName>());
        let [Ok(a), Ok(b), Ok(c)] = names else {
            panic!("good names");
        };
        let version = |stamp| Version::entry(stamp, "text");
        let (mut one, mut other) = (Sums::default(), Sums::default());
        one.toggle(&a, version(1));
        one.toggle(&b, version(1));
        other.toggle(&c, version(1));
        other.toggle(&b, version(1));
        other.toggle(&a, version(1));
        let differ = differences(one.groups(), other.groups());
        assert_eq!(differ, 1 << Bucket::of(&c).group);
        other.toggle(&c, version(1));
        assert_eq!(differences(one.groups(), other.groups()), 0);
    }

    #[test]
    fn names_spread_over_all_buckets() {
        let mut counts = vec![0; SUMS * SUMS];
        for number in 0..20_480 {
            let name: HostName = format!("www{number}.example").parse().expect("a name");
            let Bucket { group, bucket } = Bucket::of(&name);
            counts[usize::from(group) * SUMS + usize::from(bucket)] += 1;
        }
        assert!(counts.iter().all(|&count| (1..=60).contains(&count)));
    }
}
