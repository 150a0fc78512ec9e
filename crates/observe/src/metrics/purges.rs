//! Metrics of purges: rows of the table.

use super::Audience::Operator;
use super::Kind::Counter;
use super::Metric;

pub(super) const PURGES: Metric = Metric {
    name: "levee_purges_total",
    kind: Counter,
    unit: "purges",
    level: Operator,
    help: "Purges carried out here, of our own objects and of those of origins that we rescue.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.purges),
};

pub(super) const OBJECTS: Metric = Metric {
    name: "levee_purged_objects_total",
    kind: Counter,
    unit: "objects",
    level: Operator,
    help: "Objects that purges removed from the cache or made old.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.purged_objects),
};

pub(super) const ANSWERS: Metric = Metric {
    name: "levee_purge_answers_total",
    kind: Counter,
    unit: "answers",
    level: Operator,
    help: "Purges at our rescue servers, each for itself: confirmed by it, or not confirmed in time.",
    labels: &["outcome"],
    read: |s, out| {
        out.labelled(["confirmed"], s.lifetime.purges_confirmed);
        out.labelled(["unconfirmed"], s.lifetime.purges_unconfirmed);
    },
};
