//! The report of all experiments: a table for the terminal, a page for people, rows for programs.

mod page;
mod plots;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::experiments::EXPERIMENTS;
use super::findings::{Findings, Row, Verdict, plain};

/// Name of the page in the folder of a report.
pub const PAGE: &str = "report.html";

/// Reads what experiments left in `folder`, and writes the page there and the rows to `json`.
pub fn write(folder: &Path, json: Option<&Path>) -> io::Result<Vec<Findings>> {
    let all = read(folder)?;
    if all.is_empty() {
        return Ok(all);
    }
    fs::write(folder.join(PAGE), page::html(&all)?)?;
    if let Some(json) = json {
        let rows: Vec<JsonRow> = all.iter().flat_map(json_rows).collect();
        fs::write(json, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    Ok(all)
}

/// Findings in the order of the table of experiments; one whose file is not ours is left out.
fn read(folder: &Path) -> io::Result<Vec<Findings>> {
    let mut all = Vec::new();
    for experiment in EXPERIMENTS {
        let file = folder.join(format!("{}.json", experiment.name));
        match fs::read(&file) {
            Ok(text) => all.push(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// A row as programs read it.
#[derive(Serialize)]
struct JsonRow {
    experiment: String,
    form: String,
    name: String,
    unit: String,
    published: Option<f64>,
    ours: f64,
    bound: Option<f64>,
    goal: String,
    verdict: Verdict,
}

fn json_rows(findings: &Findings) -> impl Iterator<Item = JsonRow> {
    findings.rows.iter().map(|row| JsonRow {
        experiment: findings.experiment.clone(),
        form: findings.form.clone(),
        name: row.name.clone(),
        unit: row.unit.clone(),
        published: row.published,
        ours: row.ours,
        bound: row.bound,
        goal: row.goal.in_words(&row.unit),
        verdict: row.verdict,
    })
}

/// All rows, for a terminal.
pub fn table(all: &[Findings]) -> String {
    let mut text = String::new();
    for findings in all {
        let _ = writeln!(
            text,
            "\n{} ({}, {} form, {:.0} s)\n  {:<44}{:>12}{:>12}{:>12}  goal",
            findings.title,
            findings.source,
            findings.form,
            findings.seconds,
            "",
            "published",
            "ours",
            "bound"
        );
        for row in &findings.rows {
            let _ = writeln!(
                text,
                "  {:<44}{:>12}{:>12}{:>12}  {}",
                format!("{}, {}", row.name, row.unit),
                or_dash(row.published),
                plain(row.ours),
                or_dash(row.bound),
                judged(row)
            );
        }
    }
    text.push('\n');
    text
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), plain)
}

/// Goal and verdict in one.
fn judged(row: &Row) -> String {
    match row.verdict {
        Verdict::Met => format!("met: {}", row.goal.in_words(&row.unit)),
        Verdict::Missed => format!("MISSED: {}", row.goal.in_words(&row.unit)),
        Verdict::Told => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::{Goal, Mark, Plot};
    use super::*;

    fn findings() -> Findings {
        Findings {
            experiment: EXPERIMENTS[0].name.to_owned(),
            title: "A <thin> line".to_owned(),
            source: "dotslash, figure 10".to_owned(),
            form: "shortest".to_owned(),
            rows: vec![
                Row::told("R_max", "requests/s", 90.0)
                    .published(88.0)
                    .bounded_by(100.0)
                    .judged_by(Goal::OfBound(0.95)),
            ],
            plots: vec![
                Plot::default()
                    .with("offered", Mark::Limit, vec![(1.0, 1.0), (2.0, 2.0)])
                    .with("answered", Mark::Line, vec![(1.0, 1.0), (2.0, 1.5)])
                    .with("single", Mark::Dots, vec![(1.0, 0.5)]),
            ],
            ..Findings::default()
        }
    }

    #[test]
    fn the_report_is_made_from_the_files_of_earlier_runs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), None).unwrap().is_empty());
        let file = folder.path().join(format!("{}.json", EXPERIMENTS[0].name));
        fs::write(file, serde_json::to_string(&findings()).unwrap()).unwrap();
        let json = folder.path().join("rows.json");
        let all = write(folder.path(), Some(&json)).unwrap();
        assert_eq!(all, [findings()]);
        let page = fs::read_to_string(folder.path().join(PAGE)).unwrap();
        assert!(page.contains("A &lt;thin&gt; line"));
        assert_eq!(page.matches("<svg").count(), 1);
        let rows: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
        assert_eq!(rows[0]["goal"], "at least 95 % of the bound");
        assert_eq!(rows[0]["verdict"], "missed");
        assert_eq!(rows[0]["published"], 88.0);
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let text = table(&[findings()]);
        assert!(
            text.contains("MISSED: at least 95 % of the bound"),
            "{text}"
        );
    }
}
