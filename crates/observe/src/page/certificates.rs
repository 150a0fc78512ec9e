//! Certificates: which of the ordered ones are in force, why one is not, and files that are bad.

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::{CertificateStatus, Status};
use crate::words;

/// Most names that the table shows; the JSON has them all.
const LINES_MAX: usize = 32;

/// The section; nothing where none are ordered and all files are good.
pub(super) fn section(html: &mut Html, status: &Status) {
    let certificates = &status.certificates;
    let troubles = &status.certificate_troubles;
    if certificates.is_empty() && troubles.is_empty() {
        return;
    }
    html.markup("<section><h2>Certificates</h2>");
    for trouble in troubles.iter().take(LINES_MAX) {
        html.markup("<p><strong>")
            .text(words::certificate_trouble(trouble, status.now))
            .markup("</strong></p>");
    }
    if !certificates.is_empty() {
        table(html, certificates);
    }
    html.markup("</section>\n");
}

/// Those that are ordered.
fn table(html: &mut Html, certificates: &[CertificateStatus]) {
    html.markup("<div class=scroll><table><thead>").markup(
        "<tr><th>Name<th>State<th>Valid until<th>Next order<th>Last problem</thead><tbody>\n",
    );
    // Whoever looks here looks for those that are missing.
    let (good, bad): (Vec<_>, Vec<_>) = certificates.iter().partition(|one| one.state == "valid");
    for one in bad.into_iter().chain(good).take(LINES_MAX) {
        line(html, one);
    }
    html.markup("</tbody></table></div>");
}

fn line(html: &mut Html, one: &CertificateStatus) {
    let date = |at: f64| Calendar::of(at as u64).rfc3339();
    html.markup("<tr><td>").text(&one.name).markup("<td>");
    match one.state == "valid" {
        true => html.text(&one.state),
        false => html.markup("<strong>").text(&one.state).markup("</strong>"),
    };
    html.markup("<td>")
        .text(one.expires.map(date).unwrap_or_default())
        .markup("<td>")
        .text(one.next_attempt.map_or("now".to_owned(), date))
        .markup("<td>")
        .text(&one.problem)
        .markup("\n");
}
