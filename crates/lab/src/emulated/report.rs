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
/// The verdict on a goal that a form is too short to reach.
const NOT_JUDGED: &str = "not judged in this form";

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
            "\n{} ({}, {} form, {:.0} s)",
            findings.title, findings.source, findings.form, findings.seconds,
        );
        let head = ["published", "ours", "bound"].map(str::to_owned);
        line(&mut text, "", &head, "goal");
        for row in &findings.rows {
            let figures = [or_dash(row.published), plain(row.ours), or_dash(row.bound)];
            let label = format!("{}, {}", row.name, row.unit);
            line(&mut text, &label, &figures, &judged(row));
        }
    }
    text.push('\n');
    text
}

/// Columns of a label. What is longer goes on in the next line, so that figures stay in theirs.
const LABEL: usize = 52;

/// One row of the table. A label of several lines has its figures beside the last one.
fn line(text: &mut String, label: &str, figures: &[String; 3], goal: &str) {
    let mut parts = folded(label);
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let _ = writeln!(text, "  {part}");
    }
    let [published, ours, bound] = figures;
    let _ = writeln!(
        text,
        "  {last:<LABEL$}{published:>12}{ours:>12}{bound:>12}  {goal}"
    );
}

/// A label in lines that fit into its column, all but the first set in. A word that is longer than
/// the column stays whole.
fn folded(label: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in label.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LABEL => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), plain)
}

/// Goal and verdict in one.
fn judged(row: &Row) -> String {
    match row.verdict {
        Verdict::Met => format!("met: {}", row.goal.in_words(&row.unit)),
        Verdict::Missed => format!("MISSED: {}", row.goal.in_words(&row.unit)),
        Verdict::NotJudged => format!("{NOT_JUDGED}: {}", row.goal.in_words(&row.unit)),
        Verdict::Told => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Form;
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

    #[test]
    fn what_a_form_cannot_judge_is_shown_with_its_figure_and_without_a_verdict() {
        let mut findings = findings();
        let row = findings.rows.remove(0).only_in_longer_forms();
        findings.rows.push(row);
        let all = [findings.in_form(Form::Shortest)];
        let text = table(&all);
        let expected = "90         100  not judged in this form: at least 95 % of the bound\n";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("MISSED"), "{text}");
        let page = page::html(&all).unwrap();
        assert!(page.contains("<h1 class=\"good\">0 of 0 goals met, 1 not judged</h1>"));
        assert!(page.contains("<b>90</b>"));
        assert!(page.contains("at least 95 % of the bound</td>"));
        assert!(page.contains("soft\">not judged in this form</td>"));
        let rows: Vec<JsonRow> = json_rows(&all[0]).collect();
        let json = serde_json::to_value(rows).unwrap();
        assert_eq!(json[0]["verdict"], "not_judged");
        assert_eq!(json[0]["ours"], 90.0);
    }

    #[test]
    fn a_label_that_is_longer_than_its_column_goes_on_in_the_next_line() {
        let long = "not counted as lost: boaster reached no registry for";
        let findings = Findings {
            rows: vec![
                Row::told(long, "s", 12.0),
                Row::told(&long.replace(' ', "-"), "s", 13.0),
                Row::told("R_max", "requests/s", 90.0),
            ],
            ..findings()
        };
        let text = table(&[findings]);
        let lines: Vec<&str> = text.trim_end().lines().skip(2).collect();
        let whole = |label: &str, ours: &str| {
            format!("  {label:<LABEL$}{:>12}{ours:>12}{:>12}  none", "-", "-")
        };
        assert_eq!(
            lines[1..],
            [
                "  not counted as lost: boaster reached no registry",
                &whole("  for, s", "12"),
                "  not-counted-as-lost:-boaster-reached-no-registry-for,",
                &whole("  s", "13"),
                &whole("R_max, requests/s", "90"),
            ]
        );
        assert_eq!(lines[0].find("  goal"), Some(whole("", "").len() - 6));
    }
}
