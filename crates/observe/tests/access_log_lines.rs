//! Lines of the access log: what they look like, that nobody can forge one, and that lines which a
//! rescue server hands over are read back, checked and marked.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use levee_observe::{
    AccessRecord, CacheResult, HandedOver, LogFormat, LogText, LogVersion, RequestClass,
    VisitorKind,
};

fn record() -> AccessRecord {
    AccessRecord {
        remote: "192.0.2.7".parse().unwrap(),
        at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_232_402_500),
        method: LogText::from("GET"),
        target: LogText::from("/post?x=1"),
        version: LogVersion::Http11,
        status: 302,
        bytes: 241,
        referer: LogText::from("https://social.example/"),
        user_agent: LogText::from("Mozilla/5.0 (X11)"),
        host: LogText::from("www.example.org"),
        cache: CacheResult::NotAsked,
        class: RequestClass::Redirect,
        visitor: VisitorKind::Reader,
        rescue_server: LogText::from("www-vh1.rescue.example"),
        wait: Duration::from_micros(120),
        total: Duration::from_micros(950),
        request_id: 0x2a,
    }
}

fn line(record: &AccessRecord, format: LogFormat) -> String {
    let mut out = Vec::new();
    record.render(format, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_combined_line_is_what_goaccess_and_fail2ban_expect() {
    assert_eq!(
        line(&record(), LogFormat::Combined),
        "192.0.2.7 - - [21/Nov/2026:03:40:02 +0000] \"GET /post?x=1 HTTP/1.1\" 302 241 \
         \"https://social.example/\" \"Mozilla/5.0 (X11)\"\n"
    );
}

#[test]
fn the_fetch_of_a_rescue_server_can_be_told_from_the_visit_that_it_is_for() {
    let mut fetch = record();
    fetch.class = RequestClass::Fetch;
    let combined = line(&fetch, LogFormat::Combined);
    assert!(combined.starts_with("192.0.2.7 fetch - ["), "{combined}");
    assert!(line(&fetch, LogFormat::Json).contains("\"class\":\"fetch\""));
}

#[test]
fn a_connection_closed_without_an_answer_has_a_status_that_log_readers_take() {
    let mut closed = record();
    closed.status = 0;
    assert!(line(&closed, LogFormat::Combined).contains("\" 499 241 "));
    assert!(line(&closed, LogFormat::Json).contains("\"status\":0,"));
}

#[test]
fn a_json_line_has_every_field() {
    assert_eq!(
        line(&record(), LogFormat::Json),
        "{\"time\":\"2026-11-21T03:40:02Z\",\"remote\":\"192.0.2.7\",\"method\":\"GET\",\
         \"target\":\"/post?x=1\",\"version\":\"HTTP/1.1\",\"status\":302,\"bytes\":241,\
         \"referer\":\"https://social.example/\",\"user_agent\":\"Mozilla/5.0 (X11)\",\
         \"host\":\"www.example.org\",\"cache\":\"-\",\"class\":\"redirect\",\
         \"visitor\":\"reader\",\"rescue_server\":\"www-vh1.rescue.example\",\"wait_us\":120,\"total_us\":950,\
         \"request_id\":\"000000000000002a\",\"at\":1795232402.5}\n"
    );
}

#[test]
fn no_visitor_can_forge_a_line() {
    let hostile: &[u8] =
        b"/\" 200 1 \"-\" \"-\"\n203.0.113.9 - - [\r\0\x1b[2J\xff\\\"\xe2\x80\xa8\x7f\xc2\x9b31m";
    let mut forged = record();
    forged.target = LogText::new(hostile);
    forged.user_agent = LogText::new(hostile);
    forged.referer = LogText::new(hostile);
    forged.host = LogText::new(hostile);
    forged.class = RequestClass::Rescue;
    forged.rescue_server = LogText::from("a b\"\nc");
    for format in [LogFormat::Combined, LogFormat::Json] {
        let text = line(&forged, format);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let printable = |c: char| !c.is_control() || c == '\n';
        assert!(text.chars().all(printable), "{text}");
    }
    let combined = line(&forged, LogFormat::Combined);
    let ident = combined.split(' ').nth(1).unwrap();
    assert_eq!(ident, "a_b\\\"\\x0ac");
    let back = HandedOver::parse(combined.as_bytes(), "r.example");
    assert_eq!(back.records[0].target.as_bytes(), hostile);
    assert_eq!(back.records[0].user_agent.as_bytes(), hostile);
}

#[test]
fn handed_over_lines_are_read_back_and_marked() {
    let mut body = Vec::new();
    let original = record();
    original.render(LogFormat::Json, &mut body);
    original.render(LogFormat::Combined, &mut body);
    let handed_over = HandedOver::parse(&body, "rescue.example");
    assert_eq!(handed_over.refused, 0);
    let mut expected = original;
    expected.class = RequestClass::Rescue;
    expected.rescue_server = LogText::from("rescue.example");
    assert_eq!(handed_over.records[0], expected);
    let known = |record: &AccessRecord| line(record, LogFormat::Combined);
    assert_eq!(known(&handed_over.records[1]), known(&expected));
    assert!(known(&expected).starts_with("192.0.2.7 rescue.example - ["));
}

#[test]
fn lines_that_are_not_log_lines_are_refused_one_by_one() {
    let good = line(&record(), LogFormat::Combined);
    let json = line(&record(), LogFormat::Json);
    let bad = [
        "GET / HTTP/1.1".to_owned(),
        "{}".to_owned(),
        "{\"time\":".to_owned(),
        json.replace("192.0.2.7", "nobody"),
        json.replace("\"status\":302", "\"status\":99999"),
        json.replace("\"status\":302", "\"status\":999"),
        json.replace("1795232402.5", "-1"),
        json.replace("1795232402.5", "1e300"),
        json.replace("\"GET\"", "\"G T\""),
        json.replace("HTTP/1.1", "HTTP/9.9"),
        good.replace("192.0.2.7", "192.0.2.777"),
        good.replace("302", "abc"),
        good.replace("21/Nov", "41/Nov"),
        good.replace("GET ", ""),
        good.replace("Mozilla", "\\xzz"),
        good.replace("(X11)\"", "(X11)\" more"),
        good.replace("(X11)\"", "(X11)\\"),
        good.replace("/post", &"a".repeat(70_000)),
    ];
    let mut body = good.clone().into_bytes();
    for line in &bad {
        body.extend_from_slice(line.trim_end().as_bytes());
        body.push(b'\n');
    }
    body.extend_from_slice(b"\xff\xfe not even text\n");
    body.extend_from_slice(good.as_bytes());
    let handed_over = HandedOver::parse(&body, "r");
    assert_eq!(handed_over.records.len(), 2);
    assert_eq!(handed_over.refused, bad.len() as u64 + 1);
}
