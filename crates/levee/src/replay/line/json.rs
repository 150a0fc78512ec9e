//! One JSON object a line: our own access log, and the names that other servers use.
//!
//! Ours, Caddy's, and what people commonly write in nginx. Of several names for one thing the first
//! of the list counts; unknown fields are ignored.

use std::borrow::Cow;

use levee_control::Redirectability;
use serde::Deserialize;

use super::combined::target_of;
use super::{Flaw, LogLine, Moment, Said, moment, redirectability_of};

/// The fields that are looked at.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    at: Option<Value<'a>>,
    ts: Option<Value<'a>>,
    msec: Option<Value<'a>>,
    time: Option<Value<'a>>,
    timestamp: Option<Value<'a>>,
    #[serde(rename = "@timestamp")]
    at_timestamp: Option<Value<'a>>,
    time_iso8601: Option<Value<'a>>,
    time_local: Option<Value<'a>>,
    target: Option<Value<'a>>,
    uri: Option<Value<'a>>,
    request_uri: Option<Value<'a>>,
    url: Option<Value<'a>>,
    path: Option<Value<'a>>,
    request: Option<Request<'a>>,
    method: Option<Value<'a>>,
    request_method: Option<Value<'a>>,
    bytes: Option<Value<'a>>,
    size: Option<Value<'a>>,
    bytes_sent: Option<Value<'a>>,
    body_bytes_sent: Option<Value<'a>>,
    class: Option<Value<'a>>,
}

/// A number or a text; anything else says nothing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value<'a> {
    Number(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(serde::de::IgnoredAny),
}

/// A request line, or Caddy's object.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Request<'a> {
    Line(#[serde(borrow)] Cow<'a, str>),
    Parts {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        uri: Cow<'a, str>,
    },
    Other(serde::de::IgnoredAny),
}

pub(super) fn read(line: &[u8]) -> Result<Said<'_>, Flaw> {
    let text = std::str::from_utf8(line).map_err(|_| Flaw::NotText)?;
    let line: Line<'_> = serde_json::from_str(text).map_err(|_| Flaw::BadJson)?;
    let class = line.class.and_then(Value::text);
    // Whoever was redirected has his own line, which the rescue server handed over.
    if matches!(class.as_deref(), Some("fetch" | "redirect")) {
        return Ok(Said::LeftOut);
    }
    let times = [
        line.at,
        line.ts,
        line.msec,
        line.time,
        line.timestamp,
        line.at_timestamp,
        line.time_iso8601,
        line.time_local,
    ];
    let time = first(times).ok_or(Flaw::NoField("time"))?;
    let at = time.moment().ok_or(Flaw::BadTime)?;
    let sizes = [line.bytes, line.size, line.bytes_sent, line.body_bytes_sent];
    let bytes = first(sizes).and_then(|value| value.whole());
    let bytes = bytes.ok_or(Flaw::NoField("size"))?;
    let targets = [line.target, line.uri, line.request_uri, line.url, line.path];
    let target = first(targets).and_then(Value::text);
    let methods = [line.method, line.request_method];
    let method = first(methods).and_then(Value::text);
    let (target, redirectability) = wanted(target, method, line.request)?;
    Ok(Said::Visit(LogLine {
        at,
        target,
        bytes,
        redirectability,
    }))
}

fn wanted<'a>(
    target: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    request: Option<Request<'a>>,
) -> Result<(Cow<'a, str>, Redirectability), Flaw> {
    let of = |method: Option<Cow<'a, str>>| redirectability_of(method.as_deref().unwrap_or("GET"));
    match (target, request) {
        (Some(target), _) => Ok((target, of(method))),
        (None, Some(Request::Parts { method, uri })) => Ok((uri, of(method))),
        (None, Some(Request::Line(line))) => {
            let (target, redirectability) = target_of(line.as_bytes());
            Ok((Cow::Owned(target.into_owned()), redirectability))
        }
        (None, Some(Request::Other(_)) | None) => Err(Flaw::NoField("target")),
    }
}

fn first<'a>(values: impl IntoIterator<Item = Option<Value<'a>>>) -> Option<Value<'a>> {
    let known = |value: &Value<'_>| match value {
        Value::Number(_) | Value::Text(_) => true,
        Value::Other(_) => false,
    };
    values.into_iter().flatten().find(known)
}

impl<'a> Value<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Other(_) => None,
        }
    }

    fn moment(&self) -> Option<Moment> {
        match self {
            Self::Number(number) => moment::unix(*number),
            Self::Text(text) => moment::any(text),
            Self::Other(_) => None,
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Self::Number(number) if (0.0..9e15).contains(number) => Some(*number as u64),
            Self::Text(text) if text == "-" => Some(0),
            Self::Text(text) => text.parse().ok(),
            Self::Number(_) | Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::{Duration, SystemTime};

    use levee_observe::{
        AccessRecord, CacheResult, LogFormat, LogText, LogVersion, RequestClass, VisitorKind,
    };

    use super::*;
    use crate::replay::line::LineReader;

    fn record(class: RequestClass) -> AccessRecord {
        AccessRecord {
            remote: IpAddr::from([192, 0, 2, 7]),
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_232_402_250),
            method: LogText::from("GET"),
            target: LogText::from("/post?x=\"1"),
            version: LogVersion::Http11,
            status: 200,
            bytes: 1839,
            referer: LogText::EMPTY,
            user_agent: LogText::EMPTY,
            host: LogText::EMPTY,
            cache: CacheResult::NotAsked,
            class,
            visitor: VisitorKind::Reader,
            rescue_server: LogText::EMPTY,
            wait: Duration::ZERO,
            total: Duration::ZERO,
            request_id: 1,
        }
    }

    #[test]
    fn our_own_logs_are_read_back_in_both_formats() {
        for format in [LogFormat::Json, LogFormat::Combined] {
            let mut line = Vec::new();
            record(RequestClass::Page).render(format, &mut line);
            match LineReader::default().read(&line) {
                Ok(Said::Visit(read)) => {
                    assert_eq!(read.at.second, 1_795_232_402);
                    assert_eq!(read.bytes, 1839);
                    assert!(read.target.starts_with("/post?x="));
                }
                other => panic!("{other:?}"),
            }
            let mut line = Vec::new();
            record(RequestClass::Fetch).render(format, &mut line);
            assert_eq!(LineReader::default().read(&line), Ok(Said::LeftOut));
        }
        let mut line = Vec::new();
        record(RequestClass::Redirect).render(LogFormat::Json, &mut line);
        assert_eq!(LineReader::default().read(&line), Ok(Said::LeftOut));
    }

    #[test]
    fn other_servers_names_are_known() {
        for line in [
            r#"{"ts":1795232402.25,"request":{"method":"GET","uri":"/a","x":{}},"size":7,"status":200}"#,
            r#"{"time_iso8601":"2026-11-21T03:40:02+00:00","request":"GET /a HTTP/1.1","bytes_sent":"7","body_bytes_sent":"3"}"#,
            r#"{"time_local":"21/Nov/2026:03:40:02 +0000","request_uri":"/a","request_method":"GET","body_bytes_sent":7}"#,
            r#"{"@timestamp":"2026-11-21T03:40:02.5Z","path":"/a","bytes":7,"time":null,"at":[]}"#,
        ] {
            match LineReader::default().read(line.as_bytes()) {
                Ok(Said::Visit(read)) => {
                    assert_eq!(read.target, "/a");
                    assert_eq!((read.at.second, read.bytes), (1_795_232_402, 7));
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn broken_objects_say_what_is_wrong() {
        let cases: [(&[u8], Flaw); 6] = [
            (br#"{"at":1"#, Flaw::BadJson),
            (b"{\xff}", Flaw::NotText),
            (br#"{"bytes":1,"target":"/"}"#, Flaw::NoField("time")),
            (br#"{"at":"soon","bytes":1,"target":"/"}"#, Flaw::BadTime),
            (br#"{"at":1,"target":"/"}"#, Flaw::NoField("size")),
            (br#"{"at":1,"bytes":1}"#, Flaw::NoField("target")),
        ];
        for (line, flaw) in cases {
            assert_eq!(LineReader::default().read(line), Err(flaw));
        }
    }
}
