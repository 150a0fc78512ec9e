//! Metrics for Prometheus, all declared in one table.
//!
//! Encoded by hand in the text format: the figures stand already in a [`Status`], so a registry of
//! atomics beside it could only drift from the other faces. The reference page in `docs/` is made
//! from the same table.

mod certificates;
mod copies;
mod crawlers;
mod dns;
mod drills;
mod fetches;
mod help;
mod homes;
mod integrity;
mod log;
mod mesh;
mod purges;
mod registry;
mod table;
mod trust;
mod upstreams;
mod way_back;

use std::fmt::Write;

use crate::status::{MeshStatus, Status};
use crate::words::finite;

/// Content type of [`render_metrics`].
pub const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One metric: what it is called, what it means, and how to read it from a status.
pub struct Metric {
    /// Full name, `levee_requests_total`.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// What is counted, as people say it.
    pub unit: &'static str,
    /// Who needs it.
    pub level: Audience,
    /// One sentence.
    pub help: &'static str,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    read: fn(&Status, &mut Samples),
}

/// How a metric moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only up, from zero at the start of the process.
    Counter,
    /// Up and down.
    Gauge,
    /// Up and down, by quantile; without a sum.
    Summary,
}

/// Who needs a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever runs the server: worth a graph or an alarm.
    Operator,
    /// Whoever looks for the cause of something.
    Detail,
}

/// The values of one metric.
#[derive(Default)]
struct Samples(Vec<(Vec<String>, f64)>);

impl Samples {
    /// The value of a metric without labels.
    fn value(&mut self, value: impl Figure) {
        self.0.push((Vec::new(), value.figure()));
    }

    /// The value for these label values, in the order of the metric's labels.
    fn labelled<const N: usize>(&mut self, labels: [&str; N], value: impl Figure) {
        let labels = labels.map(str::to_owned).to_vec();
        self.0.push((labels, value.figure()));
    }
}

/// Numbers that a sample can hold.
trait Figure {
    fn figure(self) -> f64;
}

impl Figure for f64 {
    fn figure(self) -> f64 {
        finite(self)
    }
}

impl Figure for u64 {
    fn figure(self) -> f64 {
        self as f64
    }
}

impl Figure for bool {
    fn figure(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// Every metric that this server has, in the order in which they are shown.
pub fn metrics() -> &'static [Metric] {
    table::METRICS
}

/// The answer to `GET /metrics`.
pub fn render_metrics(status: &Status) -> String {
    render(metrics().iter(), status)
}

/// The answer to `GET /metrics` on the admin address of a registry.
pub fn render_registry_metrics(mesh: &MeshStatus) -> String {
    let status = Status {
        version: mesh.version.clone(),
        uptime: mesh.uptime_seconds,
        trust: mesh.trust.clone(),
        mesh: Some(mesh.clone()),
        ..Status::default()
    };
    // A registry has no visitors, and figures of them that are always zero would mislead.
    let of_a_registry = metrics().iter().filter(|metric| {
        let is_shared = ["levee_build_info", "levee_uptime_seconds"].contains(&metric.name);
        let is_of_members = ["levee_member_list_", "levee_trust_"];
        let starts = |begin: &&str| metric.name.starts_with(begin);
        is_shared || is_of_members.iter().any(starts) || mesh::ALL.contains(&metric.name)
    });
    render(of_a_registry, &status)
}

fn render<'a>(metrics: impl Iterator<Item = &'a Metric>, status: &Status) -> String {
    let mut out = String::new();
    for metric in metrics {
        let mut samples = Samples::default();
        (metric.read)(status, &mut samples);
        if samples.0.is_empty() {
            continue;
        }
        let kind = metric.kind.as_str();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n",
            name = metric.name,
            help = metric.help
        );
        for (values, value) in merged(samples) {
            out.push_str(metric.name);
            label_set(metric.labels, &values, &mut out);
            let _ = writeln!(out, " {value}");
        }
    }
    out
}

/// Prometheus refuses a page on which one series stands twice, so that one peer with two rescues
/// would blind the operator: such values are added up.
fn merged(samples: Samples) -> Vec<(Vec<String>, f64)> {
    let mut merged: Vec<(Vec<String>, f64)> = Vec::new();
    for (labels, value) in samples.0 {
        match merged.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, sum)) => *sum += value,
            None => merged.push((labels, value)),
        }
    }
    merged
}

fn label_set(names: &[&str], values: &[String], out: &mut String) {
    assert_eq!(
        names.len(),
        values.len(),
        "each label of a metric has a value"
    );
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        out.push_str(name);
        out.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                letter if letter.is_control() => out.push('\u{fffd}'),
                letter => out.push(letter),
            }
        }
        out.push('"');
    }
    if !names.is_empty() {
        out.push('}');
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
        }
    }
}

/// The reference page `docs/reference/metrics.md`.
pub fn metrics_reference() -> String {
    let mut out = String::from(
        "# Metrics\n\nWhat `GET /metrics` on the admin address tells, for Prometheus.\n\
         This page is made from the table in `crates/observe/src/metrics/table.rs`; do not edit it.\n",
    );
    for (audience, title) in [
        (
            Audience::Operator,
            "For operators: worth a graph or an alarm",
        ),
        (Audience::Detail, "Details: for whoever looks for a cause"),
    ] {
        let _ = write!(
            out,
            "\n## {title}\n\n| Metric | Kind | Unit | Labels | Meaning |\n|---|---|---|---|---|\n"
        );
        for metric in metrics().iter().filter(|metric| metric.level == audience) {
            let labels: Vec<_> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} |",
                metric.name,
                metric.kind.as_str(),
                metric.unit,
                labels.join(" "),
                metric.help
            );
        }
    }
    out
}
