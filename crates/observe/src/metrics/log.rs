//! The access log.

use super::Audience::{Detail, Operator};
use super::Kind::Counter;
use super::Metric;

/// Lines that are nowhere.
pub(super) const LOST: Metric = Metric {
    name: "levee_access_log_lost_lines_total",
    kind: Counter,
    unit: "lines",
    level: Operator,
    help: "Access-log lines that were lost because the writer could not keep up, the disk was full, or those whom we help did not take theirs.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.log_lines_lost),
};

/// Lines of others.
pub(super) const LEFT_OUT: Metric = Metric {
    name: "levee_access_log_left_out_lines_total",
    kind: Counter,
    unit: "lines",
    level: Detail,
    help: "Of the lost access-log lines, those of the origins that we help that there was no room to keep until they take them.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.log_lines_left_out),
};

/// Lines of rescue servers.
pub(super) const TAKEN_OVER: Metric = Metric {
    name: "levee_access_log_taken_over_lines_total",
    kind: Counter,
    unit: "lines",
    level: Detail,
    help: "Access-log lines that rescue servers handed over for our site.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.log_lines_taken_over),
};

/// What was no line.
pub(super) const REFUSED: Metric = Metric {
    name: "levee_access_log_refused_lines_total",
    kind: Counter,
    unit: "lines",
    level: Detail,
    help: "Lines that rescue servers handed over and that were not log lines.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.log_lines_refused),
};
