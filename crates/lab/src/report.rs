//! What a demo leaves behind: a table in the terminal, a page for people, JSON for programs.
//!
//! All three say the same, for all are made from [`Figures`]; `rows` is the one table behind the
//! first two.

mod page;
mod plots;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::demo::figures::{Figures, Run, Weight};
use crate::demo::verdict::percent;

/// Where the report is.
#[derive(Clone, Debug)]
pub struct Files {
    /// `report.html`, which needs no other file.
    pub page: PathBuf,
    /// `report.json`.
    pub json: PathBuf,
}

/// Writes both files into `folder`, which is made where it is missing.
pub fn write(figures: &Figures, folder: &Path) -> io::Result<Files> {
    fs::create_dir_all(folder)?;
    let files = Files {
        page: folder.join("report.html"),
        json: folder.join("report.json"),
    };
    let json = serde_json::to_string_pretty(figures)?;
    fs::write(&files.json, json + "\n")?;
    let plots = plots::all(&figures.series).map_err(io::Error::other)?;
    fs::write(&files.page, page::html(figures, &plots))?;
    Ok(files)
}

/// The table of both runs side by side, the criteria and the arithmetic, for a terminal.
pub fn table(figures: &Figures) -> String {
    let mut text = format!(
        "\n  {:<34}{:>20}{:>20}\n",
        "", "with the community", "alone"
    );
    for row in rows(figures) {
        let _ = writeln!(
            text,
            "  {:<34}{:>20}{:>20}",
            row.name, row.with, row.without
        );
    }
    let _ = write!(text, "\n  Rescue servers: {}\n", drafted(figures));
    for line in arithmetic(figures) {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    for criterion in &figures.criteria {
        let sign = if criterion.met { "kept  " } else { "MISSED" };
        let part = match criterion.weight {
            Weight::Survival => "",
            Weight::Goal => " (goal)",
        };
        let _ = writeln!(
            text,
            "  {sign} {}{part}: {}; promised {}",
            criterion.name, criterion.measured, criterion.promised
        );
    }
    let _ = write!(text, "\n  {}\n", verdict(figures));
    text
}

/// One line of the table.
struct Row {
    name: &'static str,
    with: String,
    without: String,
}

fn rows(figures: &Figures) -> Vec<Row> {
    let row = |name, show: &dyn Fn(&Run) -> String| Row {
        name,
        with: show(&figures.with),
        without: show(&figures.without),
    };
    let first = figures.first_redirect_seconds;
    let only_with = |name, with: String| Row {
        name,
        with,
        without: "-".to_owned(),
    };
    vec![
        row("Requests offered", &|run| run.tally.offered.to_string()),
        row("answered, whole and in time", &|run| {
            run.tally.answered.to_string()
        }),
        row("failed or over 7 s", &|run| {
            format!("{} ({})", run.tally.failed, percent(run.failed_share))
        }),
        row("Answered requests/s", &|run| {
            format!("{:.1}", run.answered_rate)
        }),
        row("Latency, median", &|run| latency(run.tally.p50)),
        row("Latency, 99th percentile", &|run| latency(run.tally.p99)),
        row("the same, of the answered only", &|run| {
            latency(run.tally.p99_answered)
        }),
        row("Delivered to visitors, kB/s", &|run| {
            kilobytes(run.delivered_rate)
        }),
        row("Origin's own link, kB/s", &|run| kilobytes(run.origin_rate)),
        row("its worst second", &|run| percent(run.peak_ratio)),
        row("R_max, requests/s", &|run| {
            most(run.requests_max, |rate| format!("{rate:.1}"))
        }),
        row("D_max, kB/s", &|run| most(run.bytes_max, kilobytes)),
        only_with(
            "Members' own requests answered",
            format!(
                "{} of {}",
                figures.members_own.answered, figures.members_own.offered
            ),
        ),
        only_with(
            "Rescue servers drafted",
            figures.rescue_servers.len().to_string(),
        ),
        only_with(
            "Onset to first redirect",
            first.map_or("never".into(), latency),
        ),
        only_with(
            "Calm to everything normal",
            figures
                .back_to_normal_seconds
                .map_or("never".into(), latency),
        ),
    ]
}

fn arithmetic(figures: &Figures) -> Vec<String> {
    let alone = &figures.alone;
    let bound = &figures.bound;
    vec![
        format!(
            "The link alone: B/(F+h+o) = {:.0}/({:.0}+{:.0}+{:.0}) = {:.2} requests/s, {} kB/s of files",
            alone.link,
            alone.body,
            alone.head,
            alone.overhead,
            alone.requests,
            kilobytes(alone.bytes)
        ),
        format!(
            "R_max {:.1} requests/s is x{:.1} of that, D_max {} kB/s is x{:.1}; \
             against the run alone x{:.1} and x{:.1}",
            figures.requests_max,
            figures.requests_gain,
            kilobytes(figures.bytes_max),
            figures.data_gain,
            figures.requests_gain_measured,
            figures.data_gain_measured
        ),
        format!(
            "Redirects: {:.1}/s of a bound B/(n+358) = {:.0}/({:.1}+358) = {:.1}/s, {} \
             (offered {:.1}/s)",
            bound.redirected,
            alone.link,
            bound.redirect_bytes,
            bound.limit,
            percent(figures.redirect_bound_ratio),
            bound.offered
        ),
    ]
}

fn drafted(figures: &Figures) -> String {
    if figures.rescue_servers.is_empty() {
        return "none was drafted".to_owned();
    }
    let servers: Vec<String> = figures
        .rescue_servers
        .iter()
        .map(|server| {
            format!(
                "{} ({} kB/s) after {:.1} s, {} responses",
                server.name,
                server.link / 1000,
                server.seconds,
                server.requests
            )
        })
        .collect();
    servers.join("; ")
}

fn verdict(figures: &Figures) -> &'static str {
    if figures.survived {
        "The site survived."
    } else {
        "The site did NOT survive."
    }
}

fn latency(seconds: f64) -> String {
    if (7.0..7.1).contains(&seconds) {
        "7 s or more".to_owned()
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.1} s")
    }
}

/// A maximum; none where no span of the run was good enough.
fn most(value: f64, show: impl Fn(f64) -> String) -> String {
    if value > 0.0 {
        show(value)
    } else {
        "overloaded".to_owned()
    }
}

fn kilobytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1000.0)
}

#[cfg(test)]
mod tests;
