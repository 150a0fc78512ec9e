//! Figures in the words of people, and the one sentence that says how a site is.

use std::fmt::Write;

use crate::calendar::Calendar;
use crate::status::{CertificateTrouble, HotUrl, KeptAlias, Peer, Status};

/// `53.9 kB/s`: decimal units, as links are sold and as the papers count.
pub fn rate(bytes_a_second: u64) -> String {
    format!("{}/s", bytes(bytes_a_second))
}

/// `12.3 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut scaled = count as f64 / 1000.0;
    let mut unit = 0;
    while scaled >= 999.95 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// `87 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", finite(share) * 100.0)
}

/// `12,345,678`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `4.2`, or `420` where the fraction says nothing.
pub(crate) fn per_second(number: f64) -> String {
    match finite(number) {
        number if number >= 100.0 => format!("{number:.0}"),
        number => format!("{number:.1}"),
    }
}

/// Aliases that are kept for late visitors, shortly; none where there are none.
pub(crate) fn kept_aliases(status: &Status) -> Option<String> {
    let all = &status.kept_aliases;
    let (first, rest) = all.split_first()?;
    let KeptAlias { alias, site } = first;
    let more = match rest.len() {
        0 => String::new(),
        more => format!(", and {} more", count(more as u64)),
    };
    let what = match rest.is_empty() {
        true => "1 alias of an ended rescue leads".to_owned(),
        false => format!("{} aliases of ended rescues lead", count(all.len() as u64)),
    };
    Some(format!(
        "{what} late visitors back: {alias} to {site}{more}."
    ))
}

/// What is wrong with a file of certificates, and what is shown instead of it.
pub(crate) fn certificate_trouble(trouble: &CertificateTrouble, now: f64) -> String {
    let mut problem = capital(&trouble.problem);
    if !problem.ends_with('?') {
        problem.push('.');
    }
    let Some(until) = trouble.in_force_until else {
        return problem;
    };
    let is = if until < now { "was" } else { "is" };
    let until = Calendar::of(until as u64).rfc3339();
    format!("{problem} It was not taken: the one in force stays, it {is} valid until {until}.")
}

/// The text with a capital, as a sentence begins.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// What a site that could be asked for help offers; also whether by HTTPS, where that matters here.
pub(crate) fn offer(status: &Status, (site, free): &(String, u64)) -> String {
    let https = status.candidates_https.get(site);
    let https = match https.filter(|_| status.tls.is_some()) {
        Some(true) => ", HTTPS",
        Some(false) => ", no HTTPS",
        None => "",
    };
    format!("{}{https}", rate(*free))
}

/// What has been done about a hot URL: `copied to www.a.example`; nothing
/// where nothing has been.
pub(crate) fn copies(hot: &HotUrl) -> String {
    match hot.holders.as_slice() {
        [] if hot.heat.is_empty() => String::new(),
        [] => "being copied".to_owned(),
        [one] => format!("{} to {one}", hot.heat),
        many => format!("{} to {} rescue servers", hot.heat, many.len()),
    }
}

/// `2 d 3 h`, `5 min 6 s`: the two largest units.
pub fn span(seconds: f64) -> String {
    let seconds = finite(seconds).max(0.0) as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// `850 µs`, `12 ms`, `3.4 s`.
pub(crate) fn latency(seconds: f64) -> String {
    match finite(seconds) {
        seconds if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

/// JSON has no infinity and no NaN, but a load level against a capacity of zero is one.
pub(crate) fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// What the server is to its community, as pages tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Not ready yet.
    Starting,
    /// Neither helps nor is helped.
    Normal,
    /// Is being rescued, or asks to be.
    Sos,
    /// Rescues others.
    Rescue,
}

impl Mood {
    /// The mood of `status`.
    pub(crate) fn of(status: &Status) -> Self {
        match (status.ready, status.state.as_str()) {
            (false, _) => Self::Starting,
            (true, "sos") => Self::Sos,
            (true, "rescue") => Self::Rescue,
            (true, _) => Self::Normal,
        }
    }

    /// One word, for badges and CSS classes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Normal => "normal",
            Self::Sos => "sos",
            Self::Rescue => "rescue",
        }
    }
}

/// Load level of the link: d_out against D_out.
pub(crate) fn link_level(status: &Status) -> f64 {
    match status.link.usable {
        0 => 0.0,
        usable => status.rates.out as f64 / usable as f64,
    }
}

/// The state of the site in one or two plain sentences.
pub(crate) fn sentence(status: &Status) -> String {
    let mut text = match Mood::of(status) {
        Mood::Starting => "This site is starting.".to_owned(),
        Mood::Normal => by_itself(status),
        Mood::Sos => being_rescued(status),
        Mood::Rescue => rescuing(status),
    };
    if let Some(drill) = status.drill.as_ref().filter(|drill| drill.own) {
        let ends = Calendar::of(drill.ends as u64).clock();
        let _ = write!(
            text,
            " It rehearses a rescue until {ends}; no visitor is redirected."
        );
    }
    if status.rates.refusals > 0.0 {
        let refusals = per_second(status.rates.refusals);
        text.push_str(&format!(" {refusals} requests a second are refused."));
    }
    text
}

fn by_itself(status: &Status) -> String {
    let level = link_level(status);
    let used = percent(level);
    if level < 1.0 {
        return format!("This site carries its visitors by itself; {used} of its link is in use.");
    }
    let tried = match status.registry.address.is_empty() {
        true => "It is in no community that could help.".to_owned(),
        false => tried(status),
    };
    format!("The link of this site is full ({used}): visitors wait or are turned away. {tried}")
}

/// What a member has tried that needs help and has none.
fn tried(status: &Status) -> String {
    if is_excluded(status) {
        return "It is no member of its community, so nobody helps it.".to_owned();
    }
    match (status.call.state.as_str(), status.call.resting) {
        ("asking", _) => "It asks for help now; nobody has answered yet.".to_owned(),
        ("nobody_left", 0) => {
            "It calls for help, but nobody is left to ask: no other member is known that has room."
                .to_owned()
        }
        ("nobody_left", 1) => {
            "It called for help: the only member that it could ask did not help, or stopped, and \
             is asked again later."
                .to_owned()
        }
        ("nobody_left", resting) => format!(
            "It called for help: the {resting} members that it could ask did not help, or \
             stopped, and are asked again later."
        ),
        (_, _) => "It has not called for help yet.".to_owned(),
    }
}

/// Whether the other members do not take us for one of them.
pub(crate) fn is_excluded(status: &Status) -> bool {
    let trust = status.trust.as_ref();
    trust.is_some_and(|trust| trust.state == "out")
}

/// Why nobody could be asked for help who is not being asked; only where that is so.
pub(crate) fn nobody_to_ask(status: &Status) -> String {
    match &status.trust {
        Some(trust) if trust.state == "out" => {
            format!("Nobody could be asked for help. {}.", trust.cause)
        }
        Some(_) | None if live(&status.rescue_servers).next().is_some() => {
            "Everybody who could be asked for help helps already.".to_owned()
        }
        Some(_) | None => {
            "Nobody could be asked for help: no other member is known that has room.".to_owned()
        }
    }
}

fn being_rescued(status: &Status) -> String {
    let servers = match live(&status.rescue_servers).count() {
        0 => return "This site asks for help; nobody rescues it yet.".to_owned(),
        1 => "1 server".to_owned(),
        number => format!("{number} servers"),
    };
    let sent = match status.rates.requests {
        requests if requests > 0.0 => (status.rates.redirects / requests).min(1.0),
        _ => 0.0,
    };
    format!(
        "This site is being rescued by {servers}; {} of visitors are sent there.",
        percent(sent)
    )
}

fn rescuing(status: &Status) -> String {
    if let Some(drill) = &status.drill {
        let ends = Calendar::of(drill.ends as u64).clock();
        let site = &drill.site;
        return format!(
            "This site takes part in a drill of {site} until {ends}; no crowd is behind it."
        );
    }
    let names: Vec<&str> = live(&status.origins)
        .map(|peer| peer.site.as_str())
        .collect();
    let whom = match names.as_slice() {
        [] => return going_on(status),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, rest @ ..] => format!("{first} and {} others", rest.len()),
    };
    format!(
        "This site is rescuing {whom} with {}.",
        rate(status.rates.rescue)
    )
}

/// Of a site that rescues nobody who lives.
fn going_on(status: &Status) -> String {
    let mut orphans = status.origins.iter().filter(|one| one.phase == "orphaned");
    match orphans.next() {
        Some(orphan) => format!(
            "{} has died; this site shows what it has of it, with {}, until {}.",
            orphan.site,
            rate(status.rates.rescue),
            Calendar::of(orphan.orphaned_until as u64).clock()
        ),
        None => "This site has just helped another; no visitor is left.".to_owned(),
    }
}

fn live(peers: &[Peer]) -> impl Iterator<Item = &Peer> {
    peers.iter().filter(|peer| peer.phase == "live")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(rate(53_900), "53.9 kB/s");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(999_960), "1.0 MB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(span(59.9), "59 s");
        assert_eq!(span(3725.0), "1 h 2 min");
        assert_eq!(span(90_000.0), "1 d 1 h");
        assert_eq!(latency(0.000_85), "850 µs");
        assert_eq!(percent(f64::INFINITY), "0 %");
    }

    #[test]
    fn one_sentence_says_how_the_site_is() {
        let mut status = Status::default();
        assert_eq!(sentence(&status), "This site is starting.");
        status.ready = true;
        status.state = "normal".into();
        status.link.usable = 1000;
        status.rates.out = 120;
        assert!(sentence(&status).ends_with("12 % of its link is in use."));
        status.state = "sos".into();
        assert!(sentence(&status).contains("nobody rescues it yet"));
        let live = Peer {
            phase: "live".into(),
            site: "a.example".into(),
            ..Peer::default()
        };
        status.rescue_servers = vec![live.clone(), live.clone()];
        status.rates.requests = 100.0;
        status.rates.redirects = 87.0;
        assert_eq!(
            sentence(&status),
            "This site is being rescued by 2 servers; 87 % of visitors are sent there."
        );
        status.rates.refusals = 3.0;
        assert!(sentence(&status).ends_with("3.0 requests a second are refused."));
        status.state = "rescue".into();
        status.origins = vec![live];
        assert!(sentence(&status).starts_with("This site is rescuing a.example with 0 B/s."));
        status.origins[0].phase = "orphaned".into();
        status.origins[0].orphaned_until = 3600.0;
        assert!(sentence(&status).starts_with(
            "a.example has died; this site shows what it has of it, with 0 B/s, until 01:00:00."
        ));
    }
}
