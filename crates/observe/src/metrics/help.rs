//! Metrics of what is given to others: rows of the table.

use super::Audience::{Detail, Operator};
use super::Kind::{Counter, Gauge};
use super::Metric;

/// Most sites with a figure of their own.
const SITES_MAX: usize = 32;

pub(super) const GIVEN: Metric = Metric {
    name: "levee_help_given_bytes",
    kind: Gauge,
    unit: "bytes",
    level: Operator,
    help: "Bytes given to others in the last 24 hours.",
    labels: &[],
    read: |s, out| out.value(s.help.given),
};

pub(super) const GIVEN_TO: Metric = Metric {
    name: "levee_help_given_site_bytes",
    kind: Gauge,
    unit: "bytes",
    level: Operator,
    help: "Bytes given to each of the 32 sites that got most in the last 24 hours.",
    labels: &["site"],
    read: |s, out| {
        for (site, bytes) in s.help.sites.iter().take(SITES_MAX) {
            out.labelled([site], *bytes);
        }
    },
};

pub(super) const RATE: Metric = Metric {
    name: "levee_help_limit_bytes_per_second",
    kind: Gauge,
    unit: "bytes a second",
    level: Operator,
    help: "What all others together may have now: the spare part of the link, or less by the limits in the settings. It shrinks before the bytes of a day are given.",
    labels: &[],
    read: |s, out| out.value(s.help.rate),
};

pub(super) const REFUSED: Metric = Metric {
    name: "levee_help_refused_calls_total",
    kind: Counter,
    unit: "calls",
    level: Operator,
    help: "Calls for help that were refused, by kind: load, full, busy, day (help.bytes_per_day), member_day, never, not_named, and others.",
    labels: &["kind"],
    read: |s, out| {
        for (kind, calls) in &s.help.refused_calls {
            out.labelled([kind], *calls);
        }
    },
};

pub(super) const WITHHELD: Metric = Metric {
    name: "levee_help_withheld_requests_total",
    kind: Counter,
    unit: "requests",
    level: Operator,
    help: "Visitors of sites that you help who were turned away because their site had had what you give it. They are no load of yours.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.withheld),
};

pub(super) const STATE_FOLDER_USABLE: Metric = Metric {
    name: "levee_help_state_folder_usable",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether what a rescue server must remember can be written to the state folder. While it is 0, others are offered nothing and every call for help is refused.",
    labels: &[],
    read: |s, out| out.value(s.help.state_trouble.is_empty()),
};

pub(super) const DISK: Metric = Metric {
    name: "levee_help_disk_bytes",
    kind: Gauge,
    unit: "bytes",
    level: Detail,
    help: "Bytes of the cache on disk that belong to others.",
    labels: &[],
    read: |s, out| out.value(s.help.disk.0),
};
