//! `/dotslash-status`: the figures as the DotSlash prototype told them, for scripts that sample.
//!
//! Lines of `Key: value` after the habit of Apache's `mod_status`: no units, no grouping, one key
//! once. Values from outside have their control characters replaced, so a line stays a line.

use std::fmt::{Display, Write};

use crate::html::{Html, plain};
use crate::status::{Peer, Status};
use crate::words::finite;

/// The answer to `GET /dotslash-status?auto`.
pub fn render_auto(status: &Status) -> String {
    let mut lines = Lines::default();
    let (rates, life) = (&status.rates, &status.lifetime);
    lines.add("ServerName", &status.site);
    lines.add("ServerVersion", &status.version);
    lines.add("CurrentTime", status.now.max(0.0) as u64);
    lines.add("ServerUptimeSeconds", status.uptime.max(0.0) as u64);
    lines.add("State", &status.state);
    lines.add("Ready", u8::from(status.ready));
    lines.add("LinkCapacity", status.link.capacity);
    lines.add("UsableRate", status.link.usable);
    for (name, level) in ["Low", "Alert", "High", "Cutoff"]
        .iter()
        .zip(status.thresholds)
    {
        lines.add(format_args!("Threshold{name}"), finite(level));
    }
    if let Some(threshold) = status.redirect_threshold {
        lines.add("ThresholdRedirect", finite(threshold));
    }
    for level in &status.levels {
        lines.add(format_args!("Load-{}", level.resource), finite(level.level));
    }
    lines.add("CalmIntervals", status.calm_intervals);
    lines.add("OutRate", rates.out);
    lines.add("SelfRate", rates.own);
    lines.add("RescueRate", rates.rescue);
    lines.add("RedirectRate", rates.redirect);
    lines.add("RedirectedFileRate", rates.redirected_files);
    lines.add("ReqPerSec", finite(rates.requests));
    lines.add("RedirectPerSec", finite(rates.redirects));
    lines.add("RefusedPerSec", finite(rates.refusals));
    lines.add("TotalAccesses", life.requests);
    lines.add("TotalBytes", life.bytes);
    lines.add("SelfAccesses", life.own_requests);
    lines.add("SelfBytes", life.own_bytes);
    lines.add("RescueAccesses", life.rescue_requests);
    lines.add("RescueBytes", life.rescue_bytes);
    lines.add("Redirects", life.redirects);
    lines.add("RedirectBytes", life.redirect_bytes);
    lines.add("FetchesServed", life.fetches_served);
    lines.add("Refused", life.refused);
    lines.add("Dropped", life.dropped);
    lines.add("BadRequests", life.bad_requests);
    lines.peers("RescueServer", &status.rescue_servers);
    lines.peers("Origin", &status.origins);
    lines.0
}

/// The answer to `GET /dotslash-status`: the same lines on a plain page.
pub fn render_auto_page(status: &Status) -> String {
    let mut html = Html::default();
    html.markup(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>DotSlash status of ",
    )
    .text(&status.site)
    .markup("</title></head><body><h1>DotSlash status of ")
    .text(&status.site)
    .markup("</h1>\n<dl>\n");
    for line in render_auto(status).lines() {
        let (key, value) = line.split_once(": ").unwrap_or((line, ""));
        html.markup("<dt>")
            .text(key)
            .markup("<dd>")
            .text(value)
            .markup("\n");
    }
    html.markup("</dl></body></html>\n");
    html.finish()
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, key: impl Display, value: impl Display) {
        let (key, value) = (plain(&key.to_string()), plain(&value.to_string()));
        // Writing to a String cannot fail. A colon in a key would end it early.
        let _ = writeln!(self.0, "{}: {value}", key.replace(':', "_"));
    }

    fn peers(&mut self, kind: &str, peers: &[Peer]) {
        self.add(format_args!("{kind}s"), peers.len());
        for (index, peer) in peers.iter().enumerate() {
            let number = index + 1;
            self.add(format_args!("{kind}{number}Name"), &peer.site);
            self.add(format_args!("{kind}{number}Alias"), &peer.alias);
            self.add(format_args!("{kind}{number}Rate"), peer.rate);
            self.add(format_args!("{kind}{number}Used"), peer.used);
            self.add(format_args!("{kind}{number}Accesses"), peer.requests);
            self.add(format_args!("{kind}{number}Bytes"), peer.bytes);
            self.add(format_args!("{kind}{number}Phase"), &peer.phase);
        }
    }
}
