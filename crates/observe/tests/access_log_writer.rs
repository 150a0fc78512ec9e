//! The writer thread of the access log: rotation, a full disk, a full queue, and hand-over.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use levee_observe::{
    AccessLog, AccessRecord, CacheResult, HAND_OVER_ALIASES_MAX, HandOverLines, HandedOver,
    LogFormat, LogTarget, LogText, LogVersion, RequestClass, VisitorKind,
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
    assert_eq!((lines.lines, log.hand_over().left_out()), (1, 0));
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

/// A visit to the alias of this number.
fn visit(number: usize) -> AccessRecord {
    let mut visit = record("/theirs", RequestClass::Rescue);
    visit.host = LogText::from(format!("www-vh{number}.rescue.example").as_str());
    visit
}

#[test]
fn lines_beyond_the_last_place_are_counted() {
    let (log, thread) = AccessLog::start(LogTarget::Off, LogFormat::Json).unwrap();
    for number in 0..HAND_OVER_ALIASES_MAX + 3 {
        log.write(visit(number));
    }
    wait_for("the lines left out", || {
        (log.hand_over().left_out() == 3).then_some(())
    });
    assert_eq!(log.lost(), 3, "they are lost as others are");
    assert_eq!(log.hand_over().aliases().len(), HAND_OVER_ALIASES_MAX);
    drop(log);
    thread.join();
}

#[test]
fn lines_that_their_origin_refused_give_way_to_those_of_a_newcomer() {
    let (log, thread) = AccessLog::start(LogTarget::Off, LogFormat::Json).unwrap();
    let refused = |lines: u64| HandOverLines {
        body: b"{}\n".repeat(lines as usize),
        lines,
    };
    log.hand_over().give_back("nothing.example", refused(0));
    log.hand_over().give_back("z-first.example", refused(2));
    log.hand_over().give_back("a-second.example", refused(2));
    for number in 2..HAND_OVER_ALIASES_MAX {
        log.write(visit(number));
    }
    log.write(visit(HAND_OVER_ALIASES_MAX));
    let newcomer = format!("www-vh{HAND_OVER_ALIASES_MAX}.rescue.example");
    wait_for("the newcomer", || {
        let aliases = log.hand_over().aliases();
        aliases.contains(&newcomer).then_some(())
    });
    let aliases = log.hand_over().aliases();
    assert_eq!(aliases.len(), HAND_OVER_ALIASES_MAX);
    assert!(!aliases.contains(&"nothing.example".to_owned()));
    assert!(!aliases.contains(&"z-first.example".to_owned()));
    assert!(aliases.contains(&"a-second.example".to_owned()));
    assert_eq!(log.hand_over().left_out(), 2);
    // All places are taken: what comes back now is left out.
    log.hand_over().give_back("z-first.example", refused(5));
    assert_eq!(log.hand_over().left_out(), 7);
    drop(log);
    thread.join();
}
