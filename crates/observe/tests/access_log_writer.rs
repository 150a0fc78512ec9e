//! The writer thread of the access log: rotation, a full disk, a full queue, and hand-over.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use levee_observe::{
    AccessLog, AccessRecord, CacheResult, HandedOver, LogFormat, LogTarget, LogText, LogVersion,
    RequestClass, VisitorKind,
};

fn record(target: &str, class: RequestClass) -> AccessRecord {
    AccessRecord {
        remote: "192.0.2.7".parse().unwrap(),
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_232_402),
        method: LogText::from("GET"),
        target: LogText::from(target),
        version: LogVersion::Http11,
        status: 200,
        bytes: 1,
        referer: LogText::EMPTY,
        user_agent: LogText::EMPTY,
        host: LogText::from("WWW-vh1.rescue.example:8080"),
        cache: CacheResult::Hit,
        class,
        visitor: VisitorKind::Reader,
        rescue_server: LogText::EMPTY,
        wait: Duration::ZERO,
        total: Duration::ZERO,
        request_id: 1,
    }
}

/// Waits until `seen` gives something; the writer looks into its queue every 50 ms.
fn wait_for<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = seen() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

fn has_line(path: &PathBuf, target: &str) -> Option<()> {
    let text = fs::read_to_string(path).ok()?;
    text.contains(&format!("\"GET {target} HTTP/1.1\""))
        .then_some(())
}

#[test]
fn a_moved_file_is_opened_anew_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let moved = folder.path().join("access.log.1");
    let (log, thread) =
        AccessLog::start(LogTarget::File(path.clone()), LogFormat::Combined).unwrap();
    log.write(record("/before", RequestClass::Page));
    wait_for("the first line", || has_line(&path, "/before"));
    fs::rename(&path, &moved).unwrap();
    log.reopen();
    log.write(record("/after", RequestClass::Page));
    drop(log);
    thread.join();
    assert!(has_line(&moved, "/before").is_some());
    assert!(has_line(&path, "/after").is_some());
    assert!(has_line(&path, "/before").is_none());
}

#[test]
fn a_full_disk_costs_lines_and_nothing_else() {
    let full = LogTarget::File(PathBuf::from("/dev/full"));
    let (log, thread) = AccessLog::start(full, LogFormat::Json).unwrap();
    for _ in 0..10 {
        log.write(record("/", RequestClass::Page));
    }
    wait_for("the count of lost lines", || {
        (log.lost() == 10).then_some(())
    });
    drop(log);
    thread.join();
}

#[test]
fn a_full_queue_never_blocks_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    // Nobody reads the pipe, so the writer hangs in its first write when the pipe is full. Opened
    // for reading and writing, because opening only one end waits for the other.
    let mut pipe = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let (log, thread) = AccessLog::start(LogTarget::File(path), LogFormat::Json).unwrap();
    let mut sent = 0;
    wait_for("a lost line", || {
        // Many at a time: a busy machine runs us seldom.
        for _ in 0..1000 {
            log.write(record("/", RequestClass::Page));
            sent += 1;
        }
        (log.lost() > 0).then_some(())
    });
    assert!(sent > 8192);
    let lost = log.lost();
    drop(log);
    // Now read it all, so that the thread can end.
    let mut lines = 0;
    let mut buffer = vec![0; 65_536];
    while lines < sent - lost {
        let length = pipe.read(&mut buffer).unwrap();
        lines += buffer[..length]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count() as u64;
    }
    thread.join();
    assert_eq!(lines, sent - lost);
}

#[test]
fn lines_for_an_origin_wait_by_alias_and_come_back_whole() {
    let (log, thread) = AccessLog::start(LogTarget::Off, LogFormat::Combined).unwrap();
    log.write(record("/own", RequestClass::Page));
    log.write(record("/theirs", RequestClass::Rescue));
    let mut handed_back = record("/ours-from-elsewhere", RequestClass::Rescue);
    handed_back.rescue_server = LogText::from("other.example");
    log.write(handed_back);
    let alias = "www-vh1.rescue.example";
    wait_for("the line", || {
        (log.hand_over().aliases() == [alias]).then_some(())
    });
    let lines = log.hand_over().take(alias).unwrap();
    assert_eq!((lines.lines, lines.left_out), (1, 0));
    assert_eq!(log.hand_over().take(alias), None);
    let read = HandedOver::parse(&lines.body, "rescue.example");
    assert_eq!(read.records[0].target.as_bytes(), b"/theirs");
    drop(log);
    thread.join();
}

#[test]
fn a_log_that_cannot_be_opened_is_told_in_a_sentence() {
    let nowhere = LogTarget::File(PathBuf::from("/proc/no/such/folder.log"));
    let error = AccessLog::start(nowhere, LogFormat::Combined).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot open the access log /proc/no/such/folder.log: ")
    );
}
