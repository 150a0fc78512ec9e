//! Bars: the load of the link against the thresholds, and the small ones in tables.
//!
//! Drawn as SVG with attributes only, because the pages' content policy forbids inline style.

use crate::html::Html;
use crate::status::Status;
use crate::words;

/// Right end of the bar. D_out is 80 % of the link by default, so the whole link is at 125 %.
const SCALE_MAX: f64 = 1.25;

/// The section with the link bar and its legend.
pub(super) fn link(html: &mut Html, status: &Status) {
    let link = &status.link;
    html.markup("<section class=link><h2>Outbound link <span class=faint>")
        .text(words::rate(status.rates.out))
        .markup(" of ")
        .text(words::rate(link.usable))
        .markup(" usable, ")
        .text(words::percent(words::link_level(status)))
        .markup("</span></h2>\n<svg class=bar role=img width=\"100%\" height=76 aria-label=\"load ")
        .text(words::percent(words::link_level(status)))
        .markup("\"><rect class=ground x=0 y=0 width=\"100%\" height=26 />");
    let mut from = 0.0;
    for (class, _, rate) in parts(status) {
        let share = share_of(rate, link.usable);
        segment(html, class, from, share);
        from += share;
    }
    marks(html, status);
    html.markup("</svg>\n<ul class=legend>");
    for (class, name, rate) in parts(status) {
        html.markup("<li class=")
            .text(class)
            .markup("><b></b>")
            .text(name)
            .markup(" <span class=v>")
            .text(words::rate(rate))
            .markup("</span>");
    }
    html.markup("</ul>\n<p class=faint>");
    capacity(html, status);
    html.markup("</p></section>\n");
}

/// A bar of one level in a table, full at 1.
pub(super) fn small(html: &mut Html, level: f64) {
    html.markup("<svg class=small width=90 height=10 role=img aria-label=\"")
        .text(words::percent(level))
        .markup("\"><rect class=ground width=\"100%\" height=10 /><rect class=own width=\"")
        .text(format_args!(
            "{:.1}",
            words::finite(level).clamp(0.0, 1.0) * 100.0
        ))
        .markup("%\" height=10 /></svg> ")
        .text(words::percent(level));
}

fn parts(status: &Status) -> [(&'static str, &'static str, u64); 3] {
    let rates = &status.rates;
    [
        ("own", "own pages", rates.own),
        ("redirect", "redirects", rates.redirect),
        ("rescue", "for others", rates.rescue),
    ]
}

fn share_of(rate: u64, usable: u64) -> f64 {
    match usable {
        0 => 0.0,
        usable => rate as f64 / usable as f64,
    }
}

/// Place of `level` on the bar, in percent of its width.
fn place(level: f64) -> f64 {
    (words::finite(level) / SCALE_MAX).clamp(0.0, 1.0) * 100.0
}

fn segment(html: &mut Html, class: &'static str, from: f64, share: f64) {
    html.markup("<rect class=")
        .text(class)
        .markup(" x=\"")
        .text(format_args!("{:.2}%", place(from)))
        .markup("\" y=0 width=\"")
        .text(format_args!("{:.2}%", place(from + share) - place(from)))
        .markup("\" height=26 />");
}

/// The thresholds, with their names on three rows so that they do not collide on a phone.
fn marks(html: &mut Html, status: &Status) {
    let [low, alert, high, cutoff] = status.thresholds;
    let mut marks = vec![
        ("T_low", low, 42),
        ("T_alert", alert, 42),
        ("T_high", high, 57),
        ("T_coff", cutoff, 42),
        ("D_out", 1.0, 57),
    ];
    if let Some(redirect) = status.redirect_threshold {
        marks.push(("T_redi", redirect, 72));
    }
    for (name, level, y) in marks {
        html.markup("<line class=mark x1=\"")
            .text(format_args!("{:.2}%", place(level)))
            .markup("\" x2=\"")
            .text(format_args!("{:.2}%", place(level)))
            .markup("\" y1=0 y2=")
            .text(y - 11)
            .markup(" /><text x=\"")
            .text(format_args!("{:.2}%", place(level)))
            .markup("\" y=")
            .text(y)
            .markup(match level {
                level if level < 0.1 => " text-anchor=start>",
                _ => " text-anchor=middle>",
            })
            .text(name)
            .markup("</text>");
    }
}

fn capacity(html: &mut Html, status: &Status) {
    let link = &status.link;
    html.markup("The link carries ")
        .text(words::rate(link.capacity))
        .markup(if link.configured {
            " (as set)."
        } else {
            " (as measured)."
        });
    if link.carried > 0 {
        html.markup(" It has carried ")
            .text(words::bytes(link.carried))
            .markup(", at most ")
            .text(words::bytes(link.peak))
            .markup(" in one second; what is admitted will take it ")
            .text(words::latency(link.backlog))
            .markup(".");
    }
    if let Some(redirect) = status.redirect_threshold {
        html.markup(" Above ")
            .text(words::percent(redirect).replace(' ', "\u{a0}"))
            .markup(" (T_redi) visitors are redirected.");
    }
}
