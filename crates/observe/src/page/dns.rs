//! What the status page says of the site's name in DNS: who is in it, and why not, where it fails.

use crate::html::Html;
use crate::status::Status;
use crate::words;

/// How our aliases are found; shown where any are given out.
pub(super) fn aliases(html: &mut Html, status: &Status) {
    let Some(aliases) = &status.alias_names else {
        return;
    };
    html.markup("<p>Aliases lie under ").text(&aliases.domain);
    match aliases.server.is_empty() {
        true => html
            .markup(", which must have a wildcard record that leads here: <code>*.")
            .text(&aliases.domain)
            .markup("</code>."),
        false => html
            .markup(" and are registered at ")
            .text(&aliases.server)
            .markup(" before they are given out: ")
            .text(words::count(aliases.registered))
            .markup(" now."),
    };
    if !aliases.cause.is_empty() {
        html.markup(" <strong>That fails:</strong> <q>")
            .text(&aliases.cause)
            .markup("</q>. Calls for help are declined meanwhile.");
    }
    html.markup("</p>");
}

/// Shown where the name is kept.
pub(super) fn section(html: &mut Html, status: &Status) {
    let Some(dns) = &status.dns else { return };
    html.markup("<section><h2>DNS</h2><p>");
    html.markup("<strong>").text(&dns.name).markup("</strong> ");
    match dns.addresses.is_empty() {
        true => html.markup("has not been read yet"),
        false => html.markup("leads to ").text(dns.addresses.join(", ")),
    };
    match dns.entered.len() {
        0 => html.markup("."),
        1 => html.markup("; one of these is a rescue server."),
        count => html
            .markup("; ")
            .text(count.to_string())
            .markup(" of these are rescue servers."),
    };
    match dns.state.as_str() {
        "unused" => html
            .markup(" Not used for rescues: ")
            .text(&dns.cause)
            .markup("."),
        "failing" => html
            .markup(" <strong>It is not as it should be:</strong> <q>")
            .text(&dns.cause)
            .markup("</q>. It is tried again."),
        "working" => html.markup(" It is being changed."),
        _ => html.markup(""),
    };
    if let Some(asked) = &dns.asked {
        html.markup(" Our own name server has answered ")
            .text(words::count(asked.answers))
            .markup(" questions and held back ")
            .text(words::count(asked.held_back))
            .markup(".");
    }
    html.markup("</p></section>\n");
}
