//! `report.html`: one file, without scripts, that says what was played and what came of it.

use std::fmt::Write as _;
use std::io;

use plotters::style::RGBColor;

use super::super::findings::{Findings, Plot, Row, Verdict, plain};
use super::{NOT_JUDGED, plots};

/// The page of all findings.
pub fn html(all: &[Findings]) -> io::Result<String> {
    let rows = || all.iter().flat_map(|findings| &findings.rows);
    let count = |verdict| rows().filter(|row| row.verdict == verdict).count();
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    let tone = if missed == 0 { "good" } else { "bad" };
    let unjudged = match count(Verdict::NotJudged) {
        0 => String::new(),
        count => format!(", {count} not judged"),
    };
    let headline = format!("{met} of {} goals met{unjudged}", met + missed);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Levee lab: {headline}</title>\n<style>{STYLE}</style></head><body><main>\n\
         <header><p class=\"name\">Levee lab report</p><h1 class=\"{tone}\">{headline}</h1>\n\
         {LEAD}</header>\n"
    );
    summary(&mut page, all);
    for findings in all {
        experiment(&mut page, findings)?;
    }
    page.push_str(NOTES);
    page.push_str("</main></body></html>\n");
    Ok(page)
}

/// The table of all rows, at the top: what most readers come for.
fn summary(page: &mut String, all: &[Findings]) {
    page.push_str(
        "<section class=\"card\"><h2>Published, ours, bound</h2><table><thead><tr><th></th>\
         <th>unit</th><th>published</th><th>ours</th><th>bound</th><th class=\"text\">goal</th>\
         <th class=\"text\">verdict</th></tr></thead><tbody>\n",
    );
    for findings in all {
        let _ = writeln!(
            page,
            "<tr class=\"head\"><td colspan=\"7\"><a href=\"#{}\">{}</a> <small>{}</small></td></tr>",
            findings.experiment,
            escaped(&findings.title),
            escaped(&findings.source)
        );
        for row in &findings.rows {
            line(page, row);
        }
    }
    page.push_str("</tbody></table></section>\n");
}

fn line(page: &mut String, row: &Row) {
    let figure = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), plain);
    let (tone, verdict) = match row.verdict {
        Verdict::Met => ("good", "met"),
        Verdict::Missed => ("bad", "missed"),
        Verdict::NotJudged => ("soft", NOT_JUDGED),
        Verdict::Told => ("soft", "–"),
    };
    let goal = match row.verdict {
        Verdict::Told => "–".to_owned(),
        Verdict::Met | Verdict::Missed | Verdict::NotJudged => row.goal.in_words(&row.unit),
    };
    let _ = writeln!(
        page,
        "<tr><td>{}</td><td class=\"soft\">{}</td><td>{}</td><td><b>{}</b></td><td>{}</td>\
         <td class=\"text soft\">{}</td><td class=\"text {tone}\">{verdict}</td></tr>",
        escaped(&row.name),
        escaped(&row.unit),
        figure(row.published),
        plain(row.ours),
        figure(row.bound),
        escaped(&goal)
    );
}

fn experiment(page: &mut String, findings: &Findings) -> io::Result<()> {
    let _ = write!(
        page,
        "<section class=\"card\" id=\"{}\"><h2>{}</h2>\
         <p class=\"soft\">{}. Played in its {} form in {:.0} s.</p><ul>",
        findings.experiment,
        escaped(&findings.title),
        escaped(&findings.source),
        findings.form,
        findings.seconds
    );
    for sentence in &findings.method {
        let _ = write!(page, "<li>{}</li>", escaped(sentence));
    }
    page.push_str("</ul>\n");
    for plot in &findings.plots {
        figure(page, plot)?;
    }
    page.push_str("</section>\n");
    Ok(())
}

fn figure(page: &mut String, plot: &Plot) -> io::Result<()> {
    let _ = write!(
        page,
        "<figure><figcaption><b>{}</b><br>{}</figcaption><p class=\"key\">",
        escaped(&plot.title),
        escaped(&plot.text)
    );
    for (series, RGBColor(red, green, blue)) in plot.series.iter().zip(plots::colours(plot)) {
        let name = escaped(&series.name);
        let _ = write!(
            page,
            "<span><i style=\"background:rgb({red},{green},{blue})\"></i>{name}</span>"
        );
    }
    let _ = writeln!(page, "</p>{}</figure>", plots::svg(plot)?);
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

const LEAD: &str = "<p class=\"lead\">What the papers published, played again with the real server \
    on emulated hosts. A goal compares with what arithmetic allows (the bound) or with what was \
    published; rows without a goal are told for what they are. A form that is too short to reach a goal does \
    not judge it.</p>";

const NOTES: &str = "<section class=\"card\"><h2>How to read this</h2>\
    <p>Every host is a network namespace of one machine, with a cable to a common switch. What may \
    leave a host is limited by the kernel (a token bucket on its own end of the cable), and what \
    left it is read there. Servers are real Levee processes; they and the visitors share the \
    machine's processor. Distance is not emulated.</p>\
    <p>Visitors do not wait for each other (an open loop): a request's time counts from the moment at \
    which it was meant to be asked, and a request that is not answered within 7 s, redirects \
    included, has failed. Every body is compared with the file that it should be. A rate is \
    overloaded when more than a tenth of its requests failed; R_max is the rate before the first \
    such, D_max the most that was received up to there.</p></section>\n";

const STYLE: &str = "\
    :root{color-scheme:light;--ink:#1d2733;--soft:#5a6675;--line:#e3e7ec;--good:#188056;--bad:#c43e30}\
    body{margin:0;background:#f5f6f8;color:var(--ink);font:16px/1.55 system-ui,sans-serif}\
    main{max-width:1040px;margin:0 auto;padding:36px 20px}\
    header{margin-bottom:22px}.name{color:var(--soft);margin:0;letter-spacing:.04em}\
    h1{font-size:40px;line-height:1.15;margin:4px 0 10px}h1.good,td.good{color:var(--good)}\
    h1.bad,td.bad{color:var(--bad)}.soft{color:var(--soft)}.lead{font-size:18px;max-width:46em;margin:0}\
    .card{background:#fff;border:1px solid var(--line);border-radius:10px;margin-bottom:18px;\
    padding:18px 22px;overflow-x:auto}.card h2{margin:0 0 4px;font-size:21px}\
    .card p,.card ul{margin:6px 0 10px;max-width:52em}.card ul{padding-left:1.2em}\
    figure{margin:22px 0 0}figcaption{max-width:52em}svg{width:100%;height:auto;display:block}\
    .key span{margin-right:18px;color:var(--soft);font-size:14px;white-space:nowrap}\
    .key i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px}\
    table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
    th,td{padding:6px 10px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}\
    th{color:var(--soft);font-weight:600}td:first-child,th:first-child,.text{text-align:left}\
    td:first-child,th:first-child{padding-left:0}.head td{padding-top:18px;font-weight:600}\
    .head small{color:var(--soft);font-weight:400;margin-left:.5em}a{color:inherit}";
