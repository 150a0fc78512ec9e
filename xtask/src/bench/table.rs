//! The figures for people.

use super::samples::Samples;
use super::servers::{BARE, Server};
use super::workloads::Workload;

/// All servers under one workload, a line each.
pub fn of_workload(samples: &Samples, workload: &Workload, servers: &[&Server]) -> String {
    let mut text = format!("\n{}: {}\n", workload.id, workload.about);
    text.push_str(
        "  server            CPU us  spread  to bare  user us  requests/s   p50 us   p99 us\n",
    );
    for server in servers {
        let Some(figures) = samples.figures(workload.id, server.name) else {
            continue;
        };
        let errors = match figures.errors {
            0 => String::new(),
            errors => format!("  {errors} ERRORS"),
        };
        let to_bare = samples.ratio(workload.id, server.name, BARE);
        text.push_str(&format!(
            "  {:<16} {:>7.2}  {:>4.0} %  {:>7}  {:>7.2}  {:>10.0} {:>8.0} {:>8.0}{errors}\n",
            server.name,
            figures.cost,
            figures.spread * 100.0,
            to_bare.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            figures.user_us,
            figures.rate,
            figures.p50_us,
            figures.p99_us,
        ));
    }
    text
}
