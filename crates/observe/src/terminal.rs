//! The status in a terminal: `levee status` once, `levee top` again and again.
//!
//! Texts from outside have their control characters replaced, so that no host name and no URL can
//! move the cursor or change the terminal.

use std::fmt::Write;

use crate::calendar::Calendar;
use crate::html::plain;
use crate::status::{Peer, Status};
use crate::words::{self, Mood};

/// Most candidates that `levee status` names; its JSON has them all.
const CANDIDATES_MAX: usize = 5;

/// Most files with certificates that are named; the JSON has them all.
const TROUBLES_MAX: usize = 5;

/// Right end of the link's bar, as a load level.
const SCALE_MAX: f64 = 1.25;

/// The screen of `levee top`, `width` columns wide, with colours and bars. Ends each line with
/// "clear to the end of the line" and itself with "clear to the end of the screen", so that it can
/// be drawn over the screen before without flicker.
pub fn render_top(status: &Status, width: usize) -> String {
    let width = width.clamp(40, 200);
    let mut lines = vec![
        format!("{} {}", badge(Mood::of(status)), plain(&status.site)),
        words::sentence(status),
        String::new(),
    ];
    link(status, width, &mut lines);
    lines.push(String::new());
    rates(status, &mut lines);
    peers(
        "Servers that help us",
        &status.rescue_servers,
        width,
        &mut lines,
    );
    peers("Sites that we help", &status.origins, width, &mut lines);
    lines.extend(words::kept_aliases(status).map(|line| plain(&line).to_string()));
    lines.extend(certificate_troubles(status));
    hot(status, &mut lines);
    decisions(status, &mut lines);
    let mut screen = String::new();
    for line in lines {
        screen.push_str(&fit(&line, width));
        screen.push_str("\x1b[0m\x1b[K\n");
    }
    screen.push_str("\x1b[J");
    screen
}

/// The answer of `levee status`: a few plain lines for people, without colours.
pub fn render_status_text(status: &Status) -> String {
    let mut lines = vec![
        format!("{} ({})", plain(&status.site), Mood::of(status).word()),
        words::sentence(status),
        format!(
            "Link: {} of {} usable ({}).",
            words::rate(status.rates.out),
            words::rate(status.link.usable),
            words::percent(words::link_level(status))
        ),
        format!(
            "Up {}, {} requests, {} sent, {} redirects, {} refused, {} closed unanswered.",
            words::span(status.uptime),
            words::count(status.lifetime.requests),
            words::bytes(status.lifetime.bytes),
            words::count(status.lifetime.redirects),
            words::count(status.lifetime.refused),
            words::count(status.lifetime.dropped)
        ),
    ];
    for peer in &status.rescue_servers {
        lines.push(format!("Helped by {}", peer_text(peer)));
    }
    for peer in &status.origins {
        lines.push(format!("Helping {}", peer_text(peer)));
    }
    lines.extend(words::kept_aliases(status).map(|line| plain(&line).to_string()));
    if !status.registry.address.is_empty() && !status.registry.connected {
        lines.push(format!(
            "The registry at {} does not answer: {}",
            plain(&status.registry.address),
            plain(&status.registry.last_error)
        ));
    }
    if status.registry.connected && !status.registry.refusal.is_empty() {
        lines.push(format!(
            "The registry at {} does not list this site: {}",
            plain(&status.registry.address),
            plain(&status.registry.refusal)
        ));
    }
    lines.extend(candidates(status));
    if !status.help.state_trouble.is_empty() {
        lines.push(format!(
            "Nobody can be helped: {}",
            plain(&status.help.state_trouble)
        ));
    }
    lines.extend(certificate_troubles(status));
    for decision in status.decisions.iter().take(5) {
        lines.push(decision_line(decision.at, &decision.text));
    }
    lines.join("\n") + "\n"
}

/// Files with certificates that are no good.
fn certificate_troubles(status: &Status) -> impl Iterator<Item = String> {
    let troubles = status.certificate_troubles.iter().take(TROUBLES_MAX);
    troubles.map(|one| plain(&words::certificate_trouble(one, status.now)).to_string())
}

/// Whom a site of a community could ask for help, best first.
fn candidates(status: &Status) -> Option<String> {
    if status.registry.address.is_empty() {
        return None;
    }
    let known = status.candidates.iter().take(CANDIDATES_MAX);
    let known: Vec<String> = known
        .map(|one| format!("{} ({})", plain(&one.0), words::offer(status, one)))
        .collect();
    let more = match status.candidates.len().saturating_sub(known.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(match known.is_empty() {
        true => plain(&words::nobody_to_ask(status)).to_string(),
        false => format!("Could be asked for help: {}{more}.", known.join(", ")),
    })
}

fn peer_text(peer: &Peer) -> String {
    let rate = match peer.rate {
        // Nothing is promised after the end of a rescue.
        0 => words::rate(peer.used),
        rate => format!("{} of {}", words::rate(peer.used), words::rate(rate)),
    };
    let (site, alias) = (plain(&peer.site), plain(&peer.alias));
    format!("{site} as {alias}: {rate} ({})", plain(&peer.phase))
}

fn decision_line(at: f64, text: &str) -> String {
    format!("{}  {}", Calendar::of(at as u64).clock(), plain(text))
}

fn badge(mood: Mood) -> String {
    let colour = match mood {
        Mood::Starting => "\x1b[7m",
        Mood::Normal => "\x1b[97;44m",
        Mood::Sos => "\x1b[97;41m",
        Mood::Rescue => "\x1b[97;42m",
    };
    format!("{colour} {} \x1b[0m", mood.word().to_uppercase())
}

/// The bar, and below it a mark for each threshold.
fn link(status: &Status, width: usize, lines: &mut Vec<String>) {
    let level = words::link_level(status);
    let room = width.saturating_sub(2);
    lines.push(format!(
        "Link {} of {} usable, {}",
        words::rate(status.rates.out),
        words::rate(status.link.usable),
        words::percent(level)
    ));
    lines.push(format!("[{}]", bar(level / SCALE_MAX, room)));
    let mut marks = vec![' '; width];
    for (letter, level) in ['L', 'A', 'H', 'C'].into_iter().zip(status.thresholds) {
        let at = (words::finite(level) / SCALE_MAX * room as f64) as usize;
        marks[(at + 1).min(width - 1)] = letter;
    }
    lines.push(marks.into_iter().collect());
    lines.push("\x1b[2mL T_low  A T_alert  H T_high  C T_coff\x1b[0m".to_owned());
}

/// `share` of `room` columns filled; the last column by halves.
fn bar(share: f64, room: usize) -> String {
    let halves = (words::finite(share).clamp(0.0, 1.0) * room as f64 * 2.0).round() as usize;
    let (full, half) = (halves / 2, halves % 2);
    let mut bar = "█".repeat(full);
    bar.push_str(&"▌".repeat(half));
    bar.push_str(&"·".repeat(room - full - half));
    bar
}

fn rates(status: &Status, lines: &mut Vec<String>) {
    let rates = &status.rates;
    lines.push(format!(
        "{} requests/s   {} redirects/s   {} refusals/s",
        words::per_second(rates.requests),
        words::per_second(rates.redirects),
        words::per_second(rates.refusals)
    ));
    lines.push(format!(
        "latency {} median, {} at 99 %   waiting {}   connections {}",
        words::latency(status.latency.p50),
        words::latency(status.latency.p99),
        words::count(status.waiting),
        words::count(status.connections.0)
    ));
    lines.push(format!(
        "own {}   redirects {}   for others {}",
        words::rate(rates.own),
        words::rate(rates.redirect),
        words::rate(rates.rescue)
    ));
}

fn peers(title: &'static str, peers: &[Peer], width: usize, lines: &mut Vec<String>) {
    if peers.is_empty() {
        return;
    }
    heading(title, lines);
    for peer in peers {
        let level = peer.used as f64 / peer.rate.max(1) as f64;
        let room = (width / 6).clamp(8, 24);
        lines.push(format!(
            "{} {:>10} of {:>10}  {} ({})",
            bar(level, room),
            words::rate(peer.used),
            words::rate(peer.rate),
            plain(&peer.site),
            plain(&peer.phase)
        ));
    }
}

fn hot(status: &Status, lines: &mut Vec<String>) {
    heading("Hot URLs", lines);
    for hot in status.hot.iter().take(5) {
        lines.push(format!(
            "{:>7}/s  {}  {}",
            words::per_second(hot.rate),
            plain(&hot.url),
            plain(&words::copies(hot))
        ));
    }
}

fn decisions(status: &Status, lines: &mut Vec<String>) {
    heading("Last decisions", lines);
    for decision in status.decisions.iter().take(10) {
        lines.push(decision_line(decision.at, &decision.text));
    }
}

fn heading(title: &'static str, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(format!("\x1b[1m{title}\x1b[0m"));
}

/// The line cut to `width` columns; our own colour sequences take none.
fn fit(line: &str, width: usize) -> String {
    let mut out = String::new();
    let mut columns = 0;
    let mut inside_sequence = false;
    for letter in line.chars() {
        if letter == '\x1b' {
            inside_sequence = true;
        }
        if !inside_sequence {
            columns += 1;
            if columns > width {
                break;
            }
        }
        // Writing to a String cannot fail.
        let _ = out.write_char(letter);
        if inside_sequence && letter == 'm' {
            inside_sequence = false;
        }
    }
    out
}
