//! Rehearsals of a rescue.

use super::Audience::Operator;
use super::Kind::Gauge;
use super::Metric;

/// A drill under way.
pub(super) const DRILL: Metric = Metric {
    name: "levee_drill",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether a rehearsal of a rescue is under way: of this site, or of another.",
    labels: &["of"],
    read: |s, out| {
        let own = s.drill.as_ref().map(|drill| drill.own);
        out.labelled(["this"], own == Some(true));
        out.labelled(["another"], own == Some(false));
    },
};
