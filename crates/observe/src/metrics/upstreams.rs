//! Metrics of the applications behind a site: rows of the table, one for each upstream.

use super::Audience::Operator;
use super::Kind::{Counter, Gauge};
use super::Metric;

pub(super) const UP: Metric = Metric {
    name: "levee_upstream_up",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether this upstream gets requests.",
    labels: &["upstream"],
    read: |s, out| {
        for upstream in &s.upstreams {
            out.labelled([&upstream.name], upstream.up);
        }
    },
};

pub(super) const OUTSTANDING: Metric = Metric {
    name: "levee_upstream_outstanding_requests",
    kind: Gauge,
    unit: "requests",
    level: Operator,
    help: "Requests under way at this upstream.",
    labels: &["upstream"],
    read: |s, out| {
        for upstream in &s.upstreams {
            out.labelled([&upstream.name], upstream.outstanding);
        }
    },
};

pub(super) const REQUESTS: Metric = Metric {
    name: "levee_upstream_requests_total",
    kind: Counter,
    unit: "requests",
    level: Operator,
    help: "Requests sent to this upstream, or tried to.",
    labels: &["upstream"],
    read: |s, out| {
        for upstream in &s.upstreams {
            out.labelled([&upstream.name], upstream.requests);
        }
    },
};

pub(super) const FAILURES: Metric = Metric {
    name: "levee_upstream_failures_total",
    kind: Counter,
    unit: "failures",
    level: Operator,
    help: "Requests that this upstream failed.",
    labels: &["upstream"],
    read: |s, out| {
        for upstream in &s.upstreams {
            out.labelled([&upstream.name], upstream.failures);
        }
    },
};

pub(super) const EJECTIONS: Metric = Metric {
    name: "levee_upstream_ejections_total",
    kind: Counter,
    unit: "ejections",
    level: Operator,
    help: "How often this upstream was left out for a while.",
    labels: &["upstream"],
    read: |s, out| {
        for upstream in &s.upstreams {
            out.labelled([&upstream.name], upstream.ejections);
        }
    },
};
