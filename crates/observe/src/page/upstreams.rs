//! The applications behind a site: which get requests, which are left out.

use crate::html::Html;
use crate::status::UpstreamStatus;
use crate::words;

/// Most upstreams that the table shows; the JSON has them all.
const LINES_MAX: usize = 32;

/// The section with the table; nothing for a site that is a folder.
pub(super) fn section(html: &mut Html, upstreams: &[UpstreamStatus]) {
    if upstreams.is_empty() {
        return;
    }
    html.markup("<section><h2>Upstreams</h2><div class=scroll><table><thead>")
        .markup("<tr><th>Place<th>State<th class=n>Under way<th class=n>Requests")
        .markup("<th class=n>Failed<th class=\"n wide\">Left out</thead><tbody>\n");
    // Whoever looks here looks for those that are missing.
    let (up, out): (Vec<_>, Vec<_>) = upstreams.iter().partition(|upstream| upstream.up);
    for upstream in out.into_iter().chain(up).take(LINES_MAX) {
        html.markup("<tr><td>").text(&upstream.name).markup("<td>");
        match (upstream.up, upstream.backup) {
            (true, false) => html.text("in use"),
            (true, true) => html.text("backup"),
            (false, _) => html.markup("<strong>left out</strong>"),
        };
        html.markup("<td class=n>")
            .text(words::count(upstream.outstanding))
            .markup("<td class=n>")
            .text(words::count(upstream.requests))
            .markup("<td class=n>")
            .text(words::count(upstream.failures))
            .markup("<td class=\"n wide\">")
            .text(words::count(upstream.ejections))
            .markup("×\n");
    }
    html.markup("</tbody></table></div></section>\n");
}
