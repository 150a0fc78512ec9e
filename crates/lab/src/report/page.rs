//! `report.html`: one file that explains the demo to someone who has never heard of it.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use super::plots::{self, Plots};
use super::{arithmetic, drafted, rows, verdict};
use crate::demo::figures::{Figures, Weight};

/// The page, with everything in it.
pub fn html(figures: &Figures, plots: &Plots) -> String {
    let mut page = String::with_capacity(64 << 10);
    let tone = if figures.survived { "good" } else { "bad" };
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Levee: {}</title>\n<style>{STYLE}</style></head><body><main>\n\
         <header><p class=\"name\">Levee demo report</p><h1 class=\"{tone}\">{}</h1>\n\
         <p class=\"lead\">{}</p></header>\n",
        verdict(figures),
        verdict(figures),
        lead(figures)
    );
    tiles(&mut page, figures);
    charts(&mut page, figures, plots);
    tables(&mut page, figures);
    page.push_str(NOTES);
    let _ = write!(
        page,
        "<footer>Seed {}, crowd of {:.0} s, figures also in <a href=\"report.json\">report.json</a>. \
         Visits began at most {:.0} ms late.</footer>\n</main></body></html>\n",
        figures.seed,
        figures.crowd_seconds,
        figures.generator_lag_seconds * 1000.0
    );
    page
}

fn lead(figures: &Figures) -> String {
    format!(
        "A small site hangs on a line of {:.0} kB/s, enough for about {:.0} requests a second. \
         For {:.0} seconds it was asked {:.0} times a second. The same crowd came to two copies of \
         it at the same time: one in a community of independent sites, one alone.",
        figures.alone.link / 1000.0,
        figures.alone.requests,
        figures.crowd_seconds,
        figures.with.tally.offered as f64 / figures.crowd_seconds.max(1.0),
    )
}

fn tiles(page: &mut String, figures: &Figures) {
    let answered = |run: &crate::demo::figures::Run| {
        format!(
            "{:.1} %",
            100.0 * run.tally.answered as f64 / (run.tally.offered as f64).max(1.0)
        )
    };
    let first = figures.first_redirect_seconds;
    let tiles = [
        (
            answered(&figures.with),
            "of requests answered with the community",
        ),
        (
            answered(&figures.without),
            "answered by the same site alone",
        ),
        (
            format!("x{:.1}", figures.requests_gain),
            "requests a second against what the line carries alone",
        ),
        (
            format!("x{:.1}", figures.data_gain),
            "data against what the line carries alone",
        ),
        (
            first.map_or("never".to_owned(), |first| format!("{first:.1} s")),
            "from the onset to the first redirect",
        ),
        (
            format!("{:.1} %", figures.redirect_bound_ratio * 100.0),
            "of the redirects that the line could carry at most",
        ),
    ];
    page.push_str("<section class=\"tiles\">");
    for (value, meaning) in tiles {
        let _ = write!(page, "<div><b>{value}</b><span>{meaning}</span></div>");
    }
    page.push_str("</section>\n");
}

fn charts(page: &mut String, figures: &Figures, plots: &Plots) {
    let both = [("with the community", plots::WITH), ("alone", plots::ALONE)];
    let mut requests = vec![("offered to each", plots::OFFERED)];
    requests.extend(both);
    requests.push(("redirects by the origin server", plots::REDIRECTS));
    chart(
        page,
        "Requests answered",
        "The crowd arrives at once (warm ground). Alone, the site answers what its line carries \
         and most visitors wait in vain. With help, nearly all are answered. Then (blue ground) \
         nothing but redirects is asked for, a little faster than the line can carry them.",
        &requests,
        &plots.requests,
    );
    chart(
        page,
        "The origin server's own line",
        "Dashed: the limit. In both runs the line is the same; what differs is what it is spent \
         on. With help it carries short redirects, and one copy of each file for each rescue \
         server, instead of every file for every visitor.",
        &both,
        &plots.link,
    );
    let servers: Vec<(&str, RGBColor)> = plots::servers(&figures.series)
        .into_iter()
        .zip(plots::SERVERS.into_iter().cycle())
        .collect();
    chart(
        page,
        "Who delivered how much",
        &format!(
            "Bytes that visitors received, stacked by server; <i>news</i> is the origin server. \
             Drafted: {}.",
            drafted(figures)
        ),
        &servers,
        &plots.delivered,
    );
    chart(
        page,
        "How long visitors waited",
        "Median (strong) and 99th percentile (pale) by the second in which visitors came, on a \
         logarithmic scale. Latency counts from the moment a request was meant to be made; one \
         that failed counts as 7 s at least (dashed), the limit of patience.",
        &both,
        &plots.latency,
    );
}

fn chart(page: &mut String, title: &str, text: &str, legend: &[(&str, RGBColor)], svg: &str) {
    let _ = write!(
        page,
        "<section class=\"card\"><h2>{title}</h2><p>{text}</p><p class=\"key\">"
    );
    for (name, RGBColor(red, green, blue)) in legend {
        let _ = write!(
            page,
            "<span><i style=\"background:rgb({red},{green},{blue})\"></i>{name}</span>"
        );
    }
    let _ = writeln!(page, "</p>{svg}</section>");
}

fn tables(page: &mut String, figures: &Figures) {
    page.push_str(
        "<section class=\"card\"><h2>Both runs side by side</h2><table><thead><tr><th></th>\
         <th>with the community</th><th>alone</th></tr></thead><tbody>\n",
    );
    for row in rows(figures) {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.name, row.with, row.without
        );
    }
    page.push_str("</tbody></table>");
    for line in arithmetic(figures) {
        let _ = write!(page, "<p class=\"sum\">{line}</p>");
    }
    page.push_str(
        "</section>\n<section class=\"card\"><h2>What was promised</h2><table class=\"promises\">\
         <thead><tr><th></th><th>promised</th><th>came</th><th></th></tr></thead><tbody>\n",
    );
    for criterion in &figures.criteria {
        let (tone, sign) = match criterion.met {
            true => ("good", "kept"),
            false => ("bad", "missed"),
        };
        let part = match criterion.weight {
            Weight::Survival => "",
            Weight::Goal => " <small>(goal)</small>",
        };
        let _ = writeln!(
            page,
            "<tr><td>{}{part}</td><td>{}</td><td>{}</td><td class=\"{tone}\">{sign}</td></tr>",
            criterion.name, criterion.promised, criterion.measured
        );
    }
    page.push_str("</tbody></table></section>\n");
}

const NOTES: &str = "<section class=\"card\"><h2>How to read this</h2>\
    <p>Everything ran on one machine over the loopback interface: separate processes of the real \
    server, each with a limited line that charges every byte it sends and 358 bytes for each \
    connection. Both runs took place at the same time with the same visitors, drawn from one seed; \
    they share the machine but no line, and ask far less of the processor than there is.</p>\
    <p>The crowd is a fediverse stampede (740 servers a minute, each asking HEAD and GET of one \
    post and then its preview image, every request on a connection of its own) on top of readers \
    who load pages with their images over up to two connections. Which pages and how large is \
    fitted to a day of NASA's web server in 1995. Nobody waits for anybody: visits begin when they \
    are due. A request counts as answered when every byte of it is right within 7 s, redirects \
    included; an image of a page that never came counts as failed in both runs.</p>\
    <p>R_max is the highest rate of requests over 10 s of which at most 10 % failed, D_max the most \
    that was delivered in such a span. What the link carries alone is arithmetic: B/(F+h+o), with \
    the mean file F, the mean head h and the mean overhead o of the very requests that came.</p>\
    </section>\n";

const STYLE: &str = "\
    :root{color-scheme:light;--ink:#1d2733;--soft:#5a6675;--line:#e3e7ec;--good:#188056;--bad:#c43e30}\
    body{margin:0;background:#f5f6f8;color:var(--ink);font:16px/1.55 system-ui,sans-serif}\
    main{max-width:1040px;margin:0 auto;padding:36px 20px}\
    header{margin-bottom:22px}.name{color:var(--soft);margin:0;letter-spacing:.04em}\
    h1{font-size:40px;line-height:1.15;margin:4px 0 10px}h1.good,td.good{color:var(--good)}\
    h1.bad,td.bad{color:var(--bad)}.lead{font-size:18px;max-width:46em;margin:0}\
    .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-bottom:18px}\
    .tiles div,.card{background:#fff;border:1px solid var(--line);border-radius:10px;padding:14px 16px}\
    .tiles b{display:block;font-size:27px;line-height:1.2}.tiles span{color:var(--soft);font-size:14px}\
    .card{margin-bottom:18px;padding:18px 22px}.card h2{margin:0 0 4px;font-size:21px}\
    .card p{margin:6px 0 10px;max-width:52em}.card svg{width:100%;height:auto;display:block}\
    .key span{margin-right:18px;color:var(--soft);font-size:14px}\
    .key i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px}\
    table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
    th,td{padding:6px 10px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}\
    th{color:var(--soft);font-weight:600}td:first-child,th:first-child{text-align:left;padding-left:0}\
    .promises th,.promises td{text-align:left}.promises td:last-child{font-weight:600}\
    .sum{color:var(--soft);font-size:15px}footer{color:var(--soft);font-size:14px;padding:4px 2px}";
