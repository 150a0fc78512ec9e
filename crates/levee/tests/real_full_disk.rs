//! A rescue server whose disk is full: it offers nothing, says why, and offers again when there is
//! room. The disk is a small one of the test's own, in a namespace of its own.
#![allow(clippy::unwrap_used)]

#[path = "support/program.rs"]
mod program;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use program::Program;

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// The registry cuts off who asks without a pause.
const PAUSE: Duration = Duration::from_millis(50);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: never");
        park_timeout(PAUSE);
    }
}

/// One line to a server of lines, and one back.
fn line_of(address: (&str, u16), line: &str) -> String {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    stream.get_mut().write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).unwrap();
    answer
}

fn page(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn write_settings(folder: &Path, registry: u16) {
    std::fs::create_dir(folder.join("public")).unwrap();
    std::fs::create_dir(folder.join("state")).unwrap();
    let text = format!(
        "[site]\nname = \"www.helper.test\"\nlisten = \"127.0.0.1:0\"\nfolder = \"public\"\n\
         [link]\nrate = \"20 MB/s\"\n[community]\nregistry = \"127.0.0.1:{registry}\"\n\
         rescue_listen = \"127.0.0.1:0\"\naddress = \"127.0.0.1\"\nallow_private = true\n\
         alias_domain = \"aliases.test\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [state]\nfolder = \"state\"\n[rescue]\ninterval = \"100 ms\"\n"
    );
    std::fs::write(folder.join("levee.toml"), text).unwrap();
}

/// A server that could help, and its registry.
struct Helper {
    _folder: tempfile::TempDir,
    program: Program,
    registry: Program,
    /// Its small disk, as seen from here.
    disk: PathBuf,
}

impl Helper {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let levee = env!("CARGO_BIN_EXE_levee");
        let listen = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let registry = Program::start(Command::new(levee).args(listen));
        write_settings(folder.path(), registry.port("127.0.0.1:"));
        let mut command = Command::new("unshare");
        let script = "mount -t tmpfs -o size=512k none state && exec \"$0\" serve -c levee.toml";
        command.current_dir(folder.path()).args([
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            script,
            levee,
        ]);
        let program = Program::start(&mut command);
        let root = format!("/proc/{}/root", program.process.id());
        let state = folder.path().join("state");
        let disk = Path::new(&root).join(state.strip_prefix("/").unwrap());
        Self {
            _folder: folder,
            program,
            registry,
            disk,
        }
    }

    /// Its entry in the registry: where it is asked for help, and what it offers.
    fn entry(&self) -> Option<(u16, u64)> {
        let registry = ("127.0.0.1", self.registry.port("127.0.0.1:"));
        let line = line_of(registry, "1 QUERY www.helper.test\r\n");
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_entry = words.get(2) == Some(&"ENTRY");
        is_entry.then(|| (words[6].parse().unwrap(), words[7].parse().unwrap()))
    }

    fn offers(&self) -> bool {
        self.entry().is_some_and(|(_, free)| free > 0)
    }

    fn ask_for_help(&self) -> String {
        let (port, _) = self.entry().unwrap();
        let sos = format!(
            "1 SOS www.origin.test 127.0.0.1 80 600 key={}\r\n",
            "5".repeat(32)
        );
        line_of(("127.0.0.1", port), &sos)
    }

    fn is_usable(&self) -> bool {
        let metrics = page(self.program.port("admin http://127.0.0.1:"), "/metrics");
        metrics.contains("\nlevee_help_state_folder_usable 1\n")
    }
}

#[test]
fn a_rescue_server_whose_disk_is_full_offers_nothing_until_there_is_room() {
    let helper = Helper::start();
    until("it offers help", || helper.offers());
    assert!(helper.is_usable());
    let filler = helper.disk.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[7; 1024]).is_ok() {}
    until("it offers nothing", || !helper.offers());
    assert!(!helper.is_usable());
    let refused = helper.ask_for_help();
    assert!(refused.starts_with("1 403 Reject"), "{refused}");
    let told = [
        "Nobody can be helped",
        "make room on its disk",
        "www.origin.test",
    ];
    until("its page tells why, and who was refused", || {
        let status = page(helper.program.port("admin http://127.0.0.1:"), "/");
        told.iter().all(|words| status.contains(words))
    });
    drop(file);
    std::fs::remove_file(filler).unwrap();
    until("it offers help again", || helper.offers());
    assert!(helper.is_usable());
    let taken = helper.ask_for_help();
    assert!(taken.starts_with("1 200 "), "{taken}");
}
