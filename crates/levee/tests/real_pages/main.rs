//! What `levee-page` finds in a page against what Chromium asks for when it shows it.
//!
//! One server has a dozen tricky pages and everything that they name; one page shows all others in
//! frames. Nothing that the browser asks for may be missing in what was found. What was found and
//! not asked for is named in each page, with the reason.
#![allow(clippy::unwrap_used)]

#[path = "../browser.rs"]
mod browser;
mod pages;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use browser::Look;
use levee_page::{Finder, Place};
use pages::{PAGES, Page};

/// A picture of one pixel, so that images are complete when they are shown.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\
\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Requests as `host target`, without the page that shows the others.
type Asked = Arc<Mutex<BTreeSet<String>>>;

struct Answer {
    content_type: String,
    link: &'static str,
    body: Vec<u8>,
}

/// The names of the site, all of them this machine.
fn own(port: u16) -> [String; 2] {
    ["www", "static"].map(|name| format!("http://{name}.localhost:{port}"))
}

/// A page with its own port filled in, and in the encoding that it is for.
fn body(page: &Page, port: u16) -> Vec<u8> {
    let text = page.html.replace("{port}", &port.to_string());
    if page.content_type.contains("8859") || text.contains("windows-1252") {
        return text
            .chars()
            .map(|char| u8::try_from(char).unwrap())
            .collect();
    }
    text.into_bytes()
}

fn answer(target: &str, port: u16) -> Answer {
    let path = target.split('?').next().unwrap();
    if let Some(page) = PAGES.iter().find(|page| page.path == path) {
        return Answer {
            content_type: page.content_type.to_owned(),
            link: page.link,
            body: body(page, port),
        };
    }
    let ending = path.rsplit('.').next().unwrap();
    let (content_type, body): (&str, &[u8]) = match ending {
        "css" => ("text/css", b""),
        "js" => ("text/javascript", b""),
        "html" => ("text/html", b"<!doctype html><title>x</title>"),
        "svg" => (
            "image/svg+xml",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        ),
        "json" | "vtt" | "woff" | "woff2" | "ttf" | "eot" => ("application/octet-stream", b""),
        _ => ("image/gif", PIXEL),
    };
    Answer {
        content_type: content_type.to_owned(),
        link: "",
        body: body.to_vec(),
    }
}

fn everything_in_frames() -> Answer {
    let shown = PAGES
        .iter()
        .filter(|page| page.content_type.contains("html"));
    let frames: String = shown
        .map(|page| format!("<iframe width=400 height=300 src={}></iframe>", page.path))
        .collect();
    Answer {
        content_type: "text/html".to_owned(),
        link: "",
        body: format!("<!doctype html><link rel=icon href='data:,'>{frames}").into_bytes(),
    }
}

fn serve_one(stream: TcpStream, port: u16, asked: &Asked) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let target = lines.first()?.split(' ').nth(1)?.to_owned();
        let host = lines.iter().find_map(|line| line.strip_prefix("Host: "))?;
        let answer = if target == "/" {
            everything_in_frames()
        } else {
            asked.lock().unwrap().insert(format!("{host} {target}"));
            answer(&target, port)
        };
        let mut head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            answer.content_type,
            answer.body.len()
        );
        if !answer.link.is_empty() {
            head.push_str(&format!("Link: {}\r\n", answer.link));
        }
        // Fonts and modules are asked for across origins.
        head.push_str("Access-Control-Allow-Origin: *\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&answer.body).ok()?;
    }
}

fn start() -> (u16, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, seen) = (stream.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || serve_one(stream, port, &seen));
        }
    });
    (port, asked)
}

/// What is found in a page, and in the sheets that it names.
fn found(page: &Page, port: u16) -> BTreeSet<String> {
    let own = own(port);
    let names: Vec<&str> = own.iter().map(String::as_str).collect();
    let mut waiting = vec![(
        own[0].clone() + page.path,
        page.content_type,
        page.link,
        body(page, port),
    )];
    let mut all = BTreeSet::new();
    while let Some((url, content_type, link, body)) = waiting.pop() {
        let mut finder = Finder::new(content_type, Place::new(&url, &names).unwrap()).unwrap();
        finder.link(link);
        body.chunks(100).for_each(|piece| finder.write(piece));
        for object in finder.finish().objects {
            let is_new = all.insert(format!("{} {}", object.authority, object.target));
            let sheet = PAGES.iter().find(|one| one.path == object.target);
            if let (true, Some(sheet)) = (is_new, sheet) {
                let url = format!("http://{}{}", object.authority, object.target);
                waiting.push((url, sheet.content_type, "", self::body(sheet, port)));
            }
        }
    }
    all
}

#[test]
fn whatever_a_browser_asks_for_was_found() {
    let (port, asked) = start();
    browser::dom(&format!("http://www.localhost:{port}/"), Look::Live);
    let asked = asked.lock().unwrap().clone();
    let mut wrong = Vec::new();
    for page in PAGES
        .iter()
        .filter(|page| page.content_type.contains("html"))
    {
        let folder = page.path.trim_end_matches(|char| char != '/');
        let own: BTreeSet<String> = asked
            .iter()
            .filter(|request| !request.starts_with("other."))
            .filter(|request| request.contains(&format!(" {folder}")))
            .filter(|request| !request.ends_with(page.path))
            .cloned()
            .collect();
        let found = found(page, port);
        let missing: Vec<_> = own.difference(&found).collect();
        let extra: Vec<_> = found
            .difference(&own)
            .map(|request| request.split_once(' ').unwrap().1)
            .collect();
        if !missing.is_empty() || extra != page.extra {
            wrong.push(format!(
                "{}: missing {missing:?}, extra {extra:?}",
                page.path
            ));
        }
        assert!(own.len() > 2, "{}: the browser shows it", page.path);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
