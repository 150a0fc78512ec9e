//! Who holds a copy of what a core is asked for: the hot resources of the plan, by hash.
//!
//! Made when a plan brings a new list, which is seldom; a request looks once, or not at all where
//! nothing is hot. The hash is that under which arrivals are noted, with a seed that nobody outside
//! knows, so that none can be made to share one. Two resources that do by chance
//! are taken for each other: the worst that comes of it is a redirect to somebody who must fetch.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::SeedableRandomState;
use levee_control::{Copies, HotRoute, RoutePlan};

/// See the file header.
#[derive(Debug, Default)]
pub(crate) struct HotIndex {
    routes: Arc<[HotRoute]>,
    /// By open addressing, half empty at most; nothing where nothing is hot.
    slots: Box<[Slot]>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    /// Without holders: an empty slot.
    copies: Copies,
}

/// The hash of a resource, the same on every core: of its path or target, and of the one name of
/// its site.
pub(super) fn resource_hash(hasher: &SeedableRandomState, path_hash: u64, host: &str) -> u64 {
    path_hash ^ hasher.hash_one(host).rotate_left(1)
}

impl HotIndex {
    /// Goes by `plan` from now on.
    pub fn adopt(&mut self, hasher: &SeedableRandomState, plan: &RoutePlan) {
        let Some(redirect) = &plan.redirect else {
            *self = Self::default();
            return;
        };
        if Arc::ptr_eq(&self.routes, &redirect.hot) {
            return;
        }
        self.routes = Arc::clone(&redirect.hot);
        let empty = Slot {
            hash: 0,
            copies: Copies::NONE,
        };
        let length = match self.routes.len() {
            0 => 0,
            count => (count * 2).next_power_of_two(),
        };
        self.slots = vec![empty; length].into();
        for route in redirect.hot.iter().filter(|route| route.holders != 0) {
            self.insert(hasher, route);
        }
    }

    /// Who holds the resource of this hash.
    pub fn find(&self, hash: u64) -> Copies {
        if self.slots.is_empty() {
            return Copies::NONE;
        }
        let mask = self.slots.len() - 1;
        let mut index = hash as usize & mask;
        loop {
            let slot = &self.slots[index];
            if slot.hash == hash || slot.copies.holders == 0 {
                return slot.copies;
            }
            index = (index + 1) & mask;
        }
    }

    fn insert(&mut self, hasher: &SeedableRandomState, route: &HotRoute) {
        let (host, path) = match route.url.find('/') {
            Some(at) => route.url.split_at(at),
            None => (route.url.as_str(), ""),
        };
        let hash = resource_hash(hasher, hasher.hash_one(path), host);
        let mask = self.slots.len() - 1;
        let mut index = hash as usize & mask;
        while self.slots[index].copies.holders != 0 && self.slots[index].hash != hash {
            index = (index + 1) & mask;
        }
        let (holders, heat) = (route.holders, route.heat);
        self.slots[index] = Slot {
            hash,
            copies: Copies { holders, heat },
        };
    }
}

#[cfg(test)]
mod tests {
    use levee_control::{Heat, Law, RedirectPlan, Redirects};
    use levee_vocab::ByteRate;

    use super::*;

    fn plan(hot: Vec<HotRoute>) -> RoutePlan {
        RoutePlan {
            redirect: Some(RedirectPlan {
                redirects: Redirects::On,
                law: Law::Combined,
                early: ByteRate::ZERO,
                hot: hot.into(),
                direct: ByteRate::ZERO,
                direct_ceiling: ByteRate::ZERO,
                usable: ByteRate::ZERO,
                usable_share: 0.8,
                connection_overhead: 358,
                large_file: 100_000,
                targets: Vec::new(),
            }),
            ..RoutePlan::default()
        }
    }

    fn find(index: &HotIndex, host: &str, path: &str) -> u64 {
        let hasher = SeedableRandomState::fixed();
        let hash = resource_hash(&hasher, hasher.hash_one(path), host);
        index.find(hash).holders
    }

    #[test]
    fn each_hot_resource_is_found_and_nothing_else() {
        let route = |number: u64| HotRoute {
            url: format!("www.example.org/{number}"),
            holders: number,
            heat: Heat::Warm,
        };
        let mut index = HotIndex::default();
        assert_eq!(find(&index, "www.example.org", "/1"), 0);
        for count in [1, 2, 3, 64, 500] {
            index.adopt(
                &SeedableRandomState::fixed(),
                &plan((1..=count).map(route).collect()),
            );
            for number in 1..=count {
                let path = format!("/{number}");
                assert_eq!(find(&index, "www.example.org", &path), number);
                assert_eq!(find(&index, "www.example.com", &path), 0);
            }
            assert_eq!(find(&index, "www.example.org", "/501"), 0);
        }
        index.adopt(&SeedableRandomState::fixed(), &RoutePlan::default());
        assert_eq!(find(&index, "www.example.org", "/1"), 0);
    }
}
