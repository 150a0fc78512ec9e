//! Metrics of crawlers: rows of the table.

use super::Audience::{Detail, Operator};
use super::Kind::{Counter, Gauge};
use super::Metric;

pub(super) const REQUESTS: Metric = Metric {
    name: "levee_crawler_requests_total",
    kind: Counter,
    unit: "requests",
    level: Operator,
    help: "Requests of crawlers, by how they were recognised: name (what they say of themselves), behaviour (what their block of addresses asks for).",
    labels: &["recognised_by"],
    read: |s, out| {
        out.labelled(["name"], s.crawlers.by_name);
        out.labelled(["behaviour"], s.crawlers.by_behaviour);
    },
};

pub(super) const SENT: Metric = Metric {
    name: "levee_crawler_sent_bytes_total",
    kind: Counter,
    unit: "bytes",
    level: Operator,
    help: "Bytes that crawlers got, with what they were given before they were recognised.",
    labels: &[],
    read: |s, out| out.value(s.crawlers.bytes),
};

pub(super) const PUT_OFF: Metric = Metric {
    name: "levee_crawler_refusals_total",
    kind: Counter,
    unit: "refusals",
    level: Operator,
    help: "Requests of crawlers beyond what they get: told (429), closed (without an answer, because too many were told already).",
    labels: &["outcome"],
    read: |s, out| {
        out.labelled(["told"], s.crawlers.put_off);
        out.labelled(["closed"], s.crawlers.closed);
    },
};

pub(super) const RATE: Metric = Metric {
    name: "levee_crawler_limit_bytes_per_second",
    kind: Gauge,
    unit: "bytes a second",
    level: Operator,
    help: "What crawlers get now at most.",
    labels: &[],
    read: |s, out| out.value(s.crawlers.rate),
};

pub(super) const BLOCKS: Metric = Metric {
    name: "levee_crawler_blocks",
    kind: Gauge,
    unit: "blocks",
    level: Detail,
    help: "Blocks of addresses that are taken for crawlers' by what they do, counted by each core that sees them.",
    labels: &[],
    read: |s, out| out.value(s.crawlers.blocks),
};
