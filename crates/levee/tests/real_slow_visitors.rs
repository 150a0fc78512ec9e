//! Visitors who are slow on purpose: slowhttptest, in four ways, and beside it an ordinary visitor
//! who asks for a page again and again. They come on twice as many connections as the server may
//! hold, so the slowest must give way.
//!
//! Every page must come, and the server's memory must stay what its limits say. How long a page
//! took is printed and not judged: the machine may be busy.
#![allow(clippy::unwrap_used)]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use program::Program;

/// Connections that each attack opens.
const ATTACKERS: usize = 400;
/// How long each attack lasts, in seconds: longer than the time for a head.
const SECONDS: &str = "8";
/// Most that the server may grow under all four attacks. 400 connections with a buffer of 16 KiB
/// each are 6.5 MB.
const GROWTH_MAX: u64 = 32 << 20;
/// Longest that a page is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

struct Levee {
    program: Program,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Levee {
    /// A server that may hold so many connections.
    fn start(connections: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("public")).unwrap();
        fs::write(folder.path().join("public/index.html"), "<p>hello").unwrap();
        fs::write(folder.path().join("public/big"), vec![b'x'; 16 << 20]).unwrap();
        let settings = format!(
            "[site]\nname = \"site.localhost\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"{}\"\n\
             cores = 1\n\n[link]\nrate = \"1 GB/s\"\n\n[limits]\nconnections = {connections}\nhead_time = \"5 s\"\n\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n",
            folder.path().join("public").display()
        );
        let file = folder.path().join("levee.toml");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        let program = Program::start(command.args([Path::new("serve"), Path::new("-c"), &file]));
        Self {
            address: (Ipv4Addr::LOCALHOST, program.port("site.localhost:")).into(),
            program,
            _folder: folder,
        }
    }

    /// Bytes of memory that the process holds.
    fn memory(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.program.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }

    /// How long an ordinary visitor waits for a page; none where it does not come.
    fn page(&self) -> Option<Duration> {
        let started = Instant::now();
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: site.localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        page.ends_with("<p>hello").then(|| started.elapsed())
    }
}

/// What the ordinary visitor saw during one attack.
#[derive(Default)]
struct Seen {
    pages: usize,
    missed: usize,
    slowest: Duration,
    memory: u64,
}

fn watch(levee: &Levee, mut attack: Child) -> Seen {
    let mut seen = Seen::default();
    while attack.try_wait().unwrap().is_none() {
        match levee.page() {
            Some(took) => {
                seen.pages += 1;
                seen.slowest = seen.slowest.max(took);
            }
            None => seen.missed += 1,
        }
        seen.memory = seen.memory.max(levee.memory());
    }
    seen
}

#[test]
fn slow_visitors_keep_nobody_else_from_the_site() {
    let reading = ["-X", "-n", "2", "-w", "10", "-y", "20"];
    let attacks: [(&str, &[&str], &str); 4] = [
        ("slow heads", &["-H", "-i", "2"], ""),
        ("slow bodies", &["-B", "-i", "2", "-s", "60000"], ""),
        ("slow reading", &reading, "big"),
        ("many ranges", &["-R"], "big"),
    ];
    println!("attack          pages  missed  slowest page  memory grew by");
    let mut failed = false;
    for (name, options, path) in attacks {
        let levee = Levee::start(ATTACKERS / 2);
        assert!(levee.page().is_some());
        let before = levee.memory();
        let url = &format!("http://{}/{path}", levee.address);
        let connections = ATTACKERS.to_string();
        let attack = Command::new("slowhttptest")
            .args(options)
            .args(["-c", &connections, "-r", "200", "-l", SECONDS, "-u", url])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("slowhttptest is installed");
        let seen = watch(&levee, attack);
        let growth = seen.memory.saturating_sub(before);
        println!(
            "{name:14} {:6} {:7} {:10.1} ms {:9} kB",
            seen.pages,
            seen.missed,
            seen.slowest.as_secs_f64() * 1000.0,
            growth / 1024
        );
        failed |= seen.missed > 0 || seen.pages == 0 || growth > GROWTH_MAX;
    }
    assert!(!failed, "somebody was kept from the site, or memory grew");
}
