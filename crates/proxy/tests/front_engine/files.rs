//! A folder as web pages.

use std::time::Instant;

use crate::support::{PATIENCE, Setup, get};

#[test]
fn files_come_with_types_validators_and_parts() {
    let running = Setup::default().start();
    running.write("index.html", "<p>index");
    running.write("d/index.html", "inner");
    let response = running.get("/");
    assert_eq!(response.text(), "<p>index");
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(running.get("/d/").text(), "inner");
    assert_eq!(running.get("/d?x=y").header("location"), "/d/?x=y");
    assert_eq!(running.get("//d").header("location"), "/d/");
    let conditional = |line: String| {
        let request = format!("GET / HTTP/1.1\r\nHost: site.example\r\n{line}\r\n\r\n");
        running.ask(&request)
    };
    let same = conditional(format!("If-None-Match: {}", response.header("etag")));
    assert_eq!(
        (same.status, same.header("etag")),
        (304, response.header("etag"))
    );
    let since = format!("If-Modified-Since: {}", response.header("last-modified"));
    assert_eq!(conditional(since).status, 304);
    assert_eq!(conditional("If-None-Match: \"other\"".into()).status, 200);
    let part = conditional("Range: bytes=1-2".into());
    assert_eq!((part.status, part.text()), (206, "p>"));
    assert_eq!(part.header("content-range"), "bytes 1-2/8");
    let none = conditional("Range: bytes=8-".into());
    assert_eq!(
        (none.status, none.header("content-range")),
        (416, "bytes */8")
    );
}

#[test]
fn big_files_come_whole_and_in_parts() {
    let running = Setup::default().start();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    running.write("big", &bytes);
    let mut client = running.connect();
    client.send(get("/big"));
    assert!(client.receive().body == bytes);
    client.send("GET /big HTTP/1.1\r\nHost: site.example\r\nRange: bytes=-1000\r\n\r\n");
    assert!(client.receive().body == bytes[2_999_000..]);
    client.send("HEAD /big HTTP/1.1\r\nHost: site.example\r\n\r\n");
    assert_eq!(client.receive_head().header("content-length"), "3000000");
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let running = Setup::default().start();
    running.write("a", "aa");
    running.write(".secret", "s");
    std::os::unix::fs::symlink("/etc/passwd", running.path("link")).unwrap();
    for target in [
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/d/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/link",
        "/.secret",
        "/a/",
        "/a%00",
    ] {
        assert_eq!(running.get(target).status, 404, "{target}");
    }
}

#[test]
fn a_text_is_compressed_for_those_who_take_it_and_comes_plain_until_then() {
    let running = Setup::default().start();
    let text = "<p>the same paragraph again and again</p>\n".repeat(500);
    running.write("page.html", &text);
    let ask = |accept: &str, more: &str| {
        let head = "GET /page.html HTTP/1.1\r\nHost: site.example\r\n";
        running.ask(&format!("{head}Accept-Encoding: {accept}\r\n{more}\r\n"))
    };
    for coding in ["gzip", "zstd", "br"] {
        let end = Instant::now() + PATIENCE;
        let coded = loop {
            let response = ask(coding, "");
            assert_eq!(response.header("vary"), "Accept-Encoding");
            if response.header("content-encoding") == coding {
                break response;
            }
            assert_eq!(response.text(), text);
            assert!(Instant::now() < end, "never compressed: {coding}");
        };
        assert!(coded.body.len() < text.len() / 10);
        let tag = format!("If-None-Match: {}\r\n", coded.header("etag"));
        let same = ask(coding, &tag);
        assert_eq!((same.status, same.header("vary")), (304, "Accept-Encoding"));
        let other = ask("identity", &tag);
        assert_eq!((other.status, other.text()), (200, text.as_str()));
        let first = ask(coding, "Range: bytes=0-9\r\n");
        assert_eq!(
            (first.status, first.header("content-encoding")),
            (206, coding)
        );
        assert_eq!(first.body, coded.body[..10]);
    }
}
