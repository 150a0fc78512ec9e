//! What the status page says of a closed community: whether we are in it, and who was refused.

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::{AccusationStatus, Status, TrustStatus};

/// Shown in a closed community.
pub(super) fn section(html: &mut Html, status: &Status) {
    if let Some(trust) = &status.trust {
        members(html, trust);
    }
}

/// Whether we are in it, and who was refused.
pub(super) fn members(html: &mut Html, trust: &TrustStatus) {
    html.markup("<section><h2>Members</h2><p>");
    match trust.serial {
        0 => html.markup("There is no member list yet."),
        serial => html
            .markup("The community <strong>")
            .text(&trust.community)
            .markup("</strong> has ")
            .text(trust.members.to_string())
            .markup(" members by list ")
            .text(serial.to_string())
            .markup("."),
    };
    match trust.state.as_str() {
        "ok" => html.markup(" We are one of them."),
        _ => html
            .markup(" <strong>")
            .text(&trust.cause)
            .markup("</strong>."),
    };
    if !trust.list_trouble.is_empty() {
        html.markup(" The last look for a newer list failed: <q>")
            .text(&trust.list_trouble)
            .markup("</q>.");
    }
    html.markup(" Our key is <code>")
        .text(&trust.key)
        .markup("</code>.</p>");
    if !trust.refused.is_empty() {
        html.markup("<div class=scroll><table><thead><tr><th>Refused<th class=n>Times")
            .markup("<th>Last<th class=wide>What</thead><tbody>\n");
        for refusal in &trust.refused {
            html.markup("<tr><td>")
                .text(refusal.cause.replace('_', " "))
                .markup("<td class=n>")
                .text(refusal.count.to_string())
                .markup("<td>")
                .text(Calendar::of(refusal.at).clock())
                .markup("<td class=wide>")
                .text(&refusal.last)
                .markup("\n");
        }
        html.markup("</tbody></table></div>");
    }
    accusations(html, &trust.accusations);
    html.markup("</section>\n");
}

/// Operators must see who accuses, too: two members who lie together are named here.
fn accusations(html: &mut Html, accusations: &[AccusationStatus]) {
    if accusations.is_empty() {
        return;
    }
    html.markup("<div class=scroll><table><thead><tr><th>Accused<th>By<th>Since<th>Page")
        .markup("<th class=wide>What follows</thead><tbody>\n");
    for one in accusations {
        let follows = match one.left_out {
            true => "left out of the answers of registries: members of two domains say so",
            false => "nothing: one member, or one domain, is not enough",
        };
        html.markup("<tr><td>")
            .text(&one.accused)
            .markup("<td>")
            .text(&one.accuser)
            .markup("<td>")
            .text(Calendar::of(one.since).clock())
            .markup("<td>")
            .text(&one.target)
            .markup("<td class=wide>")
            .text(follows)
            .markup("\n");
    }
    html.markup("</tbody></table></div>");
}
