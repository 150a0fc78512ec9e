//! The table of the README: exactly what this run printed, between two markers.

use std::fs;
use std::path::Path;

use super::json::best_peer;
use super::samples::Samples;
use super::servers::{BARE, OURS, Server};
use super::workloads::{Measure, Workload};
use crate::command::Failure;
use crate::workspace::failed;

const BEGIN: &str = "<!-- bench peers: written by `cargo xtask bench peers --readme` -->\n";
const END: &str = "<!-- end of bench peers -->\n";

/// One line for each workload: ours, the bare loop, the best peer, and the ratios.
pub fn table(samples: &Samples, workloads: &[&Workload], servers: &[&Server]) -> String {
    let mut text = String::from(
        "| workload | levee | spread | user | bare loop | best peer | to bare | to best peer |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for workload in workloads {
        let Some(ours) = samples.figures(workload.id, OURS) else {
            continue;
        };
        let (unit, user) = match workload.measure() {
            Measure::Processor => ("us", format!("{:.1} us", ours.user_us)),
            Measure::Memory => ("bytes", "-".to_owned()),
        };
        let value = |value: f64| match workload.measure() {
            Measure::Processor => format!("{value:.1} {unit}"),
            Measure::Memory => format!("{value:.0} {unit}"),
        };
        let bare = samples.figures(workload.id, BARE);
        let best = best_peer(samples, workload.id, servers);
        let ratio = |other: &str| {
            let ratio = samples.ratio(workload.id, OURS, other);
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        text.push_str(&format!(
            "| {} | {} | {:.0} % | {user} | {} | {} | {} | {} |\n",
            workload.about,
            value(ours.cost),
            ours.spread * 100.0,
            bare.map_or("-".to_owned(), |figures| value(figures.cost)),
            best.map_or("-".to_owned(), |(name, figures)| {
                format!("{} {name}", value(figures.cost))
            }),
            ratio(BARE),
            best.map_or("-".to_owned(), |(name, _)| ratio(name)),
        ));
    }
    text
}

/// Puts `table` between the markers of the file at `path`.
pub fn rewrite(path: &Path, table: &str) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(failed("read", path))?;
    let text = between_markers(&text, table).ok_or_else(|| Failure::Missing {
        what: format!("the markers of the bench in {}", path.display()),
        way_out: format!(
            "put `{}` and `{}` around its table",
            BEGIN.trim(),
            END.trim()
        ),
    })?;
    fs::write(path, text).map_err(failed("write", path))
}

fn between_markers(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::samples_of;
    use super::super::servers::SERVERS;
    use super::super::workloads::WORKLOADS;
    use super::*;

    #[test]
    fn the_table_stands_between_its_markers_and_nothing_else_changes() {
        let text = format!("above\n{BEGIN}old\n{END}below\n");
        let new = between_markers(&text, "| new |\n").unwrap();
        assert_eq!(new, format!("above\n{BEGIN}\n| new |\n\n{END}below\n"));
        assert_eq!(between_markers("no markers", "x"), None);
    }

    #[test]
    fn a_line_names_the_best_peer() {
        let samples = samples_of(&[("levee", 500), ("bare", 400), ("nginx", 1000)]);
        let servers: Vec<&Server> = SERVERS.iter().collect();
        let table = table(&samples, &[&WORKLOADS[0]], &servers);
        let line =
            "| 1 KB from memory | 5.0 us | 0 % | 0.5 us | 4.0 us | 10.0 us nginx | 1.25 | 0.50 |";
        assert!(table.contains(line), "{table}");
    }
}
