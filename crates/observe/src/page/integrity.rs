//! What the status page says of integrity: who altered something, and which origins are dead.

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::Status;

/// Shown where there is something to know.
pub(super) fn section(html: &mut Html, status: &Status) {
    let orphans = status.origins.iter().filter(|one| one.orphaned_until > 0.0);
    for orphan in orphans {
        html.markup("<section class=drill><h2>An origin has died</h2><p>")
            .text(&orphan.site)
            .markup(" does not answer. What this server has of it is shown until ")
            .text(Calendar::of(orphan.orphaned_until as u64).clock())
            .markup(", or until it is back.</p></section>\n");
    }
    let Some(integrity) = &status.integrity else {
        return;
    };
    if integrity.expelled.is_empty() {
        return;
    }
    html.markup("<section><h2>Expelled</h2><table><tr><th>member<th>since<th>page");
    html.markup("<th>expected<th>seen</tr>\n");
    for one in &integrity.expelled {
        html.markup("<tr><td>")
            .text(&one.member)
            .markup("<td>")
            .text(Calendar::of(one.since).clock())
            .markup("<td>")
            .text(&one.target)
            .markup("<td>")
            .text(&one.expected)
            .markup("<td>")
            .text(&one.seen)
            .markup("</tr>\n");
    }
    html.markup("</table><p>They altered what they delivered for this site, and are asked no ")
        .markup("more. To forgive one: <code>levee community forgive NAME</code></p></section>\n");
}
