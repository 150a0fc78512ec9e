//! `bench`: what a request costs.
//!
//! Benches, each with its question. `bench eviction` and `bench memory` are about the object cache:
//! `crates/proxy/examples/cache_bench/`; then `bench memory` weighs a whole server (`churn.rs`).
//! `bench cost` counts instructions and allocations of one request in user space, which no noise of
//! a machine can hide. `bench signing` measures what keys, signatures and digests cost beside it.
//! `bench peers` runs real programs, ours and others, and measures the time of the processor that
//! each spends on a request; `docs/bench.md` says how that is kept fair and how to read it.
//!
//! ```text
//!   peers ─▶ fleet (servers, pinned) ─▶ rounds ─▶ samples ─▶ figures ─▶ table, goals, JSON
//!              templates, processes      load, processor      statistics
//! ```

mod certificate;
mod churn;
mod fleet;
mod goals;
mod held;
mod json;
mod load;
mod options;
mod peers;
mod process;
mod processor;
mod profile;
mod readme;
mod samples;
mod scratch;
mod servers;
mod statistics;
mod table;
mod workloads;

use crate::command::Failure;
use crate::forward;
use crate::workspace::Workspace;

/// Runs the bench that is named; without a name, the first.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments.split_first() {
        None => forward::request_cost(workspace),
        Some((name, rest)) => match name.as_str() {
            "cost" => forward::request_cost(workspace),
            "signing" => forward::signing_cost(workspace),
            "peers" => peers::run(workspace, rest),
            "eviction" => forward::cache_bench(workspace, arguments),
            "memory" => {
                forward::cache_bench(workspace, arguments)?;
                churn::run(workspace, rest)
            }
            other => Err(Failure::UnknownCommand {
                name: format!("bench {other}"),
            }),
        },
    }
}
