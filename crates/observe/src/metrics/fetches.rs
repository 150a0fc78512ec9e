//! Metrics of fetches: rows of the table.

use super::Audience::{Detail, Operator};
use super::Kind::Counter;
use super::Metric;

pub(super) const ALL: Metric = Metric {
    name: "levee_fetches_total",
    kind: Counter,
    unit: "fetches",
    level: Operator,
    help: "Fetches from origins or upstreams.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.fetches),
};

pub(super) const ERRORS: Metric = Metric {
    name: "levee_fetch_errors_total",
    kind: Counter,
    unit: "errors",
    level: Operator,
    help: "Fetches that failed.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.fetch_errors),
};

pub(super) const EARLY: Metric = Metric {
    name: "levee_early_fetches_total",
    kind: Counter,
    unit: "fetches",
    level: Detail,
    help: "Fetches by which hot objects were renewed before their lifetime was over.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.early_renewals),
};
