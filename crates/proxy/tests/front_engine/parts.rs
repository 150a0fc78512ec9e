//! Parts of objects, and conditions, wherever the object comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Response, Running, Setup, get, origin};

const BOUNDARY: &str = "multipart/byteranges; boundary=";

fn ask(running: &Running, path: &str, lines: &str) -> Response {
    running.ask(&format!(
        "GET {path} HTTP/1.1\r\nHost: site.example\r\n{lines}\r\n"
    ))
}

/// Checks the framing of a response of several parts, and gives the parts.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    assert_eq!(response.status, 206, "{response:?}");
    let content_type = response.header("content-type");
    let boundary = content_type.strip_prefix(BOUNDARY).unwrap();
    assert_eq!(response.header("content-range"), "");
    let find = |bytes: &[u8], text: &str| {
        let mut windows = bytes.windows(text.len());
        windows.position(|window| window == text.as_bytes())
    };
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = &response.body[..];
    let mut parts = Vec::new();
    loop {
        assert!(rest.starts_with(delimiter.as_bytes()));
        rest = &rest[delimiter.len()..];
        if rest == b"--\r\n" {
            return parts;
        }
        let head = find(rest, "\r\n\r\n").unwrap();
        let end = find(&rest[head + 4..], &delimiter).unwrap() + head + 4;
        let lines = String::from_utf8(rest[..head].to_vec()).unwrap();
        parts.push((lines.to_lowercase(), rest[head + 4..end].to_vec()));
        rest = &rest[end..];
    }
}

fn digits(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'0' + (at / 7 % 10) as u8).collect()
}

#[test]
fn several_parts_of_a_file_come_in_one_response() {
    let running = Setup::default().start();
    // One from memory, one by the kernel.
    for size in [10_000, 3_000_000] {
        let bytes = digits(size);
        running.write(&format!("{size}.txt"), &bytes);
        let mut client = running.connect();
        let request = format!(
            "GET /{size}.txt HTTP/1.1\r\nHost: site.example\r\nRange: bytes=-3, 5000-5009,0-0\r\n\r\n\
             {}",
            crate::support::get("/absent")
        );
        client.send(request);
        let parts = parts(&client.receive());
        let expected = [0..1, 5000..5010, size - 3..size];
        assert_eq!(parts.len(), 3);
        for ((head, body), range) in parts.iter().zip(expected) {
            assert!(head.contains("content-type: text/plain"), "{head}");
            let (first, last) = (range.start, range.end - 1);
            let line = format!("content-range: bytes {first}-{last}/{size}");
            assert!(head.contains(&line), "{head}");
            assert_eq!(body, &bytes[range]);
        }
        // The length was right: the next response begins where it should.
        assert_eq!(client.receive().status, 404);
    }
}

#[test]
fn a_flood_of_ranges_costs_no_more_than_the_file() {
    let running = Setup::default().start();
    running.write("file.txt", digits(100_000));
    let ranges: Vec<String> = (0..800).map(|at| format!("{at}-")).collect();
    let response = ask(
        &running,
        "/file.txt",
        &format!("Range: bytes={}\r\n", ranges.join(",")),
    );
    assert_eq!((response.status, response.body.len()), (200, 100_000));
}

#[test]
fn a_file_that_changed_is_refused_where_the_visitor_says_so() {
    let running = Setup::default().start();
    running.write("a", "aaa");
    let etag = running.get("/a").header("etag").to_owned();
    assert_eq!(
        ask(&running, "/a", &format!("If-Match: {etag}\r\n")).status,
        200
    );
    assert_eq!(ask(&running, "/a", "If-Match: \"b\"\r\n").status, 412);
    let long_ago = "If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n";
    assert_eq!(ask(&running, "/a", long_ago).status, 412);
}

/// An application with one page of 10,000 bytes, and how often it was asked.
fn page(lines: &'static str) -> (Running, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let upstream = origin(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let body = String::from_utf8(digits(10_000)).unwrap();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nContent-Type: text/plain\r\n\
             Date: Sat, 21 Nov 2026 10:00:00 GMT\r\nETag: \"v1\"\r\n\
             Last-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n{lines}Connection: close\r\n\r\n{body}"
        )
    });
    let setup = Setup {
        upstream: Some(upstream),
        ..Setup::default()
    };
    (setup.start(), asked)
}

#[test]
fn a_first_visitor_gets_the_part_that_he_wants_and_the_cache_the_whole() {
    let (running, asked) = page("Cache-Control: max-age=60\r\n");
    let bytes = digits(10_000);
    let part = ask(&running, "/", "Range: bytes=100-199\r\n");
    assert_eq!(part.status, 206);
    assert_eq!(part.header("content-range"), "bytes 100-199/10000");
    assert_eq!(part.body, &bytes[100..200]);
    assert_eq!(running.ask_until_kept(&get("/")).body, bytes);
    let two = ask(&running, "/", "Range: bytes=0-0,9999-\r\n");
    let bodies: Vec<Vec<u8>> = parts(&two).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [&bytes[..1], &bytes[9999..]]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn conditions_hold_for_a_first_visitor_as_for_all_others() {
    for lines in [
        "If-None-Match: \"v1\"\r\n",
        "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT\r\n",
    ] {
        let (running, _) = page("Cache-Control: max-age=60\r\n");
        let mut client = running.connect();
        for _ in ["a miss", "a hit"] {
            client.send(format!(
                "GET / HTTP/1.1\r\nHost: site.example\r\n{lines}\r\n"
            ));
            let response = client.receive();
            assert_eq!((response.status, response.header("etag")), (304, "\"v1\""));
        }
    }
    let first = |lines| {
        let (running, _) = page("Cache-Control: max-age=60\r\n");
        ask(&running, "/", lines)
    };
    let beyond = first("Range: bytes=10000-\r\n");
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, "bytes */10000")
    );
    let by_tag = first("Range: bytes=0-9\r\nIf-Range: \"v1\"\r\n");
    assert_eq!((by_tag.status, by_tag.body.len()), (206, 10));
    let by_date = "Range: bytes=0-9\r\nIf-Range: Sat, 21 Nov 2026 00:00:00 GMT\r\n";
    assert_eq!(first(by_date).status, 206);
    let other = first("Range: bytes=0-9\r\nIf-Range: \"v2\"\r\n");
    assert_eq!((other.status, other.body.len()), (200, 10_000));
    // Several parts of what nobody has yet: the whole.
    assert_eq!(first("Range: bytes=0-0,9999-\r\n").status, 200);
}
