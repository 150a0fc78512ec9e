//! The small words of header fields: lists, numbers, dates, tokens.

use std::time::{Duration, SystemTime};

/// What a time too long to be meant is taken for (RFC 9111 section 1.2.2).
pub(super) const FOREVER: Duration = Duration::from_secs(1 << 31);

/// The members of a comma-separated list, without empty ones.
pub(super) fn split_outside_quotes(list: &[u8]) -> Vec<&[u8]> {
    members(list).collect()
}

/// As [`split_outside_quotes`], allocating nothing.
pub(super) fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(list, b',')
}

/// The parts of a text between the separators that are not quoted, without empty ones.
pub(super) fn split_at(text: &[u8], separator: u8) -> Vec<&[u8]> {
    parts(text, separator).collect()
}

/// A quoted text begins after `=` and ends a member, or it is none: whoever slips a quotation mark
/// into a list must not make what follows it disappear.
fn parts(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        while at < text.len() && text[at] != separator {
            let opens = text[at] == b'"' && at > 0 && text[at - 1] == b'=';
            let quoted = opens.then(|| quoted_length(&text[at..])).flatten();
            at += quoted.unwrap_or(1);
        }
        rest = text.get(at + 1..);
        Some(text[..at].trim_ascii())
    })
    .filter(|part| !part.is_empty())
}

/// Length of the quoted text with its marks at the start of `text`; none where it is none.
fn quoted_length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let rest = text[at + 1..].trim_ascii_start().first();
                return matches!(rest, None | Some(b',' | b';')).then_some(at + 1);
            }
            _ => {}
        }
    }
    None
}

/// What stands between quotes; none where there are no two of them.
pub(super) fn unquoted(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// A delta-seconds; too large a number is taken for [`FOREVER`].
pub(super) fn seconds(digits: &[u8]) -> Option<Duration> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_u64, |number, digit| {
        (number * 10 + u64::from(digit - b'0')).min(FOREVER.as_secs())
    });
    Some(Duration::from_secs(number))
}

/// An HTTP date in any of its three forms (RFC 9110 section 5.6.7).
pub(super) fn date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?.trim()).ok()
}

/// Whether these bytes can be the name of a field (RFC 9110 section 5.6.2).
pub(super) fn is_token(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_part)
}
