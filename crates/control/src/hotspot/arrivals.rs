//! Which resources one core was asked for since it last told, in constant memory.
//!
//! Why a table for each core: the path of a request may neither lock nor write what another core
//! writes. The paper's module kept one table in shared memory and found that this showed.
//!
//! How: space-saving (Metwally, Agrawal and El Abbadi 2005). A resource that finds no place takes
//! that of the rarest and inherits its count. So, with m places and N requests since the last
//! telling: **whatever was asked for more than N/m times is sure to be told, at most N/m too low
//! and never too high.** With several cores the same holds for their sum, whoever of them was
//! asked.
//!
//! Cost: one look into an index and a few words written. The rarest is found without a search: a
//! cursor goes round looking for the smallest count that is left, and counts only grow, so all its
//! rounds together take less than one step for each request.
//!
//! It takes no memory after it was made until it is told to tell.

use levee_vocab::Timestamp;

/// One request, as far as the table needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Hash of host and path, the same on every core.
    pub hash: u64,
    /// The whole answer, in bytes.
    pub bytes: u64,
    /// The host.
    pub host: &'a str,
    /// The path, without a query.
    pub path: &'a str,
}

/// How often a resource was asked for, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Hash of host and path.
    pub hash: u64,
    /// Host and path.
    pub url: String,
    /// Whether that is all of it.
    pub text: UrlText,
    /// Requests that are certain.
    pub count: u64,
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// The largest answer, in bytes.
    pub bytes: u64,
}

/// Whether a URL was kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlText {
    /// All of it.
    Whole,
    /// Its beginning: it is longer than what a place holds.
    Cut,
}

/// The table of one core. See the file header.
#[derive(Debug)]
pub struct ArrivalTable {
    places: Box<[Place]>,
    names: Box<[Name]>,
    /// From a hash to its place, by linear probing; four times as long as the table.
    index: Box<[u16]>,
    used: usize,
    /// No place that is in use has a smaller count, and those before the cursor have a larger one.
    floor: u32,
    cursor: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u64,
    first: Timestamp,
    last: Timestamp,
    bytes: u64,
    count: u32,
    /// What of the count may belong to others.
    inherited: u32,
}

#[derive(Clone, Copy, Debug)]
struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
    text: UrlText,
}

/// Longest URL that is kept whole. Longer ones are rare, and a cut one is never copied.
const NAME_BYTES_MAX: usize = 240;

/// A slot of the index that leads nowhere.
const NOWHERE: u16 = u16::MAX;

const NO_PLACE: Place = Place {
    hash: 0,
    first: Timestamp::ZERO,
    last: Timestamp::ZERO,
    bytes: 0,
    count: 0,
    inherited: 0,
};

const NO_NAME: Name = Name {
    bytes: [0; NAME_BYTES_MAX],
    length: 0,
    text: UrlText::Whole,
};

impl ArrivalTable {
    /// An empty table with so many places, about 290 bytes each.
    ///
    /// # Panics
    /// Unless there are 1 to 16384 places.
    pub fn new(places: usize) -> Self {
        assert!(
            (1..=16_384).contains(&places),
            "a table of arrivals has 1 to 16384 places"
        );
        Self {
            places: vec![NO_PLACE; places].into(),
            names: vec![NO_NAME; places].into(),
            index: vec![NOWHERE; (places * 4).next_power_of_two()].into(),
            used: 0,
            floor: 1,
            cursor: 0,
        }
    }

    /// Notes a request.
    pub fn note(&mut self, now: Timestamp, arrival: &Arrival<'_>) {
        let place = match self.find(arrival.hash) {
            Some(place) => place,
            None => self.admit(now, arrival),
        };
        let place = &mut self.places[place];
        place.count = place.count.saturating_add(1);
        place.last = now;
        place.bytes = place.bytes.max(arrival.bytes);
    }

    /// Tells what was noted since the last telling, in no promised order, and forgets it.
    pub fn take(&mut self) -> Vec<Arrivals> {
        let told = self.places[..self.used].iter().zip(&self.names);
        let told = told.map(|(place, name)| Arrivals {
            hash: place.hash,
            url: name.to_text(),
            text: name.text,
            count: u64::from(place.count - place.inherited),
            first: place.first,
            last: place.last,
            bytes: place.bytes,
        });
        let told = told.collect();
        self.index.fill(NOWHERE);
        self.used = 0;
        self.floor = 1;
        self.cursor = 0;
        told
    }

    fn find(&self, hash: u64) -> Option<usize> {
        let mut slot = self.home(hash);
        loop {
            match self.index[slot] {
                NOWHERE => return None,
                place if self.places[usize::from(place)].hash == hash => {
                    return Some(usize::from(place));
                }
                _taken => slot = self.after(slot),
            }
        }
    }

    /// Gives a resource a place, with a count that lacks this request.
    fn admit(&mut self, now: Timestamp, arrival: &Arrival<'_>) -> usize {
        let (place, inherited) = if self.used < self.places.len() {
            self.used += 1;
            (self.used - 1, 0)
        } else {
            let rarest = self.find_rarest();
            self.unlink(rarest);
            (rarest, self.places[rarest].count)
        };
        self.places[place] = Place {
            hash: arrival.hash,
            first: now,
            last: now,
            bytes: arrival.bytes,
            count: inherited,
            inherited,
        };
        self.names[place].set(arrival);
        let mut slot = self.home(arrival.hash);
        while self.index[slot] != NOWHERE {
            slot = self.after(slot);
        }
        self.index[slot] = place as u16;
        place
    }

    fn find_rarest(&mut self) -> usize {
        loop {
            while self.cursor < self.places.len() {
                self.cursor += 1;
                if self.places[self.cursor - 1].count == self.floor {
                    return self.cursor - 1;
                }
            }
            self.cursor = 0;
            let counts = self.places.iter().map(|place| place.count);
            self.floor = counts.min().unwrap_or(self.floor);
        }
    }

    /// Takes a place out of the index. What was put behind it because it was in the way moves up,
    /// so that no search ends too early.
    fn unlink(&mut self, place: usize) {
        let mut hole = self.home(self.places[place].hash);
        while usize::from(self.index[hole]) != place {
            hole = self.after(hole);
        }
        let mask = self.index.len() - 1;
        let mut next = self.after(hole);
        while self.index[next] != NOWHERE {
            let home = self.home(self.places[usize::from(self.index[next])].hash);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.index[hole] = NOWHERE;
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.index.len() - 1)
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }
}

impl Name {
    fn set(&mut self, arrival: &Arrival<'_>) {
        let mut length = 0;
        self.text = UrlText::Whole;
        for part in [arrival.host.as_bytes(), arrival.path.as_bytes()] {
            let fits = part.len().min(NAME_BYTES_MAX - length);
            self.bytes[length..length + fits].copy_from_slice(&part[..fits]);
            length += fits;
            if fits < part.len() {
                self.text = UrlText::Cut;
            }
        }
        self.length = length as u8;
    }

    fn to_text(self) -> String {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)]).into_owned()
    }
}

impl Arrivals {
    /// Adds what another core was asked for the same resource: counts add, and so do rates.
    pub fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.bytes = self.bytes.max(other.bytes);
    }
}
