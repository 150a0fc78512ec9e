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

/// Our own name server.
pub(super) const QUESTIONS: Metric = Metric {
    name: "levee_dns_questions_total",
    kind: Counter,
    unit: "questions",
    level: Operator,
    help: "Questions to our own name server, by what became of them; held back is what one block of addresses asked beyond its share.",
    labels: &["result"],
    read: |s, out| {
        if let Some(asked) = s.dns.as_ref().and_then(|dns| dns.asked) {
            out.labelled(["answered"], asked.answers);
            out.labelled(["held_back"], asked.held_back);
            out.labelled(["updated"], asked.updates);
            out.labelled(["refused"], asked.refused);
            out.labelled(["transferred"], asked.transfers);
        }
    },
};

/// Who had no place at our own name server.
pub(super) const CROWDED: Metric = Metric {
    name: "levee_dns_crowded_connections_total",
    kind: Counter,
    unit: "connections",
    level: Operator,
    help: "Connections by TCP to our own name server that were closed for want of places: an idle one that made way for a newcomer, or a newcomer who was turned away because nobody was idle.",
    labels: &["result"],
    read: |s, out| {
        if let Some(asked) = s.dns.as_ref().and_then(|dns| dns.asked) {
            out.labelled(["made_way"], asked.made_way);
            out.labelled(["turned_away"], asked.turned_away);
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

/// Aliases in DNS.
pub(super) const DECLINED: Metric = Metric {
    name: "levee_dns_declined_calls_total",
    kind: Counter,
    unit: "calls",
    level: Operator,
    help: "Calls for help that were declined because their alias could not be registered in DNS.",
    labels: &[],
    read: |s, out| {
        if let Some(aliases) = &s.alias_names {
            out.value(aliases.declined);
        }
    },
};
