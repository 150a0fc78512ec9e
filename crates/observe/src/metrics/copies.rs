//! Metrics of copies: what an origin has its rescue servers hold before visitors ask for it.

use super::Audience::Operator;
use super::Kind::{Counter, Gauge};
use super::Metric;

pub(super) const TAKEN: Metric = Metric {
    name: "levee_copies_taken_total",
    kind: Counter,
    unit: "copies",
    level: Operator,
    help: "Copies that origins which we rescue wanted to have made here, by what became of them: stored, held already, malformed, late, not_to_be_kept, too_large, or busy.",
    labels: &["end"],
    read: |s, out| {
        for (end, count) in &s.lifetime.copies.taken {
            out.labelled([end], *count);
        }
    },
};

pub(super) const TAKEN_BYTES: Metric = Metric {
    name: "levee_copies_taken_bytes_total",
    kind: Counter,
    unit: "bytes",
    level: Operator,
    help: "Bytes of responses that origins which we rescue have pushed here.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.copies.taken_bytes),
};

pub(super) const SENT: Metric = Metric {
    name: "levee_copies_sent_total",
    kind: Counter,
    unit: "copies",
    level: Operator,
    help: "Copies of our hot resources that we wanted our rescue servers to hold, by what became of them: held, refused, or failed.",
    labels: &["end"],
    read: |s, out| {
        for (end, count) in &s.lifetime.copies.sent {
            out.labelled([end], *count);
        }
    },
};

pub(super) const SENT_BYTES: Metric = Metric {
    name: "levee_copies_sent_bytes_total",
    kind: Counter,
    unit: "bytes",
    level: Operator,
    help: "Bytes of responses that we have pushed to our rescue servers.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.copies.sent_bytes),
};

pub(super) const HOT: Metric = Metric {
    name: "levee_hot_resources",
    kind: Gauge,
    unit: "resources",
    level: Operator,
    help: "Resources that are hot now: copied, and redirected for those of them whose visitors are redirected before the rest.",
    labels: &["heat"],
    read: |s, out| {
        let [copied, redirected] = s.hot_resources;
        out.labelled(["copied"], copied);
        out.labelled(["redirected"], redirected);
    },
};
