//! Large objects: on disk while they come, and through where there is no room (R8).

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levee_proxy::{Body, DiskSettings, FetchError, FetchSettings, Progress};
use stage::{Origin, Request, Stage, content, ok, say, until};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

/// Objects over 64 KiB are large.
fn settings(folder: &Path, limit: u64) -> FetchSettings {
    FetchSettings {
        memory_object_max: 64 << 10,
        disk: Some(DiskSettings {
            folder: folder.to_owned(),
            limit,
            object_max: 8 << 20,
        }),
        ..FetchSettings::default()
    }
}

fn large(size: usize) -> String {
    (0..size)
        .map(|at| char::from(b'a' + (at * 7 % 26) as u8))
        .collect()
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_goes_to_disk_once_for_all_who_wait() {
    let folder = tempfile::tempdir().unwrap();
    let body = large(3_000_000);
    let origin = Origin::says(&ok("", &body)).await;
    let stage = Stage::new(settings(folder.path(), 16 << 20));
    let request = Request::rescue(&origin, "/film");
    let waiting: Vec<_> = (0..20).map(|_| stage.ask(&request)).collect();
    for visitor in waiting {
        assert!(visitor.whole().await.unwrap().text() == body);
    }
    stage.settled().await;
    assert_eq!(origin.asks(), 1);
    let stored = stage.lookup(&request).unwrap();
    assert!(matches!(
        stored.body,
        Body::File {
            length: 3_000_000,
            ..
        }
    ));
    assert_eq!(files(folder.path()), ["0.object"]);
    assert_eq!(stage.fetcher.disk_bytes(), (3_000_000, 16 << 20));
    let (memory, _) = stage.fetcher.cache_bytes();
    assert!(memory < 200_000, "only the index is in memory: {memory}");
    assert!(stage.get(&request).await.unwrap().text() == body);
    // A visitor who still reads keeps the file; when it leaves, nothing is left.
    stage.fetcher.forget(&request.space);
    assert_eq!(stage.fetcher.disk_bytes().0, 3_000_000);
    drop(stored);
    assert_eq!(stage.fetcher.disk_bytes().0, 0);
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn a_large_object_is_read_from_disk_while_it_still_comes() {
    let folder = tempfile::tempdir().unwrap();
    let more = Arc::new(Notify::new());
    let told = more.clone();
    let body = large(1_000_000);
    let sent = body.clone();
    let origin = Origin::play(move |_, mut stream| {
        let (more, sent) = (more.clone(), sent.clone());
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(&sent.as_bytes()[..900_000]).await.ok()?;
            more.notified().await;
            stream.write_all(&sent.as_bytes()[900_000..]).await.ok()?;
            Some(stream)
        })
    })
    .await;
    let stage = Stage::new(settings(folder.path(), 16 << 20));
    let request = Request::rescue(&origin, "/film");
    let mut early = stage.ask(&request);
    early.head().await.unwrap();
    assert!(early.bytes(900_000).await.unwrap() == body.as_bytes()[..900_000]);
    assert_eq!(files(folder.path()), ["0.part"]);
    let mut late = stage.ask(&request);
    late.head().await.unwrap();
    let first = late.next().await;
    assert!(matches!(first, Progress::File { offset: 0, .. }));
    let read = content(&first);
    assert!(read == body.as_bytes()[..read.len()]);
    told.notify_one();
    let rest = late.bytes(1_000_000 - read.len()).await.unwrap();
    assert!(rest == body.as_bytes()[read.len()..]);
    assert_eq!(early.bytes(100_000).await.unwrap().len(), 100_000);
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn a_full_disk_costs_the_cache_and_not_the_visitor() {
    let folder = tempfile::tempdir().unwrap();
    let body = large(1_000_000);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let origin = Origin::says(&chunked).await;
    let stage = Stage::new(settings(folder.path(), 600_000));
    let request = Request::rescue(&origin, "/film");
    let waiting: Vec<_> = (0..3).map(|_| stage.ask(&request)).collect();
    let mut reading = Vec::new();
    for visitor in waiting {
        reading.push(tokio::spawn(visitor.whole()));
    }
    for visitor in reading {
        assert!(visitor.await.unwrap().unwrap().text() == body);
    }
    stage.settled().await;
    assert!(stage.lookup(&request).is_none());
    assert!(files(folder.path()).is_empty());
    assert_eq!(stage.fetcher.disk_bytes().0, 0);
    assert_eq!(stage.fetcher.counters().unkept, 1);
    assert_eq!(origin.asks(), 1);
}

#[tokio::test]
async fn old_large_objects_make_room_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let body = large(1_000_000);
    let origin = Origin::says(&ok("", &body)).await;
    let stage = Stage::new(settings(folder.path(), 3_500_000));
    for number in 0..10 {
        let request = Request::rescue(&origin, &format!("/{number}"));
        assert_eq!(stage.get(&request).await.unwrap().body.len(), 1_000_000);
        stage.settled().await;
        assert!(stage.lookup(&request).is_some(), "{number}");
        assert!(stage.fetcher.disk_bytes().0 <= 3_500_000);
    }
    assert_eq!(files(folder.path()).len(), 3);
}

#[tokio::test]
async fn a_large_object_that_breaks_off_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let half = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n{}",
        large(1_000_000)
    );
    let origin = Origin::play(move |_, stream| stage::say_and_close(stream, half.clone())).await;
    let stage = Stage::new(settings(folder.path(), 16 << 20));
    let request = Request::rescue(&origin, "/film");
    assert!(stage.get(&request).await.is_err());
    stage.settled().await;
    until(|| files(folder.path()).is_empty()).await;
    assert_eq!(stage.fetcher.disk_bytes().0, 0);
}

#[tokio::test]
async fn without_a_disk_what_is_announced_as_too_large_is_for_each_alone() {
    let body = large(200_000);
    let origin = Origin::says(&ok("", &body)).await;
    let stage = Stage::new(FetchSettings {
        memory_object_max: 64 << 10,
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/film");
    let waiting = [stage.ask(&request), stage.ask(&request)];
    for visitor in waiting {
        assert!(visitor.whole().await.unwrap().text() == body);
    }
    assert_eq!(origin.asks(), 2);
    assert!(stage.lookup(&request).is_none());
}

#[tokio::test]
async fn too_much_on_its_way_goes_to_disk_early() {
    let folder = tempfile::tempdir().unwrap();
    let body = large(50_000);
    let origin = Origin::play(move |_, stream| say(stream, ok("", &body))).await;
    let stage = Stage::new(FetchSettings {
        memory_in_flight: 10_000,
        ..settings(folder.path(), 16 << 20)
    });
    let request = Request::rescue(&origin, "/page");
    assert_eq!(stage.get(&request).await.unwrap().body.len(), 50_000);
    stage.settled().await;
    let stored = stage.lookup(&request).unwrap();
    assert!(matches!(stored.body, Body::File { length: 50_000, .. }));
}

#[tokio::test]
async fn a_visitor_who_stands_still_does_not_hold_the_others_up_for_ever() {
    let body = large(20_000_000);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let origin = Origin::says(&chunked).await;
    let stage = Stage::new(FetchSettings {
        memory_object_max: 64 << 10,
        unread_max: 64 << 10,
        body_timeout: Duration::from_millis(100),
        ..FetchSettings::default()
    });
    let request = Request::rescue(&origin, "/film");
    let mut stuck = stage.ask(&request);
    let moves = stage.ask(&request);
    stuck.head().await.unwrap();
    assert!(moves.whole().await.unwrap().text() == body);
    assert_eq!(stuck.bytes(1).await, Err(FetchError::Overloaded));
    assert_eq!(origin.asks(), 1);
}
