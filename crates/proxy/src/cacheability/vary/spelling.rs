//! One spelling for what means the same in a request header (RFC 9111 section 4.1): visitors who
//! want the same get the same variant, however their browsers write it down.

use crate::cacheability::syntax::members;
use crate::flight::RequestHeaders;

/// The codings that browsers ask for, in the order in which we pass them on.
const CODINGS: [&str; 3] = ["br", "gzip", "zstd"];

/// Languages of one line that are sorted; a longer line is compared as it was sent.
const LANGUAGES_MAX: usize = 16;

/// Fields that hold one value, in which a blank or a comma may mean anything.
const SINGLE: [&str; 6] = [
    "authorization",
    "cookie",
    "host",
    "origin",
    "referer",
    "user-agent",
];

/// How the values of a field may be written differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Which codings are named.
    Encodings,
    /// Languages with their weights, in any order.
    Languages,
    /// A list, over any number of lines, with any blanks between its members.
    List,
    /// One value.
    Single,
}

impl Spelling {
    /// That of the field `name`, in lower case.
    pub fn of(name: &str) -> Self {
        match name {
            "accept-encoding" => Self::Encodings,
            "accept-language" => Self::Languages,
            name if SINGLE.contains(&name) => Self::Single,
            _ => Self::List,
        }
    }
}

/// Appends the values of the field `name` of a request in their one spelling.
pub(super) fn push_normal(
    spelling: Spelling,
    name: &str,
    request: &(impl RequestHeaders + ?Sized),
    out: &mut Vec<u8>,
) {
    match spelling {
        Spelling::Encodings => push_encodings(request, |name| out.extend_from_slice(name)),
        Spelling::Languages => request.each(name, &mut |value| push_languages(value, out)),
        Spelling::List => request.each(name, &mut |value| push_list(value, out)),
        Spelling::Single => request.each(name, &mut |value| push_single(value, out)),
    }
}

fn push_single(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(value.trim_ascii());
    // An empty field is not the same as none.
    out.push(b',');
}

fn push_list(value: &[u8], out: &mut Vec<u8>) {
    // Within quotes a blank means something.
    if value.contains(&b'"') || value.trim_ascii().is_empty() {
        return push_single(value, out);
    }
    for member in members(value) {
        push_single(member, out);
    }
}

/// A language range and its weight in thousandths.
type Language<'a> = (u16, &'a [u8]);

/// The languages by their weights. Which of equal weight stands first means nothing (RFC 9110
/// section 12.5.4); a browser whose user prefers one gives it the higher weight.
fn push_languages(value: &[u8], out: &mut Vec<u8>) {
    let mut languages: [Language<'_>; LANGUAGES_MAX] = [(0, b""); LANGUAGES_MAX];
    let mut count = 0;
    for member in members(value) {
        match (language(member), languages.get_mut(count)) {
            (Some(language), Some(place)) => *place = language,
            (None, _) | (_, None) => return push_single(value, out),
        }
        count += 1;
    }
    let languages = &mut languages[..count];
    languages.sort_unstable_by(|(weight, one), (other_weight, other)| {
        let lower = |tag: &[u8], at: usize| tag.get(at).map(u8::to_ascii_lowercase);
        let length = one.len().max(other.len());
        let differing = (0..length).find(|&at| lower(one, at) != lower(other, at));
        let by_name = differing.map(|at| lower(one, at).cmp(&lower(other, at)));
        other_weight
            .cmp(weight)
            .then(by_name.unwrap_or(std::cmp::Ordering::Equal))
    });
    for (weight, tag) in languages {
        out.extend(tag.iter().map(u8::to_ascii_lowercase));
        out.push(b';');
        out.extend_from_slice(&weight.to_be_bytes().map(|byte| byte | 0x80));
        out.push(b',');
    }
}

/// `de-CH` or `de;q=0.5`.
fn language(member: &[u8]) -> Option<Language<'_>> {
    let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let tag = parts.next().unwrap_or_default();
    let weight = match (parts.next(), parts.next()) {
        (None, _) => 1000,
        (Some(parameter), None) => thousandths(quality(parameter)?)?,
        (Some(_), Some(_)) => return None,
    };
    Some((weight, tag))
}

/// `0.25` as 250 (RFC 9110 section 12.4.2).
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, rest) = value.split_first()?;
    let digits = match rest.split_first() {
        None => &[][..],
        Some((b'.', digits)) if digits.len() <= 3 => digits,
        Some(_) => return None,
    };
    if !whole.is_ascii_digit() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut number = u16::from(whole - b'0');
    for place in 0..3 {
        let digit = digits.get(place).map_or(0, |digit| digit - b'0');
        number = number * 10 + u16::from(digit);
    }
    (number <= 1000).then_some(number)
}

/// The value of a parameter `q`.
fn quality(parameter: &[u8]) -> Option<&[u8]> {
    parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))
}

/// The codings that a request accepts, in one spelling: `br, gzip`. Empty where it wants none.
pub fn normal_encodings(request: &(impl RequestHeaders + ?Sized)) -> String {
    let mut text = String::new();
    push_encodings(request, |part| {
        text.push_str(&String::from_utf8_lossy(part))
    });
    text
}

fn push_encodings(request: &(impl RequestHeaders + ?Sized), mut push: impl FnMut(&[u8])) {
    let mut named = [None; CODINGS.len()];
    let mut others = None;
    request.each("accept-encoding", &mut |value| {
        for member in members(value) {
            let mut parts = member.split(|&byte| byte == b';');
            let coding = parts.next().unwrap_or_default().trim_ascii();
            let wanted = !parts.any(|parameter| is_zero_quality(parameter.trim_ascii()));
            let known = |name: &&str| coding.eq_ignore_ascii_case(name.as_bytes());
            if let Some(index) = CODINGS.iter().position(known) {
                named[index] = Some(wanted);
            } else if coding == b"*" {
                others = Some(wanted);
            }
        }
    });
    let chosen = named.iter().zip(CODINGS);
    let chosen = chosen.filter(|(wanted, _)| wanted.or(others) == Some(true));
    for (index, (_, name)) in chosen.enumerate() {
        if index > 0 {
            push(b", ");
        }
        push(name.as_bytes());
    }
}

fn is_zero_quality(parameter: &[u8]) -> bool {
    quality(parameter).and_then(thousandths) == Some(0)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// The values of a field in lines `|`.
    fn spelt(name: &str, lines: &str) -> Vec<u8> {
        let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let lines = lines.split('|').map(|line| (own(name), own(line)));
        let mut out = Vec::new();
        push_normal(
            Spelling::of(name),
            name,
            &lines.collect::<Vec<_>>(),
            &mut out,
        );
        out
    }

    #[test]
    fn what_means_the_same_is_spelt_the_same() {
        for (name, one, other) in [
            ("foo", "1, 2", "1|2"),
            ("foo", "1,2", " 1 ,  2 "),
            ("foo", "1,,2", "1, 2"),
            ("accept-language", "en, de", "de, en"),
            ("accept-language", "en, de", "eN, De"),
            ("accept-language", "en, de", " en ,   de"),
            ("accept-language", "de;q=1.0, fr;q=0.5", "fr; Q=0.50, de"),
            ("accept-encoding", "gzip, br", "br;q=0.5|gzip"),
        ] {
            assert_eq!(
                spelt(name, one),
                spelt(name, other),
                "{name}: {one} and {other}"
            );
        }
    }

    #[test]
    fn what_may_mean_something_else_is_spelt_otherwise() {
        for (name, one, other) in [
            ("foo", "1, 2", "2, 1"),
            ("foo", "1", "1, 1"),
            ("foo", "\"a, b\"", "\"a,b\""),
            ("foo", "a b", "a  b"),
            ("cookie", "a=1, 2", "a=1,2"),
            ("accept-language", "de;q=0.5, en", "de, en;q=0.5"),
            ("accept-language", "de;q=0", "de"),
            ("accept-language", "de;q=2", "de"),
            ("accept-language", "de", "de-AT"),
            ("accept-encoding", "gzip;q=0", "gzip"),
        ] {
            assert_ne!(
                spelt(name, one),
                spelt(name, other),
                "{name}: {one} and {other}"
            );
        }
        assert_ne!(spelt("foo", ""), Vec::<u8>::new(), "an empty field is one");
    }

    #[test]
    fn a_weight_is_read_as_the_rfc_writes_it() {
        let table: [(&[u8], Option<u16>); 8] = [
            (b"1", Some(1000)),
            (b"0.5", Some(500)),
            (b"0.123", Some(123)),
            (b"0.", Some(0)),
            (b"1.001", None),
            (b"0.1234", None),
            (b"x", None),
            (b"", None),
        ];
        for (text, expected) in table {
            assert_eq!(thousandths(text), expected);
        }
    }

    #[test]
    fn any_number_of_languages_can_be_named() {
        let many = vec!["de"; LANGUAGES_MAX + 1].join(",");
        assert_eq!(
            spelt("accept-language", &many),
            format!("{many},").into_bytes()
        );
    }
}
