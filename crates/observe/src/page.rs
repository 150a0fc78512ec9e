//! The status page for people: plain HTML that works without scripts and reloads itself.
//!
//! It answers one question at a glance: how is the site? Then, further down, why. It must load on a
//! phone while the site is on fire, so it is one small page and one small stylesheet.

mod bar;
mod certificates;
mod dns;
mod drill;
mod help;
mod integrity;
mod registry;
mod trust;
mod upstreams;

pub use registry::render_registry_page;

use crate::calendar::Calendar;
use crate::html::Html;
use crate::status::{CrawlerStatus, Lifetime, Peer, Status};
use crate::words::{self, Mood};

/// The stylesheet of the status page and the dashboard, served as `/assets/style.css`.
pub const STYLE_CSS: &str = include_str!("../assets/style.css");

/// Most hot URLs and decisions that the page shows; the JSON has them all.
const LINES_MAX: usize = 12;

/// Most rescues that a table shows.
const PEERS_MAX: usize = 32;

/// The page of `status`.
pub fn render_page(status: &Status) -> String {
    let mut html = Html::default();
    head(&mut html, status);
    drill::section(&mut html, status);
    integrity::section(&mut html, status);
    bar::link(&mut html, status);
    peers(&mut html, Side::HelpsUs, &status.rescue_servers);
    peers(&mut html, Side::IsHelped, &status.origins);
    help::section(&mut html, status);
    candidates(&mut html, status);
    trust::section(&mut html, status);
    dns::section(&mut html, status);
    upstreams::section(&mut html, &status.upstreams);
    certificates::section(&mut html, status);
    html.markup("<div class=columns>");
    hot_urls(&mut html, status);
    decisions(&mut html, status);
    html.markup("</div>");
    now(&mut html, status);
    counters(&mut html, &status.lifetime, &status.crawlers);
    foot(&mut html, status);
    html.finish()
}

fn head(html: &mut Html, status: &Status) {
    let mood = Mood::of(status).word();
    html.markup("<!doctype html>\n<html lang=en><head><meta charset=utf-8>")
        .markup("<meta name=viewport content=\"width=device-width, initial-scale=1\">")
        .markup("<meta http-equiv=refresh content=2><title>")
        .text(mood)
        .markup(" – ")
        .text(&status.site)
        .markup("</title><link rel=stylesheet href=\"/assets/style.css\">")
        .markup("<link rel=icon href=\"/assets/icon.svg\"></head>\n<body class=\"")
        .text(mood)
        .markup("\"><main>\n<header><p class=site>")
        .text(&status.site)
        .markup("</p><h1><span class=badge>")
        .text(mood)
        .markup("</span> <span class=sentence>")
        .text(words::sentence(status))
        .markup("</span></h1></header>\n");
}

/// What the other side of a rescue is to us.
#[derive(Clone, Copy)]
enum Side {
    HelpsUs,
    IsHelped,
}

fn peers(html: &mut Html, side: Side, peers: &[Peer]) {
    if peers.is_empty() {
        return;
    }
    let (title, flow) = match side {
        Side::HelpsUs => ("Servers that help us", "Redirected"),
        Side::IsHelped => ("Sites that we help", "Served"),
    };
    html.markup("<section><h2>")
        .text(title)
        .markup("</h2><div class=scroll><table><thead><tr><th>Site<th class=wide>Alias<th class=n>")
        .text(flow)
        .markup("<th class=n>At most<th class=share>Share<th class=\"n wide\">Requests")
        .markup("<th class=\"n wide\">Bytes<th class=wide>Since<th>Phase</thead><tbody>\n");
    // What is live stands first.
    let (live, over): (Vec<_>, Vec<_>) = peers.iter().partition(|peer| peer.phase == "live");
    for peer in live.into_iter().chain(over).take(PEERS_MAX) {
        let level = match peer.rate {
            0 => 0.0,
            rate => peer.used as f64 / rate as f64,
        };
        html.markup("<tr><td>")
            .text(&peer.site)
            .markup("<td class=wide>")
            .text(&peer.alias)
            .markup("<td class=n>")
            .text(words::rate(peer.used))
            .markup("<td class=n>")
            .text(words::rate(peer.rate))
            .markup("<td class=share>");
        bar::small(html, level);
        html.markup("<td class=\"n wide\">")
            .text(words::count(peer.requests))
            .markup("<td class=\"n wide\">")
            .text(words::bytes(peer.bytes))
            .markup("<td class=wide>")
            .text(Calendar::of(peer.since as u64).clock())
            .markup("<td>")
            .text(&peer.phase)
            .markup("\n");
    }
    html.markup("</tbody></table></div></section>\n");
}

/// All registries where there are several, and why one is away.
fn registries(html: &mut Html, status: &Status) {
    let registry = &status.registry;
    if registry.all.len() < 2 {
        return;
    }
    html.markup(" Registries: ");
    for (number, place) in registry.all.iter().enumerate() {
        html.markup(if number > 0 { ", " } else { "" });
        html.text(&place.address).markup(" ").text(&place.state);
        if !place.cause.is_empty() {
            let ago = words::span(status.now - place.tried_at);
            html.markup(" (").text(&place.cause);
            html.text(format!(", tried {ago} ago")).markup(")");
        }
    }
    html.markup(".");
}

fn candidates(html: &mut Html, status: &Status) {
    let registry = &status.registry;
    html.markup("<section><h2>Community</h2><p>");
    match (registry.address.is_empty(), registry.connected) {
        (true, _) => {
            html.markup("No registry is set: this site helps nobody and nobody helps it.");
        }
        (false, true) => {
            html.markup("The registry at ")
                .text(&registry.address)
                .markup(" answers.");
        }
        (false, false) => {
            html.markup("<strong>The registry at ")
                .text(&registry.address)
                .markup(" does not answer.</strong> We go on with the last candidates.");
        }
    }
    registries(html, status);
    if !registry.lookup_error.is_empty() {
        html.markup(" <strong>Looking for registries fails:</strong> <q>")
            .text(&registry.lookup_error)
            .markup("</q>. Those that were known stay.");
    }
    if registry.connected && !registry.refusal.is_empty() {
        html.markup(" <strong>It does not list this site:</strong> <q>")
            .text(&registry.refusal)
            .markup("</q>.");
    } else if !registry.last_error.is_empty() {
        html.markup(" Last error: <q>")
            .text(&registry.last_error)
            .markup("</q>.");
    }
    html.markup("</p>");
    let next: Vec<_> = status.candidates.iter().take(LINES_MAX).collect();
    if !next.is_empty() {
        html.markup("<p>Next we would ask: ");
        for (index, one) in next.into_iter().enumerate() {
            html.markup(if index > 0 { ", " } else { "" })
                .text(&one.0)
                .markup(" <span class=faint>(")
                .text(words::offer(status, one))
                .markup(")</span>");
        }
        html.markup(".</p>");
    } else if !registry.address.is_empty() {
        html.markup("<p>")
            .text(words::nobody_to_ask(status))
            .markup("</p>");
    }
    if let Some(kept) = words::kept_aliases(status) {
        html.markup("<p class=faint>").text(kept).markup("</p>");
    }
    dns::aliases(html, status);
    html.markup("</section>\n");
}

fn hot_urls(html: &mut Html, status: &Status) {
    html.markup("<section><h2>Hot URLs</h2>");
    if status.hot.is_empty() {
        html.markup("<p class=faint>Nothing is asked for.</p>");
    } else {
        html.markup("<table><tbody>\n");
        for hot in status.hot.iter().take(LINES_MAX) {
            html.markup("<tr><td class=n>")
                .text(words::per_second(hot.rate))
                .markup("/s<td class=url>")
                .text(&hot.url)
                .markup("<td class=faint>")
                .text(words::copies(hot))
                .markup("\n");
        }
        html.markup("</tbody></table>");
    }
    html.markup("</section>\n");
}

fn decisions(html: &mut Html, status: &Status) {
    html.markup("<section><h2>Last decisions</h2>");
    if status.decisions.is_empty() {
        html.markup("<p class=faint>None yet.</p>");
    } else {
        html.markup("<ol class=feed>\n");
        for decision in status.decisions.iter().take(LINES_MAX) {
            html.markup("<li><time>")
                .text(Calendar::of(decision.at as u64).clock())
                .markup("</time> ")
                .text(&decision.text)
                .markup("\n");
        }
        html.markup("</ol>");
    }
    html.markup("</section>\n");
}

fn now(html: &mut Html, status: &Status) {
    let rates = &status.rates;
    let part = |(used, limit): (u64, u64), show: fn(u64) -> String| match limit {
        0 => show(used),
        limit => format!("{} of {}", show(used), show(limit)),
    };
    let mut rows = vec![
        (
            "Requests",
            format!("{}/s", words::per_second(rates.requests)),
        ),
        (
            "Redirects",
            format!("{}/s", words::per_second(rates.redirects)),
        ),
        (
            "Refusals",
            format!("{}/s", words::per_second(rates.refusals)),
        ),
        ("Redirected files", words::rate(rates.redirected_files)),
        ("Crawlers' limit", words::rate(status.crawlers.rate)),
        ("Waiting requests", words::count(status.waiting)),
        ("Median latency", words::latency(status.latency.p50)),
        ("99th percentile", words::latency(status.latency.p99)),
        ("Connections", part(status.connections, words::count)),
        ("Cache", part(status.cache_bytes, words::bytes)),
        ("Calm intervals", words::count(status.calm_intervals.into())),
    ];
    for level in &status.levels {
        rows.push((resource(&level.resource), words::percent(level.level)));
    }
    figures(html, "Now", &rows);
}

/// The known resources in words.
fn resource(name: &str) -> &'static str {
    match name {
        "bandwidth" => "Link level",
        "cpu" => "Processor level",
        "connections" => "Connection level",
        _ => "Level of another resource",
    }
}

fn counters(html: &mut Html, life: &Lifetime, crawlers: &CrawlerStatus) {
    let rows = [
        ("Requests", words::count(life.requests)),
        ("Bytes sent", words::bytes(life.bytes)),
        ("Own responses", words::count(life.own_requests)),
        ("Own bytes", words::bytes(life.own_bytes)),
        ("Redirects", words::count(life.redirects)),
        ("Redirect bytes", words::bytes(life.redirect_bytes)),
        ("Responses for others", words::count(life.rescue_requests)),
        ("Bytes for others", words::bytes(life.rescue_bytes)),
        (
            "Fetches by rescue servers",
            words::count(life.fetches_served),
        ),
        ("Refused (503)", words::count(life.refused)),
        ("Closed unanswered", words::count(life.dropped)),
        ("Beyond limits of help", words::count(life.withheld)),
        ("Made room for others", words::count(life.evicted)),
        (
            "Requests by crawlers",
            words::count(crawlers.by_name + crawlers.by_behaviour),
        ),
        ("Bytes for crawlers", words::bytes(crawlers.bytes)),
        ("Crawlers put off (429)", words::count(crawlers.put_off)),
        ("Crawlers closed", words::count(crawlers.closed)),
        ("Bad requests (4xx)", words::count(life.bad_requests)),
        ("Stayed: nobody may keep it", words::count(life.kept_visits)),
        ("Redirects at risk", words::count(life.redirects_at_risk)),
        ("Cache hits", words::count(life.cache_hits)),
        ("Cache misses", words::count(life.cache_misses)),
        ("Fetches", words::count(life.fetches)),
        ("Shared a fetch", words::count(life.collapsed)),
        ("Failed fetches", words::count(life.fetch_errors)),
        (
            "Rescue messages refused",
            words::count(life.rescue_messages_refused),
        ),
        ("Purges", words::count(life.purges)),
        (
            "Purges not confirmed",
            words::count(life.purges_unconfirmed),
        ),
        ("Log lines lost", words::count(life.log_lines_lost)),
        (
            "Of these, no room for others\u{2019} lines",
            words::count(life.log_lines_left_out),
        ),
        (
            "Log lines taken over",
            words::count(life.log_lines_taken_over),
        ),
        ("Log lines refused", words::count(life.log_lines_refused)),
    ];
    figures(html, "Since the start", &rows);
}

fn figures(html: &mut Html, title: &'static str, rows: &[(&'static str, String)]) {
    html.markup("<section><h2>")
        .text(title)
        .markup("</h2><dl class=figures>\n");
    for (name, value) in rows {
        html.markup("<div><dt>")
            .text(name)
            .markup("<dd>")
            .text(value)
            .markup("</div>\n");
    }
    html.markup("</dl></section>\n");
}

fn foot(html: &mut Html, status: &Status) {
    html.markup("<footer><p><a href=\"/dashboard\">Live dashboard</a> · ")
        .markup("<a href=\"/status.json\">JSON</a> · <a href=\"/metrics\">Metrics</a> · ")
        .markup("<a href=\"/dotslash-status?auto\">Text</a></p><p class=faint>Levee ")
        .text(&status.version)
        .markup(" · ")
        .text(Calendar::of(status.now as u64).rfc3339())
        .markup(" · up ")
        .text(words::span(status.uptime))
        .markup("</p></footer>\n</main></body></html>\n");
}
