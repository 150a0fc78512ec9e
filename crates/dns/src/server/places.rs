//! The places for connections of a name server, and who makes way when all are taken.
//!
//! Clients may keep connections open for their next question, and a server may close idle ones
//! where it needs room. So whoever holds places and asks nothing keeps nobody out: where a network
//! has taken all that one may have, its own connection that has been idle for longest makes way,
//! and where all places are taken, that of anybody. For whom something is being done, a transfer
//! above all, never makes way; where that is everybody, the newcomer is turned away.
//!
//! What has been idle for longest is told by the order of events: no clock is needed.
//!
//! ```text
//!   newcomer ─▶ idle ─▶ a question ─▶ work under way ─▶ its answer ─▶ idle
//!                │
//!                └─▶ makes way
//! ```

use std::collections::BTreeMap;

use levee_vocab::Network;

/// Connections at once.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// Of these, those of one address; of IPv6, one network (/64).
pub(super) const CONNECTIONS_PER_ADDRESS_MAX: usize = 16;

/// All places that are taken. `H` is what holds the connection: it is dropped when it makes way.
#[derive(Debug)]
pub(super) struct Places<H> {
    taken: BTreeMap<u64, Taken<H>>,
    /// Events so far: numbers of connections, and the order of their ends of work.
    events: u64,
}

/// What is being done for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing: it has no question, or not all of it.
    None,
    /// Its question is answered, or the answer is on its way.
    UnderWay,
}

/// What became of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It has a free place, under this number.
    Free(u64),
    /// It has the place of one who made way.
    InPlace(u64),
    /// It has none: nobody is idle who could make way.
    Full,
}

#[derive(Debug)]
struct Taken<H> {
    network: Network,
    state: State,
    holder: H,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Since this event.
    Idle(u64),
    Busy,
}

impl<H> Default for Places<H> {
    fn default() -> Self {
        Self {
            taken: BTreeMap::new(),
            events: 0,
        }
    }
}

impl<H> Places<H> {
    /// A place for a connection from `network`.
    //= RFC 7766 section 6.2.3
    pub(super) fn take(&mut self, network: Network, holder: H) -> Arrival {
        let is_same = |one: &Taken<H>| one.network == network;
        let same = self.taken.values().filter(|one| is_same(one)).count();
        let is_alone = same >= CONNECTIONS_PER_ADDRESS_MAX;
        let is_full = is_alone || self.taken.len() >= CONNECTIONS_MAX;
        let gone = match is_full {
            true => self.make_room(|one| !is_alone || is_same(one)),
            false => None,
        };
        if is_full && gone.is_none() {
            return Arrival::Full;
        }
        let number = self.next_event();
        let taken = Taken {
            network,
            state: State::Idle(number),
            holder,
        };
        self.taken.insert(number, taken);
        match gone {
            Some(_) => Arrival::InPlace(number),
            None => Arrival::Free(number),
        }
    }

    /// What is being done for connection `number` from now on; false where it has made way.
    pub(super) fn note(&mut self, number: u64, work: Work) -> bool {
        let event = self.next_event();
        let Some(taken) = self.taken.get_mut(&number) else {
            return false;
        };
        taken.state = match work {
            Work::None => State::Idle(event),
            Work::UnderWay => State::Busy,
        };
        true
    }

    /// Connection `number` has ended; nothing where it has made way.
    pub(super) fn give_back(&mut self, number: u64) {
        self.taken.remove(&number);
    }

    /// Who of `those` has been idle for longest makes way; none where all are busy.
    fn make_room(&mut self, those: impl Fn(&Taken<H>) -> bool) -> Option<H> {
        let idle = self.taken.iter().filter(|(_, one)| those(one));
        let idle = idle.filter_map(|(number, one)| match one.state {
            State::Idle(since) => Some((since, *number)),
            State::Busy => None,
        });
        let (_, number) = idle.min()?;
        self.taken.remove(&number).map(|taken| taken.holder)
    }

    const fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: usize) -> Network {
        let address = format!("2001:db8:0:{number:x}::1");
        Network::of(address.parse().unwrap())
    }

    /// All places taken, by as many networks as it needs; the numbers in the order of coming.
    fn full() -> (Places<()>, Vec<u64>) {
        let mut places = Places::default();
        let networks = (0..CONNECTIONS_MAX).map(|one| one / CONNECTIONS_PER_ADDRESS_MAX);
        let numbers = networks.map(|one| match places.take(network(one), ()) {
            Arrival::Free(number) => number,
            Arrival::InPlace(_) | Arrival::Full => panic!("there is room"),
        });
        let numbers = numbers.collect();
        (places, numbers)
    }

    /// Whether somebody makes way for a newcomer from `network`.
    fn makes_way(places: &mut Places<()>, network: Network) -> bool {
        matches!(places.take(network, ()), Arrival::InPlace(_))
    }

    #[test]
    fn who_has_been_idle_for_longest_makes_way() {
        let (mut places, numbers) = full();
        // The first has just had an answer, and the second is being answered.
        assert!(places.note(numbers[0], Work::UnderWay));
        assert!(places.note(numbers[0], Work::None));
        assert!(places.note(numbers[1], Work::UnderWay));
        for gone in &numbers[2..5] {
            assert!(makes_way(&mut places, network(99)));
            assert!(!places.note(*gone, Work::UnderWay));
        }
        assert!(places.note(numbers[0], Work::None));
        assert!(places.note(numbers[1], Work::None));
    }

    #[test]
    fn a_network_with_all_its_places_makes_way_for_itself_alone() {
        let (mut places, numbers) = full();
        places.give_back(numbers[CONNECTIONS_MAX - 1]);
        let own = CONNECTIONS_PER_ADDRESS_MAX..2 * CONNECTIONS_PER_ADDRESS_MAX;
        for number in &numbers[own.clone()] {
            assert!(makes_way(&mut places, network(1)));
            assert!(!places.note(*number, Work::None));
        }
        for number in numbers[..own.start].iter().chain(&numbers[own.end..255]) {
            assert!(places.note(*number, Work::None));
        }
    }

    #[test]
    fn where_all_are_busy_the_newcomer_is_turned_away() {
        let (mut places, numbers) = full();
        for number in &numbers {
            assert!(places.note(*number, Work::UnderWay));
        }
        assert_eq!(places.take(network(99), ()), Arrival::Full);
        assert_eq!(places.take(network(0), ()), Arrival::Full);
        assert!(places.note(numbers[7], Work::None));
        assert!(makes_way(&mut places, network(99)));
        places.give_back(numbers[8]);
        let arrival = places.take(network(98), ());
        assert!(matches!(arrival, Arrival::Free(_)), "{arrival:?}");
    }
}
