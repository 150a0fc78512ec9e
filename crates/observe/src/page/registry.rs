//! The status page of a registry: who is registered, and how it stands with the other registries.

use std::collections::BTreeMap;

use super::{figures, trust};
use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::{MeshStatus, PeerStatus};
use crate::words;

/// The page of `status`.
pub fn render_registry_page(status: &MeshStatus) -> String {
    let mut html = Html::default();
    head(&mut html, status);
    peers(&mut html, status);
    if let Some(trusted) = &status.trust {
        trust::members(&mut html, trusted);
    }
    now(&mut html, status);
    sites(&mut html, status);
    counters(&mut html, status);
    html.markup("<footer><p><a href=\"/status.json\">JSON</a> · ")
        .markup("<a href=\"/metrics\">Metrics</a></p><p class=faint>Levee ")
        .text(&status.version)
        .markup(" · ")
        .text(Calendar::of(status.now as u64).rfc3339())
        .markup(" · up ")
        .text(words::span(status.uptime_seconds))
        .markup("</p></footer>\n</main></body></html>\n");
    html.finish()
}

fn head(html: &mut Html, status: &MeshStatus) {
    let away = status.others().filter(|peer| peer.state == "away").count();
    let others = status.others().count();
    // In the colours of a site's states: all well, and somebody is missing.
    let (mood, word) = match (away, others - away) {
        (0, _) => ("normal", "whole"),
        (_, 0) => ("sos", "alone"),
        (_, _) => ("sos", "split"),
    };
    html.markup("<!doctype html>\n<html lang=en><head><meta charset=utf-8>")
        .markup("<meta name=viewport content=\"width=device-width, initial-scale=1\">")
        .markup("<meta http-equiv=refresh content=2><title>")
        .text(word)
        .markup(" – registry ")
        .text(&status.address)
        .markup("</title><link rel=stylesheet href=\"/assets/style.css\">")
        .markup("<link rel=icon href=\"/assets/icon.svg\"></head>\n<body class=\"")
        .text(mood)
        .markup("\"><main>\n<header><p class=site>Registry at ")
        .text(&status.address)
        .markup("</p><h1><span class=badge>")
        .text(word)
        .markup("</span> <span class=sentence>")
        .text(sentence(status, others, away))
        .markup("</span></h1></header>\n");
}

fn sentence(status: &MeshStatus, others: usize, away: usize) -> String {
    let sites = match status.entries {
        1 => "One site is registered".to_owned(),
        entries => format!("{} sites are registered", words::count(entries as u64)),
    };
    let known = match (others, away) {
        (0, _) => "there is no other registry.".to_owned(),
        (1, 0) => "the other registry is linked.".to_owned(),
        (others, 0) => format!("all {others} other registries are linked."),
        (1, _) => "the other registry is away.".to_owned(),
        (others, 1) => format!("1 of {others} other registries is away."),
        (others, away) => format!("{away} of {others} other registries are away."),
    };
    format!("{sites}; {known}")
}

fn peers(html: &mut Html, status: &MeshStatus) {
    if status.others().next().is_none() {
        return;
    }
    html.markup("<section><h2>Other registries</h2><div class=scroll><table><thead><tr>")
        .markup("<th>Registry<th>State<th class=n>Agreed<th class=\"n wide\">Heard")
        .markup("<th class=n>To tell<th class=n>Repaired<th class=n>Refused</thead><tbody>\n");
    for peer in status.others() {
        let ago = |seconds: Option<f64>| match seconds {
            Some(seconds) => format!("{} ago", words::span(seconds)),
            None if peer.state == "away" => "–".to_owned(),
            None => "not yet".to_owned(),
        };
        html.markup("<tr><td>").text(&peer.peer).markup("<td>");
        state(html, peer);
        html.markup("<td class=n>")
            .text(ago(peer.agreed_seconds_ago))
            .markup("<td class=\"n wide\">")
            .text(ago(peer.silent_seconds))
            .markup("<td class=n>")
            .text(words::count(peer.owed as u64))
            .markup("<td class=n>")
            .text(words::count(peer.repaired))
            .markup("<td class=n>")
            .text(words::count(peer.refused))
            .markup("\n");
    }
    html.markup("</tbody></table></div></section>\n");
}

fn state(html: &mut Html, peer: &PeerStatus) {
    if peer.state != "away" {
        html.text(&peer.state);
        return;
    }
    html.markup("<strong>away</strong>: ").text(&peer.cause);
}

fn now(html: &mut Html, status: &MeshStatus) {
    let part = |used: usize, limit: usize| {
        let (used, limit) = (words::count(used as u64), words::count(limit as u64));
        format!("{used} of {limit}")
    };
    let connections = part(status.connections, status.connections_max);
    let rows = [
        ("Sites", part(status.entries, status.entries_max)),
        ("Connections", connections),
    ];
    figures(html, "Now", &rows);
}

fn sites(html: &mut Html, status: &MeshStatus) {
    if status.sites.is_empty() {
        return;
    }
    html.markup("<section><h2>Who is registered</h2><div class=scroll><table><thead><tr>")
        .markup("<th>Site<th class=n>Offers<th class=n>Forgotten in</thead><tbody>\n");
    for site in status.sites.iter().take(SITES_SHOWN) {
        html.markup("<tr><td>")
            .text(&site.site)
            .markup("<td class=n>")
            .text(words::rate(site.free))
            .markup("<td class=n>")
            .text(words::span(site.seconds_left))
            .markup("\n");
    }
    html.markup("</tbody></table></div>");
    if status.entries > SITES_SHOWN {
        html.markup("<p>More of them are in the <a href=\"/status.json\">JSON</a>.");
    }
    html.markup("</section>\n");
}

/// The page is drawn anew every two seconds.
const SITES_SHOWN: usize = 50;

fn counters(html: &mut Html, status: &MeshStatus) {
    let bytes = &status.bytes;
    let refused: u64 = status.refused.values().sum();
    let from_peers: u64 = status.refused_from_peers.values().sum();
    let rows = [
        ("Requests", words::count(status.requests)),
        ("Requests refused", words::count(refused)),
        (
            "Connections dropped",
            words::count(status.connections_dropped),
        ),
        ("Changes told", words::count(status.told)),
        ("Repairs told", words::count(status.told_repairs)),
        ("Changes heard", words::count(status.news)),
        ("Repairs heard", words::count(status.repaired)),
        ("Changes refused", words::count(from_peers)),
        ("Bytes from sites", words::bytes(bytes.from_members)),
        ("Bytes to sites", words::bytes(bytes.to_members)),
        ("Bytes from registries", words::bytes(bytes.from_peers)),
        ("Bytes to registries", words::bytes(bytes.to_peers)),
    ];
    figures(html, "Since the start", &rows);
    refusals(html, status);
}

fn refusals(html: &mut Html, status: &MeshStatus) {
    let mut codes: Vec<&String> = status.refused.keys().collect();
    codes.extend(status.refused_from_peers.keys());
    codes.sort();
    codes.dedup();
    if codes.is_empty() {
        return;
    }
    html.markup("<section><h2>Refused</h2><div class=scroll><table><thead><tr>")
        .markup("<th>Code<th>Means<th class=n>Of sites<th class=n>Of registries")
        .markup("</thead><tbody>\n");
    for code in codes {
        let of = |counts: &BTreeMap<String, u64>| counts.get(code).copied().unwrap_or_default();
        html.markup("<tr><td>")
            .text(code)
            .markup("<td>")
            .text(meaning(code))
            .markup("<td class=n>")
            .text(words::count(of(&status.refused)))
            .markup("<td class=n>")
            .text(words::count(of(&status.refused_from_peers)))
            .markup("\n");
    }
    html.markup("</tbody></table></div></section>\n");
}

/// The codes of the registry protocol in words.
fn meaning(code: &str) -> &'static str {
    match code {
        "400" => "no request",
        "403" => "not its own address, or not permitted here",
        "409" => "the name is taken by another address",
        "412" => "something newer is known",
        "422" => "from the future: a clock is wrong",
        "425" => "more updates than one member, or one address, may send",
        "429" => "too many requests in a short time",
        "501" => "an unknown command",
        "503" => "the registry, or the part of this address, is full",
        _ => "something else",
    }
}
