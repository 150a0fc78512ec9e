//! Whose entries a ring holds, so that nobody's crowd pushes out what belongs to everybody else.
//!
//! A rescue server keeps copies for several origins, and pages of its own. Each of them is an owner
//! with S3-FIFO queues of its own. When something has to go, it goes from the owner that holds
//! most: while one of them holds little it loses nothing, and those that want more than there is
//! get the same (max-min fairness). Alone, an owner may have all.
//!
//! Who has not been asked for anything while the ring was filled many times over has left, and goes
//! first. That is told in bytes and not in seconds, so there is no clock here, and while nothing
//! presses nobody goes.

/// The end of a queue.
const NONE: u32 = u32::MAX;

/// Owners that are told apart: our own pages and as many origins as are rescued at a time, and some
/// that were. Those beyond share the last place.
const OWNERS_MAX: usize = 32;

/// One place for so many bytes of the limit: who has so little shares it with the others.
const BYTES_PER_OWNER: u64 = 64 * 1024;

/// Fillings of the ring without a request after which an owner has left: with 64 MiB and a link of
/// 10 MB/s that is filled by nothing but misses, two minutes.
const FILLINGS_UNTIL_GONE: u32 = 16;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Owners {
    places: Vec<Owner>,
    /// How often the ring was filled so far, and with how much since then.
    fillings: u32,
    filled: u64,
}

/// What one owner has.
#[derive(Debug)]
pub(super) struct Owner {
    name: u64,
    pub small: Queue,
    pub main: Queue,
    /// Bytes that have left its small queue so far.
    pub left_small: u64,
    /// In which filling it was asked for something last.
    asked: u32,
}

/// One queue, by the numbers of slots.
#[derive(Debug)]
pub(super) struct Queue {
    pub newest: u32,
    pub oldest: u32,
    pub cost: u64,
}

impl Queue {
    const EMPTY: Self = Self {
        newest: NONE,
        oldest: NONE,
        cost: 0,
    };
}

impl Owner {
    /// Bytes of its entries.
    pub fn cost(&self) -> u64 {
        self.small.cost + self.main.cost
    }

    fn is_empty(&self) -> bool {
        self.small.oldest == NONE && self.main.oldest == NONE
    }
}

impl Owners {
    /// Nobody yet, in a ring of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let more = (limit / BYTES_PER_OWNER).min(OWNERS_MAX as u64 - 1);
        Self {
            places: Vec::with_capacity(1 + more as usize),
            fillings: 0,
            filled: 0,
        }
    }

    /// Bytes of the table, which never grows. The first owner counts as little as the ring's own
    /// struct: there is always one.
    pub fn weight(&self) -> usize {
        (self.places.capacity() - 1) * size_of::<Owner>()
    }

    /// The place of the owner called `name`, who is there from now on.
    pub fn enter(&mut self, name: u64) -> u8 {
        let known = self.places.iter().position(|owner| owner.name == name);
        let place = known.unwrap_or_else(|| self.make(name));
        self.note_asked(place as u8);
        place as u8
    }

    fn make(&mut self, name: u64) -> usize {
        let owner = Owner {
            name,
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            left_small: 0,
            asked: self.fillings,
        };
        if self.places.len() < self.places.capacity() {
            self.places.push(owner);
            return self.places.len() - 1;
        }
        match self.places.iter().position(Owner::is_empty) {
            Some(place) => {
                self.places[place] = owner;
                place
            }
            None => self.places.len() - 1,
        }
    }

    /// Something of this owner was asked for.
    pub fn note_asked(&mut self, place: u8) {
        self.places[usize::from(place)].asked = self.fillings;
    }

    /// `cost` bytes came into a ring of `limit`.
    pub fn note_inserted(&mut self, cost: u64, limit: u64) {
        self.filled += cost;
        if self.filled >= limit {
            self.filled = 0;
            self.fillings = self.fillings.wrapping_add(1);
        }
    }

    /// The owner that must give something up: one that has left, or else the one that holds most.
    /// None where nobody holds anything.
    pub fn next_to_give(&self) -> Option<u8> {
        self.next_among(|_| true)
    }

    /// As [`Owners::next_to_give`], but never the owner called `spared`.
    pub fn next_to_give_but(&self, spared: u64) -> Option<u8> {
        self.next_among(|owner| owner.name != spared)
    }

    fn next_among(&self, may_give: impl Fn(&Owner) -> bool) -> Option<u8> {
        let holding = self.places.iter().enumerate();
        let holding = holding.filter(|(_, owner)| !owner.is_empty() && may_give(owner));
        let rank = |owner: &Owner| (self.has_left(owner), owner.cost());
        let most = holding.max_by_key(|(_, owner)| rank(owner));
        most.map(|(place, _)| place as u8)
    }

    fn has_left(&self, owner: &Owner) -> bool {
        self.fillings.wrapping_sub(owner.asked) > FILLINGS_UNTIL_GONE
    }

    pub fn at(&self, place: u8) -> &Owner {
        &self.places[usize::from(place)]
    }

    pub fn at_mut(&mut self, place: u8) -> &mut Owner {
        &mut self.places[usize::from(place)]
    }

    /// All of them.
    #[cfg(test)]
    pub fn all(&self) -> &[Owner] {
        &self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_nothing_makes_room_for_another_name() {
        let mut owners = Owners::new(1 << 30);
        for name in 0..100 {
            let place = owners.enter(name);
            assert_eq!(owners.at(place).name, name);
        }
        assert_eq!(owners.all().len(), OWNERS_MAX);
        for place in 0..OWNERS_MAX as u8 {
            owners.at_mut(place).small.oldest = 1;
        }
        // Nobody is told apart from the last any more.
        assert_eq!(owners.enter(1000), OWNERS_MAX as u8 - 1);
        assert_eq!(owners.enter(1001), OWNERS_MAX as u8 - 1);
    }
}
