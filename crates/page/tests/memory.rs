//! What reading a page needs of memory, whatever the page is.
#![allow(clippy::unwrap_used)]

use levee_page::{Finder, Hyperlinks, OBJECTS_MAX, Place, Rewriter, URL_BYTES_MAX};

const PIECE_BYTES: usize = 16 * 1024;

fn place() -> Place {
    Place::new("https://www.example.org/", &[]).unwrap()
}

/// Most bytes that were in use at one time.
fn peak(mut work: impl FnMut()) -> u64 {
    allocation_counter::measure(&mut work).bytes_max
}

fn find(body: &str) {
    let mut finder = Finder::new("text/html", place()).unwrap();
    let pieces = body.as_bytes().chunks(PIECE_BYTES);
    pieces.for_each(|piece| finder.write(piece));
    finder.finish();
}

fn rewrite(body: &str) {
    let mut rewriter = Rewriter::new("text/html", place(), Hyperlinks::Relative).unwrap();
    for piece in body.as_bytes().chunks(PIECE_BYTES) {
        rewriter.write(piece, &mut Vec::with_capacity(2 * PIECE_BYTES));
    }
    rewriter.finish(&mut Vec::new());
}

#[test]
fn a_page_of_text_needs_next_to_nothing() {
    let body = "<p class=x>A line of text that goes on for a while.</p>\n".repeat(20_000);
    assert!(peak(|| find(&body)) < 8 * 1024);
    assert!(peak(|| rewrite(&body)) < 256 * 1024);
}

#[test]
fn no_page_needs_more_than_the_bounds() {
    let long = "x".repeat(URL_BYTES_MAX - 40);
    let worst = [
        "<div><svg><li>".repeat(200_000),
        format!("<img src='data:,{}'>", "A".repeat(2_000_000)),
        format!("<img srcset='{}'>", "a.png 1x,".repeat(200_000)),
        format!("<p style='{}'>", "b:url(a.png);".repeat(200_000)),
        format!("<style>{}", "@font-face{src:url(a),url(b),".repeat(50_000)),
        (0..2 * OBJECTS_MAX)
            .map(|n| format!("<img src={n}{long}>"))
            .collect(),
        "<a ".repeat(500_000),
        "<!--".repeat(500_000),
    ];
    // Each object is kept twice, as itself and as what is known already.
    let objects = 2 * OBJECTS_MAX * (URL_BYTES_MAX + 256);
    for body in worst {
        let needed = peak(|| find(&body));
        assert!(
            needed < (objects + 512 * 1024) as u64,
            "{needed} for {}",
            &body[..20]
        );
        let needed = peak(|| rewrite(&body));
        assert!(needed < 1024 * 1024, "{needed} for {}", &body[..20]);
    }
}
