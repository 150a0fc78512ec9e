//! A closed community.

use super::Audience::Operator;
use super::Kind::{Counter, Gauge};
use super::Metric;

/// When the member list ends.
pub(super) const EXPIRY: Metric = Metric {
    name: "levee_member_list_expiry_timestamp_seconds",
    kind: Gauge,
    unit: "seconds",
    level: Operator,
    help: "When the member list of the closed community ends, in Unix seconds; absent in an open one.",
    labels: &[],
    read: |s, out| {
        if let Some(trust) = &s.trust {
            out.value(trust.expires);
        }
    },
};

/// Which list is in force.
pub(super) const SERIAL: Metric = Metric {
    name: "levee_member_list_serial",
    kind: Gauge,
    unit: "serial",
    level: Operator,
    help: "Serial of the member list in force, 0 without one; absent in an open community.",
    labels: &[],
    read: |s, out| {
        if let Some(trust) = &s.trust {
            out.value(trust.serial);
        }
    },
};

/// What was refused.
pub(super) const REFUSALS: Metric = Metric {
    name: "levee_trust_refusals_total",
    kind: Counter,
    unit: "refusals",
    level: Operator,
    help: "Connections and messages that were refused in a closed community, by cause.",
    labels: &["cause"],
    read: |s, out| {
        for refusal in s.trust.iter().flat_map(|trust| &trust.refused) {
            out.labelled([refusal.cause.as_str()], refusal.count);
        }
    },
};

/// Who accuses whom.
pub(super) const ACCUSATIONS: Metric = Metric {
    name: "levee_accusations",
    kind: Gauge,
    unit: "accusations",
    level: Operator,
    help: "Accusations in force that a member of the closed community altered pages, by whether enough members make them that registries leave the accused out.",
    labels: &["standing"],
    read: |s, out| {
        let accusations = s.trust.iter().flat_map(|trust| &trust.accusations);
        let (left_out, doubted): (Vec<_>, Vec<_>) = accusations.partition(|one| one.left_out);
        if s.trust.is_some() {
            out.labelled(["left_out"], left_out.len() as u64);
            out.labelled(["doubted"], doubted.len() as u64);
        }
    },
};
