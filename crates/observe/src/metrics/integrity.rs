//! Metrics of integrity: what signatures said of what we hold, and what looks at our rescue servers
//! came to.

use super::Audience::Operator;
use super::Kind::{Counter, Gauge};
use super::Metric;

pub(super) const SIGNATURES: Metric = Metric {
    name: "levee_verified_objects_total",
    kind: Counter,
    unit: "objects",
    level: Operator,
    help: "Objects that were fetched for an origin whose key is known, by what its signature said: authentic, unsigned, or forged, which are not kept.",
    labels: &["result"],
    read: |s, out| {
        for (result, count) in &s.lifetime.signatures {
            out.labelled([result], *count);
        }
    },
};

pub(super) const LOOKS: Metric = Metric {
    name: "levee_integrity_looks_total",
    kind: Counter,
    unit: "looks",
    level: Operator,
    help: "Looks at what rescue servers deliver for this site, by what they showed: authentic, the same without a signature, foreign, forged, diverted (visitors are sent elsewhere), or nothing that can be judged.",
    labels: &["result"],
    read: |s, out| {
        let looks = s.integrity.iter().flat_map(|integrity| &integrity.looks);
        for (result, count) in looks {
            out.labelled([result], *count);
        }
    },
};

pub(super) const EXPELLED: Metric = Metric {
    name: "levee_expelled_members",
    kind: Gauge,
    unit: "members",
    level: Operator,
    help: "Members that altered what they delivered, and are not asked for help any more.",
    labels: &[],
    read: |s, out| {
        let expelled = s.integrity.as_ref().map(|integrity| &integrity.expelled);
        out.value(expelled.map_or(0, |list| list.len() as u64));
    },
};
