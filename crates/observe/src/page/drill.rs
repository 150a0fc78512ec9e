//! What the status page says of a drill: whose it is, until when, and how to end it.

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::Status;

/// Shown while a drill is on.
pub(super) fn section(html: &mut Html, status: &Status) {
    let Some(drill) = &status.drill else { return };
    html.markup("<section class=drill><h2>Drill</h2><p>");
    match drill.own {
        true => html.markup("This site rehearses a rescue"),
        false => html
            .markup("This site takes part in the rehearsal of ")
            .text(&drill.site),
    };
    html.markup(" until ")
        .text(Calendar::of(drill.ends as u64).clock())
        .markup(". No crowd is behind it. To end it: <code>levee drill stop</code> here, or the ")
        .markup("button on the <a href=\"/dashboard\">dashboard</a>.</p></section>\n");
}
