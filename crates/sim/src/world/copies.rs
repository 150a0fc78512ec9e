//! Copies of hot resources: what the server's replicator does.

use levee_control::{CopyOrder, CopyOutcome, Input};

use crate::world::{SiteId, World};

impl World {
    /// Nobody copies here yet.
    pub(crate) fn copy(&mut self, id: SiteId, order: CopyOrder) {
        let CopyOrder { link, url, .. } = order;
        let outcome = CopyOutcome::Failed;
        self.tell(id, Input::CopyEnded { link, url, outcome });
    }
}
