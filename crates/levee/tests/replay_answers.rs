//! `levee replay` from a log on disk to its answer.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use levee::command::{Command, CommandLine};

/// A quarter of an hour of a small site, with half a minute of a crowd in it.
fn crowd() -> String {
    let mut log = String::new();
    for second in 0..900 {
        let requests = if (300..330).contains(&second) { 40 } else { 1 };
        for number in 0..requests {
            writeln!(
                log,
                "192.0.2.7 - - [21/Nov/2026:10:{:02}:{:02} +0000] \"GET /page{}?x={second} \
                 HTTP/1.1\" 200 6000 \"-\" \"-\"",
                second / 60,
                second % 60,
                number % 5
            )
            .unwrap();
        }
    }
    log
}

fn replay(words: &[&str]) -> Result<String, String> {
    let words = ["levee", "replay"].iter().chain(words);
    let line = CommandLine::try_parse_from(words).unwrap();
    let Command::Replay(replay) = line.command else {
        panic!("{line:?}");
    };
    levee::replay::run(&replay)
}

fn log_in(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_crowd_is_told_with_the_neighbours_that_it_would_have_needed() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("nonsense\n{}\n\n{{\"a\":1}}\n", crowd());
    let log = log_in(folder.path(), "access.log", text.as_bytes());
    let log = log.to_str().unwrap();
    let link = ["--link", "54 kB/s", "--neighbours", "2 MB/s,1 MB/s"];
    let told = replay(&[&[log], &link[..]].concat()).unwrap();
    for sentence in [
        "2,070 requests of 12.4 MB, 2026-11-21 10:00:00 to 2026-11-21 10:14:59 UTC.",
        "2 lines could not be read; the first is line 1 of",
        "The busiest second, 2026-11-21 10:05:00: 40 requests",
        "The site would have survived with 1 neighbour, not with fewer.",
        "Alone: overloaded in ",
        "requests come to nothing, never more than 10 % in a minute. It redirects from 2026-11-21 \
         10:05:0",
        "2026-11-21 10:05:00  /page0, worth redirecting at 2026-11-21 10:05:0",
    ] {
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }

    let json = replay(&[&[log, "--json"], &link[..]].concat()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["neighbours_needed"], 1);
    assert_eq!(json["lines"]["broken"], 2);
    assert_eq!(json["runs"][0]["survived"], false);
    assert_eq!(json["runs"][1]["survived"], true);
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn a_compressed_log_and_its_pieces_give_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let text = crowd();
    let whole = log_in(folder.path(), "whole.log", text.as_bytes());
    let (first, second) = text.split_at(text.find("10:05:10").unwrap());
    let at = first.rfind('\n').unwrap() + 1;
    let second = format!("{}{second}", &first[at..]);
    // gzip files may be joined; a name says nothing.
    let mut packed = Vec::new();
    for piece in [&first[..at / 2], &first[at / 2..at]] {
        let mut gzip = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        gzip.write_all(piece.as_bytes()).unwrap();
        gzip.finish().unwrap();
    }
    let older = log_in(folder.path(), "older", &packed);
    let newer = log_in(folder.path(), "newer.log", second.as_bytes());
    let paths = [&whole, &older, &newer].map(|path| path.to_str().unwrap());
    let body = |told: String| told.split_once(": ").unwrap().1.to_owned();
    let one = body(replay(&[paths[0], "--link", "54 kB/s"]).unwrap());
    let two = body(replay(&[paths[1], paths[2], "--link", "54 kB/s"]).unwrap());
    assert_eq!(one, two);
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path(), "log", crowd().as_bytes());
    let nonsense = log_in(folder.path(), "nonsense", b"hello\nworld\n");
    let empty = log_in(folder.path(), "empty", b"\n");
    let old = crowd().replace("/2026:", "/2020:");
    let old = log_in(folder.path(), "old", old.as_bytes());
    let broken = log_in(folder.path(), "broken.gz", &[0x1f, 0x8b, 8, 0, 1, 2]);
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let link = ["--link", "54 kB/s"].map(str::to_owned);
    let with_link = |logs: &[&PathBuf]| {
        let words = logs.iter().map(|log| text(log)).chain(link.clone());
        words.collect::<Vec<_>>()
    };
    let gone = folder.path().join("gone");
    let cases = [
        (with_link(&[&gone]), "cannot read"),
        (with_link(&[&folder.path().to_owned()]), "it is a folder"),
        (
            with_link(&[&nonsense]),
            "the first, `hello`: there is no time",
        ),
        (with_link(&[&empty]), "there is no line in"),
        (with_link(&[&broken]), "cannot read"),
        (
            with_link(&[&log, &old]),
            "the time jumps from 2026-11-21 10:14:59 to 2020-11-21",
        ),
        (
            vec![text(&log)],
            "how much does the link of this site carry?",
        ),
    ];
    for (words, sentence) in cases {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = replay(&words).unwrap_err();
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }
}

#[test]
fn the_link_and_the_thresholds_come_from_the_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path(), "log", crowd().as_bytes());
    let settings = "[site]\nname = \"a.example\"\nfolder = \".\"\n[link]\nrate = \"54 kB/s\"\n";
    let settings = log_in(folder.path(), "levee.toml", settings.as_bytes());
    let (log, settings) = (log.to_str().unwrap(), settings.to_str().unwrap());
    let told = replay(&[log, "-c", settings]).unwrap();
    assert!(told.contains("of a link of 54.0 kB/s"), "{told}");
    let told = replay(&[log, "-c", settings, "--link", "10 MB/s"]).unwrap();
    assert!(
        told.contains("The site would have survived alone."),
        "{told}"
    );
}
