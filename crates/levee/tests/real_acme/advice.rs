//! An authority that says when it wants certificates renewed. Debian's pebble does not yet, so an
//! nginx before it says it in its place.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::pebble::{Looks, Place};
use crate::ports::free_address;
use crate::site::Site;

/// nginx, ended with the test.
struct Adviser {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Adviser {
    /// Passes everything on to the authority at `place`, but for what it says of renewals: all
    /// should have been renewed long ago.
    fn start(place: &Place) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_address().port());
        let url = format!("https://localhost:{port}");
        let directory = format!(
            "{{\"newNonce\":\"{url}/nonce-plz\",\"newAccount\":\"{url}/sign-me-up\",\
             \"newOrder\":\"{url}/order-plz\",\"revokeCert\":\"{url}/revoke-cert\",\
             \"keyChange\":\"{url}/rollover-account-key\",\"renewalInfo\":\"{url}/advice\"}}"
        );
        let advice = "{\"suggestedWindow\":{\"start\":\"2020-01-01T00:00:00Z\",\
                      \"end\":\"2020-01-02T00:00:00Z\"}}";
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log;\n\
             events {{}}\n\
             http {{ log_format asked escape=none '$request_uri $request_body';\n\
             access_log asked.log asked; default_type application/json;\n\
             client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c;\n\
             uwsgi_temp_path d; scgi_temp_path e;\n\
             server {{ listen 127.0.0.1:{port} ssl;\n\
             ssl_certificate {certificate}; ssl_certificate_key {key};\n\
             location = /dir {{ return 200 '{directory}'; }}\n\
             location /advice/ {{ add_header Retry-After 3600; return 200 '{advice}'; }}\n\
             location / {{ proxy_pass https://127.0.0.1:{authority};\n\
             proxy_set_header Host $http_host; }} }} }}\n",
            certificate = place.path("ca.pem").display(),
            key = place.path("ca.key").display(),
            authority = place.port(),
        );
        std::fs::write(folder.path().join("nginx.conf"), text).unwrap();
        let process = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Self {
            process,
            folder,
            port,
        }
    }

    /// What was asked for by this path, each with what was sent.
    fn asked(&self, path: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("asked.log")).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(path));
        lines.map(str::to_owned).collect()
    }
}

impl Drop for Adviser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What stands in a signed request.
fn payload(request: &str) -> String {
    let part = request.split("\"payload\":\"").nth(1).expect(request);
    let part = part.split('"').next().unwrap();
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[test]
fn a_certificate_is_renewed_when_its_authority_wants_it_and_four_times_a_day_at_most() {
    let place = Place::new();
    let adviser = Adviser::start(&place);
    let site = Site::new(&place, "challenge = \"http-01\"\n");
    let path = site.path("levee.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let (direct, advised) = (place.port(), adviser.port);
    let text = text.replace(&format!(":{direct}/dir"), &format!(":{advised}/dir"));
    std::fs::write(path, text).unwrap();
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        ..Looks::default()
    });
    let status = levee.wait_for_status("{\"result\":\"issued\",\"count\":2}");
    assert!(status.contains("\"problem\":\"\""), "{status}");
    let orders = adviser.asked("/order-plz");
    // Pebble does not say that it heard what is replaced, so that order is placed again without.
    let [first, second, third] = &orders[..] else {
        panic!("three orders were to be placed: {orders:?}");
    };
    assert!(!payload(third).contains("replaces"), "{third}");
    assert!(!payload(first).contains("replaces"), "{first}");
    let asked = adviser.asked("/advice/");
    let replaced = asked[0].trim().trim_start_matches("/advice/");
    let told = format!("\"replaces\":\"{}\"", replaced.trim_end_matches(" -"));
    assert!(
        payload(second).contains(&told),
        "{told} {}",
        payload(second)
    );
    // It wants yet another one, and gets it in six hours.
    let due = || {
        let status: serde_json::Value = serde_json::from_str(&levee.status()).unwrap();
        let next = status["certificates"][0]["next_attempt"].as_f64();
        next.unwrap_or_default() - status["now"].as_f64().unwrap()
    };
    while adviser.asked("/advice/").len() < 2 || !(21_000.0..=21_601.0).contains(&due()) {
        assert!(adviser.asked("/order-plz").len() == 3, "another order");
        std::thread::yield_now();
    }
}
