//! The outbound link as it is measured, where nobody said how fast it is: a link that is full, and
//! visitors who only look like one.

use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use levee_lab::processes::{Process, levee_beside};
use serde_json::Value;
use tempfile::TempDir;

use crate::far_network::FarNetwork;
use crate::http;
use crate::own_world::{is_inside, run};
use crate::stage::until;

/// What the narrow link below carries, headers and all: 10 Mbit/s.
const NARROW: f64 = 1_250_000.0;
/// Connections that the server may hold, and the slow readers who want them.
const ROOM: u64 = 200;
const READERS: &str = "400";
/// Pages that an ordinary visitor gets beside them, one after the other.
const PAGES: usize = 300;

/// A site that was told nothing of its link.
struct Site {
    process: Process,
    _folder: TempDir,
}

impl Site {
    fn start(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().join("public");
        std::fs::create_dir(&public).unwrap();
        std::fs::write(public.join("page"), vec![b'p'; 20_000]).unwrap();
        std::fs::write(public.join("film"), vec![b'f'; 50_000_000]).unwrap();
        let settings = folder.path().join("levee.toml");
        let text = format!(
            "[site]\nname = \"news.localhost\"\nlisten = [\"{address}:0\"]\nfolder = \"public\"\n\
             cores = 1\n[limits]\nconnections = {ROOM}\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        std::fs::write(&settings, text).unwrap();
        let arguments = ["serve", "--config", settings.to_str().unwrap()];
        let levee = levee_beside().unwrap();
        let process = Process::start("news", &levee, &arguments, folder.path()).unwrap();
        Self {
            process,
            _folder: folder,
        }
    }

    fn port(&self) -> u16 {
        let told = self.process.ready().site.clone().unwrap();
        told.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    fn ask(&self, path: &str) -> Value {
        let admin = self.process.ready().admin.unwrap();
        let answer = http::get(admin, &admin.to_string(), path);
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// B as it is taken for, in bytes a second.
    fn link(&self) -> f64 {
        self.ask("/status.json")["link"]["capacity"]
            .as_f64()
            .unwrap()
    }

    /// Control intervals that were looked at.
    fn intervals(&self) -> usize {
        self.ask("/history.json")["snapshots"]
            .as_array()
            .unwrap()
            .len()
    }
}

/// A load that ends with the test.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn slow_readers(server: SocketAddr) -> Load {
    let mut readers = Command::new(env!("CARGO_BIN_EXE_levee-lab"))
        .args(["load", "slow", "--host", "news.localhost"])
        .args(["--path", "/film", "--connections", READERS])
        .args(["--address", &server.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its first byte says that all have asked.
    readers
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0])
        .unwrap();
    Load(readers)
}

#[test]
fn a_full_link_is_measured_by_pages_that_fit_into_the_kernel() {
    if !is_inside("link::a_full_link_is_measured_by_pages_that_fit_into_the_kernel") {
        return;
    }
    let far = FarNetwork::new();
    let shape = "rate 10mbit burst 16kb latency 200ms";
    let mut words = vec!["tc", "qdisc", "add", "dev", "near", "root", "tbf"];
    words.extend(shape.split(' '));
    run(&words);
    let site = Site::start("10.77.0.1");
    let promise = site.link();
    assert!(promise > NARROW * 2.0, "{promise}");
    let runner = far.runner();
    let url = format!("http://10.77.0.1:{}/page", site.port());
    let load = Command::new(&runner[0])
        .args(&runner[1..])
        .args(["wrk", "-t", "1", "-c", "150", "-d", "60", "--timeout", "60"])
        .args(["-H", "Host: news.localhost", &url])
        .stdout(Stdio::null())
        .spawn()
        .expect("wrk is installed");
    let _load = Load(load);
    let measured = until("an estimate below the promise", || {
        let link = site.link();
        (link < promise / 2.0).then_some(link)
    });
    assert!(measured < NARROW * 1.1, "{measured}");
    // A busy machine may leave it idle for a part of the first intervals.
    until("an estimate near what the link carries", || {
        let link = site.link();
        (NARROW * 0.85..NARROW * 1.1).contains(&link).then_some(())
    });
}

#[test]
fn a_flood_of_slow_readers_neither_keeps_newcomers_out_nor_looks_like_a_full_link() {
    let site = Site::start("127.0.0.1");
    let server = SocketAddr::from(([127, 0, 0, 1], site.port()));
    let promise = site.link();
    let _readers = slow_readers(server);
    // They have asked, but the server may still be accepting them.
    until("a connection that gave way to a newcomer", || {
        // Where nobody was watched for long enough yet, this one is refused.
        let _ = try_page(server);
        let status = site.ask("/status.json");
        assert!(status["connections"][0].as_u64() <= Some(ROOM));
        (status["lifetime"]["evicted"].as_u64() > Some(0)).then_some(())
    });
    let before = site.intervals();
    let mut visitors = Vec::new();
    for number in 0..PAGES {
        assert!(try_page(server), "page {number} did not come");
        // Visitors who stay: each takes one more place.
        if number < 20 {
            visitors.push(std::net::TcpStream::connect(server).unwrap());
        }
    }
    until("ten more control intervals", || {
        assert!(try_page(server), "a page did not come");
        (site.intervals() >= before + 10).then_some(())
    });
    let link = site.link();
    assert!(
        link >= promise,
        "{link} is less than the {promise} of before"
    );
    assert!(site.ask("/status.json")["connections"][0].as_u64() > Some(ROOM / 2));
}

/// Whether a whole page comes on a connection of its own.
fn try_page(server: SocketAddr) -> bool {
    use std::io::Write;
    let Ok(mut stream) = std::net::TcpStream::connect(server) else {
        return false;
    };
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let request = b"GET /page HTTP/1.1\r\nHost: news.localhost\r\nConnection: close\r\n\r\n";
    let mut page = Vec::new();
    let got = stream
        .write_all(request)
        .and_then(|()| stream.read_to_end(&mut page));
    got.is_ok() && page.ends_with(&[b'p'; 20_000])
}
