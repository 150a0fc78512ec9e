//! WebSocket and what else `Upgrade` may ask for, through to an application.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use tungstenite::Message;

use crate::support::{Setup, get, origin};

const HANDSHAKE: &str = "GET /live HTTP/1.1\r\nHost: site.example\r\nConnection: keep-alive, \
                         Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const CHANGED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                       Upgrade: websocket\r\n\r\n";

fn in_front_of(upstream: SocketAddr) -> Setup {
    Setup {
        upstream: Some(upstream),
        ..Setup::default()
    }
}

/// An application that says each message back, over WebSocket.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut socket = tungstenite::accept(stream.unwrap()).unwrap();
            while let Ok(message) = socket.read() {
                if (message.is_text() || message.is_binary()) && socket.send(message).is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// An application that changes the protocol whatever it is asked, and gives the connection to
/// `serve`.
fn bare(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let mut stream = reader.into_inner();
            if stream.write_all(CHANGED.as_bytes()).is_ok() {
                serve(stream);
            }
        }
    });
    address
}

#[test]
fn websocket_messages_of_any_size_pass_in_both_directions() {
    let running = in_front_of(echo()).start();
    let stream = TcpStream::connect(running.address).unwrap();
    let (mut socket, response) = tungstenite::client("ws://site.example/live", stream).unwrap();
    assert_eq!(response.status(), 101);
    for size in [1, 125, 126, 65_536, 3_000_000] {
        let message = Message::binary(vec![size as u8; size]);
        socket.send(message.clone()).unwrap();
        assert_eq!(socket.read().unwrap(), message);
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    // What went through the tunnel is the site's traffic.
    running.sample_until(|sample| sample.own_bytes > 3_000_000);
}

#[test]
fn a_refused_handshake_leaves_the_connection_as_it_was() {
    let upstream = origin(|head| {
        assert!(head.to_lowercase().contains("\r\nupgrade: websocket\r\n"));
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".into()
    });
    let running = in_front_of(upstream).start();
    let mut client = running.connect();
    client.send(HANDSHAKE);
    let response = client.receive();
    assert_eq!((response.status, response.text()), (403, "no"));
    client.send(HANDSHAKE);
    assert_eq!(client.receive().status, 403);
}

#[test]
fn only_websocket_is_asked_for_and_only_in_full() {
    let upstream = origin(|head| {
        let asks = head.to_lowercase().contains("upgrade");
        format!(
            "HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n",
            if asks { "500 Asked" } else { "204 No" }
        )
    });
    let running = in_front_of(upstream).start();
    for request in [
        HANDSHAKE.replace("websocket", "h2c"),
        HANDSHAKE.replace("Upgrade: websocket", "Upgrade: h2c, foo/2"),
        HANDSHAKE.replace("keep-alive, Upgrade", "keep-alive"),
        HANDSHAKE.replace("GET", "OPTIONS"),
        HANDSHAKE.replace("HTTP/1.1", "HTTP/1.0"),
    ] {
        assert_eq!(running.ask(&request).status, 204, "{request}");
    }
}

#[test]
fn a_protocol_that_was_not_asked_for_is_a_bad_answer() {
    let running = in_front_of(bare(drop)).start();
    assert_eq!(running.get("/").status, 502);
    let other = origin(|_| CHANGED.replace("websocket", "h2c"));
    let running = in_front_of(other).start();
    assert_eq!(running.ask(HANDSHAKE).status, 502);
}

#[test]
fn either_side_may_end_first() {
    // The application ends its side and still hears the visitor.
    let running = in_front_of(bare(|mut stream| {
        stream.write_all(b"all that I have").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"early and late");
    }))
    .start();
    let mut client = running.connect();
    client.send(format!("{HANDSHAKE}early "));
    assert_eq!(client.receive_head().status, 101);
    assert_eq!(client.rest(), b"all that I have");
    client.send("and late");
    client.stream().shutdown(Shutdown::Write).unwrap();

    // The visitor ends its side and still hears the application.
    let running = in_front_of(bare(|mut stream| {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
    }))
    .start();
    let mut client = running.connect();
    client.send(format!("{HANDSHAKE}question"));
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive_head().status, 101);
    assert_eq!(client.rest(), b"question");
}

#[test]
fn who_does_not_read_makes_the_other_side_wait() {
    let (sender, written) = std::sync::mpsc::channel();
    let running = in_front_of(bare(move |mut stream| {
        stream
            .set_write_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let piece = vec![7; 64 * 1024];
        let mut total = 0_usize;
        // 256 MiB would never fit into the buffers on the way.
        while total < 256 << 20 && stream.write_all(&piece).is_ok() {
            total += piece.len();
        }
        sender.send(total).unwrap();
    }))
    .start();
    let mut client = running.connect();
    client.send(HANDSHAKE);
    assert_eq!(client.receive_head().status, 101);
    let written = written.recv().unwrap();
    assert!(written < 64 << 20, "{written} bytes were taken in");
}

#[test]
fn a_tunnel_that_stands_still_is_closed() {
    let mut setup = in_front_of(bare(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    }));
    setup.settings.deadlines.tunnel_idle = Duration::from_millis(50);
    setup.settings.deadlines.progress = Duration::from_millis(20);
    let running = setup.start();
    let mut client = running.connect();
    client.send(HANDSHAKE);
    assert_eq!(client.receive_head().status, 101);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_handshake_is_never_redirected_and_never_answered_from_the_cache() {
    let upstream = origin(|head| {
        let length = head.to_lowercase().matches("upgrade").count();
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{}",
            "x".repeat(length)
        )
    });
    let mut setup = in_front_of(upstream);
    setup.plan = crate::support::redirecting("site-vh1.alias.example");
    let running = setup.start();
    assert_eq!(running.ask(&get("/live")).status, 302);
    running.publish(levee_control::RoutePlan::default());
    let filled = running.sample_until(|sample| sample.requests > 0);
    assert!(filled.requests > 0);
    assert_eq!(running.get("/live").text(), "");
    running.publish(crate::support::redirecting("site-vh1.alias.example"));
    assert_eq!(running.ask(HANDSHAKE).text(), "xx");
}
