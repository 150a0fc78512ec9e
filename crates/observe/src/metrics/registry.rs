//! How it stands with the registry.

use super::Audience::Operator;
use super::Kind::Gauge;
use super::Metric;

pub(super) const CONNECTED: Metric = Metric {
    name: "levee_registry_connected",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether the last exchange with the registry went well; absent where none is set.",
    labels: &[],
    read: |s, out| {
        if !s.registry.address.is_empty() {
            out.value(s.registry.connected);
        }
    },
};

pub(super) const REFUSES: Metric = Metric {
    name: "levee_registry_refuses",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether the registry does not list this site; absent where none is set.",
    labels: &[],
    read: |s, out| {
        if !s.registry.address.is_empty() {
            out.value(!s.registry.refusal.is_empty());
        }
    },
};
