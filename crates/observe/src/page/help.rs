//! What the status page says of what is given to others: how much, to whom, and to whom not.

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::{HelpStatus, Status};
use crate::words;

/// Most sites that each table shows; the JSON has them all.
const LINES_MAX: usize = 12;

/// Nothing for a site that has given nothing and refused nobody.
pub(super) fn section(html: &mut Html, status: &Status) {
    let help = &status.help;
    let is_limited = help.given_max.is_some() || help.member_given_max.is_some();
    let is_sound = help.state_trouble.is_empty();
    if help.given == 0 && help.refused.is_empty() && !is_limited && is_sound {
        return;
    }
    html.markup("<section><h2>Given to others</h2><p>");
    if !is_sound {
        html.markup(
            "<strong>Nobody can be helped: no alias is given out that a restart would forget. ",
        )
        .text(&help.state_trouble)
        .markup("</strong>.</p><p>");
    }
    given(html, help);
    html.markup("</p>");
    sites(html, help);
    refused(html, help);
    html.markup("</section>\n");
}

fn given(html: &mut Html, help: &HelpStatus) {
    html.text(words::bytes(help.given))
        .markup(" in the last 24 hours");
    if let Some(most) = help.given_max {
        html.markup(" of ")
            .text(words::bytes(most))
            .markup(" (<code>help.bytes_per_day</code>)");
    }
    if let Some(most) = help.member_given_max {
        html.markup(", ")
            .text(words::bytes(most))
            .markup(" to one site at most (<code>help.member_bytes_per_day</code>)");
    }
    html.markup(". All together may have ")
        .text(words::rate(help.rate))
        .markup(" now.");
}

fn sites(html: &mut Html, help: &HelpStatus) {
    if help.sites.is_empty() {
        return;
    }
    html.markup("<table><tbody>\n");
    for (site, bytes) in help.sites.iter().take(LINES_MAX) {
        html.markup("<tr><td class=n>")
            .text(words::bytes(*bytes))
            .markup("<td>")
            .text(site)
            .markup("\n");
    }
    html.markup("</tbody></table>");
}

fn refused(html: &mut Html, help: &HelpStatus) {
    if help.refused.is_empty() {
        return;
    }
    html.markup("<h3>Not helped</h3><table><tbody>\n");
    for call in help.refused.iter().take(LINES_MAX) {
        html.markup("<tr><td class=faint>")
            .text(Calendar::of(call.at as u64).clock())
            .markup("<td>")
            .text(&call.site)
            .markup("<td>")
            .text(&call.why)
            .markup("<td class=\"n faint\">")
            .text(words::count(call.times))
            .markup("×\n");
    }
    html.markup("</tbody></table>");
}
