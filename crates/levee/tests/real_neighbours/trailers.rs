//! What comes behind bodies and before heads, as curl and nghttp show it and nginx sends it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use crate::stage::{Levee, PATIENCE, Stage, curl, free_port, text_of};

/// What curl is told, and what it then shows of trailers.
fn visit(levee: &Levee, arguments: &[&str]) -> String {
    let url = format!("http://127.0.0.1:{}/", levee.http_port());
    let host = ["--include", "--header", "Host: site.example", &url];
    curl(&[arguments, &host[..]].concat())
}

#[test]
fn trailers_of_nginx_reach_curl_and_nghttp() {
    let stage = Stage::new();
    let _nginx = stage.nginx(
        "",
        "add_header Cache-Control no-store; add_trailer X-Sum five; add_trailer Set-Cookie a=b;\n\
         location / { return 200 hello; }",
    );
    let upstream = stage.unix("nginx.sock");
    let levee = stage.levee(&format!(
        "listen = [\"127.0.0.1:0\"]\nupstream = \"{upstream}\"\n"
    ));
    let te = ["--header", "TE: trailers", "--header", "Connection: TE"];
    let by_1 = visit(&levee, &[&te[..], &["--raw"]].concat());
    assert!(
        by_1.ends_with("\r\nhello\r\n0\r\nx-sum: five\r\n\r\n"),
        "{by_1}"
    );
    let unasked = visit(&levee, &["--raw"]);
    assert!(unasked.ends_with("\r\nhello\r\n0\r\n\r\n"), "{unasked}");
    let by_2 = visit(&levee, &["--http2-prior-knowledge"]);
    assert!(by_2.ends_with("hellox-sum: five\r\n"), "{by_2}");
    assert!(!by_2.contains("a=b"), "{by_2}");
    let url = format!("http://127.0.0.1:{}/", levee.http_port());
    let mut nghttp = Command::new("nghttp");
    nghttp.args(["-nv", "-H:authority: site.example", &url]);
    let shown = text_of(nghttp.output().unwrap());
    let (_, behind) = shown.split_once("recv DATA frame").unwrap();
    assert!(behind.contains("x-sum: five"), "{shown}");
}

/// An application that gives early hints, and tells what it heard.
fn application() -> (u16, Receiver<String>) {
    let (listener, port) = free_port();
    let (heard, hears) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = heard.send(answer(stream.unwrap()));
        }
    });
    (port, hears)
}

fn answer(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut read_to = |end: &str| {
        let mut text = String::new();
        while !text.ends_with(end) && reader.read_line(&mut text).unwrap() > 0 {}
        text.to_lowercase()
    };
    let mut text = read_to("\r\n\r\n");
    stream.write_all(hints.as_bytes()).unwrap();
    if text.contains("transfer-encoding: chunked") {
        text += &read_to("\r\n0\r\n");
        text += &read_to("\r\n\r\n");
    }
    stream.write_all(response.as_bytes()).unwrap();
    text
}

#[test]
fn early_hints_and_trailers_of_requests_pass_by_http_2() {
    let (port, hears) = application();
    let stage = Stage::new();
    let levee = stage.levee(&format!(
        "listen = [\"127.0.0.1:0\"]\nupstream = \"http://127.0.0.1:{port}\"\n"
    ));
    let shown = visit(&levee, &["--http2-prior-knowledge"]);
    assert!(
        shown.starts_with("HTTP/2 103 \r\nlink: </a.css>"),
        "{shown}"
    );
    assert!(shown.contains("\r\nHTTP/2 200 \r\n"), "{shown}");
    hears.recv_timeout(PATIENCE).unwrap();
    let url = format!("http://127.0.0.1:{}/", levee.http_port());
    let body = stage.write("body", "sent");
    let output = Command::new("nghttp")
        .args(["-nv", "-H:authority: site.example", "-Htrailer: x-sum"])
        .args(["--trailer=x-sum: four", "--no-content-length", "-d"])
        .arg(body)
        .arg(&url)
        .output();
    let shown = text_of(output.unwrap());
    assert!(shown.contains(":status: 103"), "{shown}");
    let heard = hears.recv_timeout(PATIENCE).unwrap();
    assert!(
        heard.ends_with("\r\n4\r\nsent\r\n0\r\nx-sum: four\r\n\r\n"),
        "{heard}"
    );
}
