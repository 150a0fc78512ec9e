//! Which pages several blocks of addresses asked for lately, in constant memory.
//!
//! What readers want they want together; what only a crawler asks for is asked for once. A page
//! that two blocks asked for within a minute or so is shared, and says nothing about either.
//!
//! A table without chains: two pages that fall on one place push each other out, so a page may be
//! taken for one that nobody shares, never the other way round.

use std::time::Duration;

use levee_vocab::Timestamp;

use super::watch::Block;

/// Pages that are remembered; 40 bytes each.
const PLACES: usize = 2048;

/// How long a request is remembered.
const LATELY: Duration = Duration::from_secs(90);

/// See the file header.
#[derive(Clone, Debug)]
pub(super) struct SharedPages {
    places: Box<[Place]>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    page: u64,
    first: Block,
    /// When the page was last asked for, and when two blocks had asked for it; none where never.
    asked: Option<Timestamp>,
    shared: Option<Timestamp>,
}

impl Place {
    const EMPTY: Self = Self {
        page: 0,
        first: Block::NONE,
        asked: None,
        shared: None,
    };
}

impl Default for SharedPages {
    fn default() -> Self {
        Self {
            places: vec![Place::EMPTY; PLACES].into(),
        }
    }
}

impl SharedPages {
    /// Notes that somebody of `block` asks for `page`, and tells whether others did as well.
    pub(super) fn note(&mut self, now: Timestamp, page: u64, block: Block) -> bool {
        let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| now.since(at) < LATELY);
        let place = &mut self.places[page as usize % PLACES];
        if place.page == page && is_recent(place.asked) {
            place.asked = Some(now);
            if place.first != block {
                place.shared = Some(now);
                place.first = block;
            }
        } else if !is_recent(place.shared) {
            *place = Place {
                page,
                first: block,
                asked: Some(now),
                shared: None,
            };
        } else {
            return false;
        }
        is_recent(place.shared)
    }

    /// Whether several blocks asked for `page` lately.
    pub(super) fn has(&self, now: Timestamp, page: u64) -> bool {
        let place = &self.places[page as usize % PLACES];
        place.page == page && place.shared.is_some_and(|at| now.since(at) < LATELY)
    }
}
