//! Workloads of connections that are held open: what a server keeps for each of them, and what it
//! still does for others meanwhile.

use super::fleet::Instance;
use super::load::{self, Held, Target};
use super::processor::Spent;
use super::samples::Sample;
use super::workloads::{Load, Workload};
use crate::command::Failure;

/// Idle connections at a time.
const IDLE: u32 = 10_000;
/// Slow readers at a time.
const SLOW: u32 = 1000;
/// Opened and closed first, so that what a server makes once, for the first of them, is not
/// counted.
const FIRST: u32 = 100;

/// Measures a server that was started for this alone.
pub fn sample(
    workload: &'static Workload,
    instance: &Instance,
    target: &Target,
) -> Result<Sample, Failure> {
    let (kind, count) = match workload.load {
        Load::SlowReaders => ("slow", SLOW),
        Load::Idle | Load::Http(..) | Load::Http2(_) | Load::Handshakes(_) => ("idle", IDLE),
    };
    drop(Held::open(target, "idle", "/1k", FIRST)?);
    let before = instance.memory();
    let held = Held::open(target, kind, workload.path, count)?;
    let used = instance.used();
    let mut seen = load::run(workload, target)?;
    let spent = match workload.load {
        Load::Idle => Spent::default(),
        Load::SlowReaders | Load::Http(..) | Load::Http2(_) | Load::Handshakes(_) => {
            instance.used().since(used)
        }
    };
    let taken = instance.memory().saturating_sub(before);
    // A server that refuses connections keeps less, and must not look better for it.
    seen.errors += held.errors;
    Ok(Sample {
        workload: workload.id,
        server: instance.name,
        round: 0,
        spent,
        seen,
        memory: Some(taken as f64 / held.connections.max(1) as f64),
    })
}
