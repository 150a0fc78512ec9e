//! The PROXY protocol: HAProxy introduces visitors to us, and we introduce them to HAProxy and
//! nginx. Visitors come from an address of their own.

use crate::stage::{Levee, Running, Stage, certify, curl, free_port};

/// Another address of this machine, by which a visitor is told from the proxies.
const VISITOR: &str = "127.0.0.9";

/// A levee that expects to be introduced, in the clear, in TLS and at a socket.
fn levee(stage: &Stage) -> Levee {
    certify(&stage.path(""));
    stage.levee(&format!(
        "listen = [\"127.0.0.1:0\", \"{unix}\"]\nupstream = \"{nginx}\"\n\
         proxy_protocol = [\"127.0.0.1:0\", \"{unix}\"]\ntrusted_proxies = [\"127.0.0.1\"]\n\n\
         [tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"site.pem\"\nkey = \"site.key\"\n",
        unix = stage.unix("levee.sock"),
        nginx = stage.unix("nginx.sock"),
    ))
}

/// A HAProxy at a port of its own that passes connections on to `to`; and the port.
fn haproxy(stage: &Stage, to: &str, how: &str) -> (Running, u16) {
    let (listener, port) = free_port();
    let sections = format!("listen all\n  mode tcp\n  bind fd@3\n  server levee {to} {how}");
    (stage.haproxy(&sections, Some(listener)), port)
}

fn visit(port: u16, scheme: &str) -> String {
    let url = format!("{scheme}://site.example:{port}/");
    let resolve = format!("site.example:{port}:127.0.0.1");
    curl(&[
        "--insecure",
        "--interface",
        VISITOR,
        "--resolve",
        &resolve,
        &url,
    ])
}

#[test]
fn haproxy_introduces_visitors_in_the_clear_in_tls_and_at_a_socket() {
    let stage = Stage::new();
    let _nginx = stage.nginx_that_tells();
    let levee = levee(&stage);
    let http = format!("127.0.0.1:{}", levee.http_port());
    let https = format!("127.0.0.1:{}", levee.https_port());
    let unix = format!("unix@{}", stage.path("levee.sock").display());
    for how in ["send-proxy", "send-proxy-v2"] {
        for (to, scheme) in [(&http, "http"), (&https, "https"), (&unix, "http")] {
            let (_haproxy, port) = haproxy(&stage, to, how);
            let told = visit(port, scheme);
            assert_eq!(told, format!("{VISITOR} by {scheme}"), "{to} {how}");
        }
    }
    // Whoever is not introduced gets nothing, by TLS neither.
    for (port, scheme) in [(levee.http_port(), "http"), (levee.https_port(), "https")] {
        let told = visit(port, scheme);
        assert!(told.starts_with("curl: "), "{told}");
    }
}

fn introducing(stage: &Stage, version: &str, upstream: &str) -> String {
    let levee = stage.levee(&format!(
        "listen = [\"127.0.0.1:0\"]\nupstream = \"{upstream}\"\n\n\
         [upstream]\nproxy_protocol = \"{version}\"\n"
    ));
    visit(levee.http_port(), "http")
}

#[test]
fn nginx_hears_from_us_who_the_visitor_is() {
    let stage = Stage::new();
    let server = "location / { return 200 $proxy_protocol_addr; }";
    let _nginx = stage.nginx("proxy_protocol", server);
    for version in ["v1", "v2"] {
        let told = introducing(&stage, version, &stage.unix("nginx.sock"));
        assert_eq!(told, VISITOR, "{version}");
    }
}

#[test]
fn haproxy_hears_from_us_who_the_visitor_is() {
    let stage = Stage::new();
    let path = stage.path("haproxy.sock");
    let sections = format!(
        "frontend all\n  mode http\n  bind unix@{} accept-proxy\n\
         http-request return status 200 content-type text/plain lf-string %[src]",
        path.display()
    );
    let _haproxy = stage.haproxy(&sections, None);
    stage.wait_for("haproxy.sock");
    for version in ["v1", "v2"] {
        let told = introducing(&stage, version, &stage.unix("haproxy.sock"));
        assert_eq!(told, VISITOR, "{version}");
    }
}
