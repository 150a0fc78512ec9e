//! The site's name in DNS.

use super::Audience::Operator;
use super::Kind::{Counter, Gauge};
use super::Metric;

/// Rescue servers in the name.
pub(super) const ENTERED: Metric = Metric {
    name: "levee_dns_entered_addresses",
    kind: Gauge,
    unit: "addresses",
    level: Operator,
    help: "Addresses of rescue servers that stand in the site's name in DNS.",
    labels: &[],
    read: |s, out| {
        if let Some(dns) = &s.dns {
            out.value(dns.entered.len() as u64);
        }
    },
};

/// Changes of the name.
pub(super) const CHANGES: Metric = Metric {
    name: "levee_dns_changes_total",
    kind: Counter,
    unit: "changes",
    level: Operator,
    help: "Changes of the site's name in DNS, by what became of them; failures of reading count too.",
    labels: &["result"],
    read: |s, out| {
        if let Some(dns) = &s.dns {
            out.labelled(["made"], dns.changes);
            out.labelled(["failed"], dns.failures);
        }
    },
};
