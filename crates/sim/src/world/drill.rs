//! Drills: ordered by an operator, announced and given way to as in truth. Their visits are not
//! played: they are nobody's, and few.

use std::time::Duration;

use levee_control::{DrillOrder, DrillStop, Input};
use levee_vocab::FetchKey;

use crate::world::{SiteId, World};

/// No visitor here shows it.
const KEY: FetchKey = FetchKey::from_bytes([0xD; 16]);

impl World {
    /// The operator of a site orders a drill.
    pub fn drill(&mut self, id: SiteId, length: Duration) {
        self.tell(id, Input::DrillOrdered(DrillOrder { length, key: KEY }));
    }

    /// The operator of a site ends the drill that it holds or takes part in.
    pub fn end_drill(&mut self, id: SiteId) {
        self.tell(id, Input::DrillStopped(DrillStop::Operator));
    }
}
