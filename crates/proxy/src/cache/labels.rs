//! From a label to the entries that carry it, so that a purge looks at those and at nothing else.
//!
//! ```text
//!   head of label a:  first ─▶ link ─▶ link ─▶ last      each link names a slot of the ring
//!                               │
//!   slot: first link ─────▶ link of a ─▶ link of b       each slot chains its own links
//! ```
//!
//! A label is 64 bits of a keyed hash, of a tag or of a URL; two that fall together cost one fetch
//! too many. A look-up of an object never comes here: links are written when an entry comes and
//! when it goes. Plain vectors, whose bytes count against the cache's limit.

use super::index::Index;

/// The end of a chain.
pub(super) const NONE: u32 = u32::MAX;
/// Smallest number of heads and of links.
const PLACES_MIN: usize = 16;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Labels {
    heads: Vec<Head>,
    free_head: u32,
    heads_free: usize,
    index: Index,
    links: Vec<Link>,
    free_link: u32,
    links_free: usize,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    label: u64,
    first: u32,
    /// For a free head the next free one.
    last: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    slot: u32,
    head: u32,
    next: u32,
    before: u32,
    /// The next link of the same slot; for a free link the next free one.
    sibling: u32,
}

impl Default for Labels {
    fn default() -> Self {
        Self {
            heads: Vec::new(),
            free_head: NONE,
            heads_free: 0,
            index: Index::default(),
            links: Vec::new(),
            free_link: NONE,
            links_free: 0,
        }
    }
}

impl Labels {
    /// Bytes that all of it occupies.
    pub fn weight(&self) -> usize {
        self.heads.capacity() * size_of::<Head>()
            + self.links.capacity() * size_of::<Link>()
            + self.index.weight()
    }

    /// Bytes that the tables which must grow for `more` labels will occupy beside the old ones.
    pub fn growth(&self, more: usize) -> usize {
        let heads = capacity_for(&self.heads, self.heads_free, more).unwrap_or(0);
        let links = capacity_for(&self.links, self.links_free, more).unwrap_or(0);
        let index = self.index.growth(more).unwrap_or(0);
        heads * size_of::<Head>() + links * size_of::<Link>() + index
    }

    /// Makes room for `more` labels.
    pub fn grow(&mut self, more: usize) {
        if let Some(capacity) = capacity_for(&self.heads, self.heads_free, more) {
            self.heads.reserve_exact(capacity - self.heads.len());
        }
        if let Some(capacity) = capacity_for(&self.links, self.links_free, more) {
            self.links.reserve_exact(capacity - self.links.len());
        }
        if self.index.growth(more).is_some() {
            let heads = &self.heads;
            self.index.grow(more, |head| heads[head as usize].label);
        }
    }

    /// Notes that the entry in `slot` carries `labels`; there must be room ([`Labels::grow`]). The
    /// slot keeps the link that is returned.
    pub fn attach(&mut self, slot: u32, labels: &[u64]) -> u32 {
        let mut sibling = NONE;
        for &label in labels {
            let head = self.find(label).unwrap_or_else(|| self.new_head(label));
            let link = self.take_link(Link {
                slot,
                head,
                next: NONE,
                before: NONE,
                sibling,
            });
            self.append(link);
            sibling = link;
        }
        sibling
    }

    /// Forgets the links of a slot, given the one that [`Labels::attach`] returned.
    pub fn detach(&mut self, first: u32) {
        let mut link = first;
        while link != NONE {
            let sibling = self.links[link as usize].sibling;
            let head = self.links[link as usize].head;
            self.cut(link);
            self.links[link as usize].sibling = self.free_link;
            self.free_link = link;
            self.links_free += 1;
            if self.heads[head as usize].count == 0 {
                self.drop_head(head);
            }
            link = sibling;
        }
    }

    /// How many entries carry `label`.
    pub fn count(&self, label: u64) -> u32 {
        self.find(label)
            .map_or(0, |head| self.heads[head as usize].count)
    }

    /// The slot of the entry that carries `label` and whose turn it is; the next call gives another
    /// one, until all have had their turn.
    pub fn next(&mut self, label: u64) -> Option<u32> {
        let head = self.find(label)?;
        let link = self.heads[head as usize].first;
        self.cut(link);
        self.append(link);
        Some(self.links[link as usize].slot)
    }

    fn find(&self, label: u64) -> Option<u32> {
        self.index
            .find(label, |head| self.heads[head as usize].label == label)
    }

    fn new_head(&mut self, label: u64) -> u32 {
        let new = Head {
            label,
            first: NONE,
            last: NONE,
            count: 0,
        };
        let number = match self.free_head {
            NONE => {
                self.heads.push(new);
                (self.heads.len() - 1) as u32
            }
            free => {
                self.heads_free -= 1;
                self.free_head = self.heads[free as usize].last;
                self.heads[free as usize] = new;
                free
            }
        };
        self.index.insert(label, number);
        number
    }

    fn drop_head(&mut self, number: u32) {
        let heads = &self.heads;
        let label = heads[number as usize].label;
        self.index
            .remove(label, number, |other| heads[other as usize].label);
        self.heads[number as usize].last = self.free_head;
        self.free_head = number;
        self.heads_free += 1;
    }

    fn take_link(&mut self, link: Link) -> u32 {
        match self.free_link {
            NONE => {
                self.links.push(link);
                (self.links.len() - 1) as u32
            }
            free => {
                self.links_free -= 1;
                self.free_link = self.links[free as usize].sibling;
                self.links[free as usize] = link;
                free
            }
        }
    }

    fn append(&mut self, link: u32) {
        let head = &mut self.heads[self.links[link as usize].head as usize];
        let last = std::mem::replace(&mut head.last, link);
        head.count += 1;
        if last == NONE {
            head.first = link;
        } else {
            self.links[last as usize].next = link;
        }
        let link = &mut self.links[link as usize];
        link.before = last;
        link.next = NONE;
    }

    fn cut(&mut self, link: u32) {
        let Link {
            head, next, before, ..
        } = self.links[link as usize];
        if next != NONE {
            self.links[next as usize].before = before;
        }
        if before != NONE {
            self.links[before as usize].next = next;
        }
        let head = &mut self.heads[head as usize];
        head.count -= 1;
        if next == NONE {
            head.last = before;
        }
        if before == NONE {
            head.first = next;
        }
    }
}

/// The capacity that a table with `free` places inside it must have for `more`, where what it has
/// does not do.
fn capacity_for<T>(table: &Vec<T>, free: usize, more: usize) -> Option<usize> {
    let needed = table.len() + more.saturating_sub(free);
    (needed > table.capacity()).then(|| needed.max(table.len() / 2 * 3).max(PLACES_MIN))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every label leads to exactly the slots that carry it, and each has its turn.
        #[test]
        fn labels_lead_to_the_slots_that_carry_them(
            operations in prop::collection::vec(
                (0..40_u32, prop::collection::btree_set(0..12_u64, 0..5)), 1..200),
        ) {
            let mut labels = Labels::default();
            let mut model: BTreeMap<u32, (u32, BTreeSet<u64>)> = BTreeMap::new();
            for (slot, carried) in operations {
                match model.remove(&slot) {
                    Some((first, _)) => labels.detach(first),
                    None => {
                        let list: Vec<u64> = carried.iter().copied().collect();
                        let (weight, growth) = (labels.weight(), labels.growth(list.len()));
                        labels.grow(list.len());
                        prop_assert!(labels.weight() <= weight + growth);
                        let before = labels.weight();
                        let first = labels.attach(slot, &list);
                        prop_assert_eq!(labels.weight(), before);
                        model.insert(slot, (first, carried));
                    }
                }
                for label in 0..12 {
                    let expected: BTreeSet<u32> = model
                        .iter()
                        .filter(|(_, (_, carried))| carried.contains(&label))
                        .map(|(slot, _)| *slot)
                        .collect();
                    prop_assert_eq!(labels.count(label) as usize, expected.len());
                    let turns = (0..expected.len()).filter_map(|_| labels.next(label));
                    prop_assert_eq!(turns.collect::<BTreeSet<u32>>(), expected);
                }
            }
        }
    }
}
