//! What the object cache keeps, and what it weighs: behind `cargo xtask bench eviction` and
//! `cargo xtask bench memory`.
//!
//! The cache is the real one. The policies beside it are textbook simulators of our own
//! (`policies.rs`), which hold no bodies; each gets the same bytes, and each object costs them what
//! it costs ours, index included, so that only the choice of what to keep differs.

mod eviction;
mod memory;
mod policies;
mod traces;

use std::process::ExitCode;

/// As in the server: what is weighed is its memory.
#[global_allocator]
static ALLOCATOR: levee_net::Allocator = levee_net::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("eviction") => eviction::run(&arguments[1..]),
        Some("memory") => memory::run(&arguments[1..]),
        _ => Err("give `eviction [TRACE.tsv]` or `memory [URLS]`".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("cache_bench: {why}");
            ExitCode::FAILURE
        }
    }
}
