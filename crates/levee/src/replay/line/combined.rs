//! The combined format, and the common one that it grew from.
//!
//! `remote ident user [time] "request" status bytes ...`: what stands before the time and behind
//! the bytes may be anything, so virtual host logs and logs with more fields are read too.

use std::borrow::Cow;

use levee_control::Redirectability;

use super::moment::Clock;
use super::{Flaw, LogLine, Moment, Said, redirectability_of};

pub(super) fn read<'a>(line: &'a [u8], clock: &mut Clock) -> Result<Said<'a>, Flaw> {
    let (before, rest) = split(line, b" [").ok_or(Flaw::NoTime)?;
    let (time, rest) = split(rest, b"] ").ok_or(Flaw::NoTime)?;
    let second = clock.read(time).ok_or(Flaw::BadTime)?;
    let (request, rest) = quoted(rest).ok_or(Flaw::NoRequest)?;
    let mut words = rest.split(|&byte| byte == b' ');
    words.next();
    let (status, bytes) = (words.next(), words.next());
    let status = status.and_then(number).ok_or(Flaw::NoSize)?;
    if !(100..=999).contains(&status) {
        return Err(Flaw::NoSize);
    }
    let bytes = match bytes.ok_or(Flaw::NoSize)?.trim_ascii_end() {
        b"-" => 0,
        digits => number(digits).ok_or(Flaw::NoSize)?,
    };
    // Our own logs mark what rescue servers fetched.
    if before.split(|&byte| byte == b' ').nth(1) == Some(b"fetch") {
        return Ok(Said::LeftOut);
    }
    let (target, redirectability) = target_of(request);
    Ok(Said::Visit(LogLine {
        at: Moment {
            second,
            fraction: None,
        },
        target,
        bytes,
        redirectability,
    }))
}

/// `GET /path HTTP/1.1`. Anything else is an attempt at something, and costs its bytes too.
pub(super) fn target_of(request: &[u8]) -> (Cow<'_, str>, Redirectability) {
    let text = String::from_utf8_lossy(request);
    let mut words = request.split(|&byte| byte == b' ');
    match (words.next(), words.next()) {
        (Some(method), Some(target)) if !target.is_empty() => {
            let method = String::from_utf8_lossy(method);
            let target = String::from_utf8_lossy(target);
            (target, redirectability_of(&method))
        }
        (Some(_) | None, Some(_) | None) => (text, Redirectability::Never),
    }
}

/// The text in quotes at the start, as it stands, and what comes behind it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        match inside.get(at)? {
            b'"' => return Some((&inside[..at], &inside[at + 1..])),
            b'\\' => at += 2,
            _other => at += 1,
        }
    }
}

fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len()).position(|window| window == mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = is_number
        .then(|| std::str::from_utf8(digits).ok())
        .flatten();
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::line::LineReader;

    fn visit(line: &str) -> LogLine<'_> {
        match LineReader::default().read(line.as_bytes()) {
            Ok(Said::Visit(line)) => line,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_of_many_servers_are_read() {
        for line in [
            // NCSA, the NASA log of 1995.
            r#"in24.inetnebr.com - - [21/Nov/2026:03:40:02 +0000] "GET /a.txt HTTP/1.0" 200 1839"#,
            // Apache and nginx.
            r#"192.0.2.7 - - [21/Nov/2026:03:40:02 +0000] "GET /a.txt HTTP/1.1" 200 1839 "-" "x""#,
            // With a name that holds a space, and with more fields.
            r#"2001:db8::1 - A B [20/Nov/2026:20:40:02 -0700] "GET /a.txt" 200 1839 "-" "x" 1 2"#,
            // With the virtual host in front.
            r#"a.example:80 192.0.2.7 - - [21/Nov/2026:03:40:02 +0000] "GET /a.txt HTTP/2.0" 200 1839"#,
        ] {
            let line = visit(line);
            assert_eq!(line.target, "/a.txt");
            assert_eq!(line.bytes, 1839);
            assert_eq!(line.at.second, 1_795_232_402);
            assert_eq!(line.redirectability, Redirectability::Allowed);
        }
    }

    #[test]
    fn odd_requests_cost_their_bytes_and_are_never_redirected() {
        let at = r#"192.0.2.7 - - [21/Nov/2026:03:40:02 +0000]"#;
        for request in [
            r"\x16\x03\x01",
            "-",
            "",
            "POST /form HTTP/1.1",
            r#"a \" b c"#,
        ] {
            let text = format!("{at} \"{request}\" 400 -");
            let line = visit(&text);
            assert_eq!(line.redirectability, Redirectability::Never, "{request}");
            assert_eq!(line.bytes, 0);
        }
    }

    #[test]
    fn broken_lines_say_what_is_wrong() {
        let cases = [
            ("", Flaw::NoTime),
            ("hello world", Flaw::NoTime),
            ("a - - [21/Nov/2026:03:40:02 +0000]", Flaw::NoTime),
            (r#"a - - [soon] "GET / HTTP/1.1" 200 1"#, Flaw::BadTime),
            (
                "a - - [21/Nov/2026:03:40:02 +0000] GET / 200 1",
                Flaw::NoRequest,
            ),
            (
                r#"a - - [21/Nov/2026:03:40:02 +0000] "GET / 200 1"#,
                Flaw::NoRequest,
            ),
            (
                r#"a - - [21/Nov/2026:03:40:02 +0000] "GET \"#,
                Flaw::NoRequest,
            ),
            (
                r#"a - - [21/Nov/2026:03:40:02 +0000] "GET /" 200"#,
                Flaw::NoSize,
            ),
            (
                r#"a - - [21/Nov/2026:03:40:02 +0000] "GET /" 20 1"#,
                Flaw::NoSize,
            ),
            (
                r#"a - - [21/Nov/2026:03:40:02 +0000] "GET /" 200 -1"#,
                Flaw::NoSize,
            ),
        ];
        for (line, flaw) in cases {
            let read = LineReader::default().read(line.as_bytes());
            assert_eq!(read, Err(flaw), "{line}");
        }
    }

    #[test]
    fn what_a_rescue_server_fetched_does_not_count() {
        let line = r#"192.0.2.7 fetch - [21/Nov/2026:03:40:02 +0000] "GET /a HTTP/1.1" 200 9"#;
        let read = LineReader::default().read(line.as_bytes());
        assert_eq!(read, Ok(Said::LeftOut));
    }
}
