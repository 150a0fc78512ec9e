//! How fast pages are read: all pages and style sheets below a folder, several times over.
//!
//! `cargo run --release -p levee-page --example pages -- /usr/share/doc`
#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the clock; the crate does not"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use levee_page::{Finder, Hyperlinks, Place, Rewriter};

/// What is read at once, as from a socket.
const PIECE_BYTES: usize = 16 * 1024;

/// Shortest measurement.
const MEASURED: Duration = Duration::from_secs(2);

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    let bodies: Vec<(&str, Vec<u8>)> = files
        .iter()
        .filter_map(|(kind, path)| Some((*kind, std::fs::read(path).ok()?)))
        .collect();
    let bytes: usize = bodies.iter().map(|(_, body)| body.len()).sum();
    if bytes == 0 {
        println!("no pages below {folder}");
        return;
    }
    let mut objects = 0;
    let found = speed(bytes, || {
        objects = bodies.iter().map(|(kind, body)| find(kind, body)).sum();
    });
    let rewritten = speed(bytes, || {
        bodies.iter().for_each(|(kind, body)| rewrite(kind, body));
    });
    println!(
        "{} files, {:.1} MB, {objects} objects; found at {found:.0} MB/s, rewritten at \
         {rewritten:.0} MB/s",
        bodies.len(),
        bytes as f64 / 1e6
    );
}

fn collect(folder: &Path, files: &mut Vec<(&'static str, PathBuf)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = match path.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Some("text/html"),
            Some("css") => Some("text/css"),
            Some(_) | None => None,
        };
        match (entry.file_type(), kind) {
            (Ok(kind), _) if kind.is_dir() => collect(&path, files),
            (Ok(_), Some(kind)) => files.push((kind, path)),
            (Ok(_) | Err(_), _) => {}
        }
    }
}

/// Megabytes a second.
fn speed(bytes: usize, mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut rounds = 0;
    while begin.elapsed() < MEASURED {
        work();
        rounds += 1;
    }
    bytes as f64 * f64::from(rounds) / 1e6 / begin.elapsed().as_secs_f64()
}

fn place() -> Place {
    Place::new("http://www.example.org/a/b.html", &[]).expect("this is a web address")
}

fn find(kind: &str, body: &[u8]) -> usize {
    let mut finder = Finder::new(kind, place()).expect("this names objects");
    body.chunks(PIECE_BYTES)
        .for_each(|piece| finder.write(piece));
    finder.finish().objects.len()
}

fn rewrite(kind: &str, body: &[u8]) {
    let rewriter = Rewriter::new(kind, place(), Hyperlinks::Relative);
    // Style sheets are left alone.
    let Some(mut rewriter) = rewriter else { return };
    let mut out = Vec::with_capacity(body.len());
    for piece in body.chunks(PIECE_BYTES) {
        rewriter.write(piece, &mut out);
    }
    rewriter.finish(&mut out);
}
