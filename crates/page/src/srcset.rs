//! The candidates of a `srcset` (WHATWG HTML, section 4.8.4.2.1).
//!
//! Which one a browser takes depends on its window and its screen, so all of them are objects of
//! the page.

use std::ops::Range;

/// Where the URL of each candidate stands in the text.
pub fn candidates(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += length(&bytes[at..], |byte| is_space(byte) || byte == b',');
        let begin = at;
        at += length(&bytes[at..], |byte| !is_space(byte));
        let url = &bytes[begin..at];
        if url.is_empty() {
            return None;
        }
        let commas = url.iter().rev().take_while(|byte| **byte == b',').count();
        if commas == 0 {
            at += descriptors(&bytes[at..]);
        }
        Some(begin..begin + url.len() - commas)
    })
}

/// Bytes up to the comma that ends a candidate. One inside of parentheses does not.
fn descriptors(rest: &[u8]) -> usize {
    let mut inside = false;
    length(rest, |byte| {
        match byte {
            b'(' => inside = true,
            b')' => inside = false,
            _ => {}
        }
        inside || byte != b','
    })
}

fn length(bytes: &[u8], mut belongs: impl FnMut(u8) -> bool) -> usize {
    let end = bytes.iter().position(|byte| !belongs(*byte));
    end.unwrap_or(bytes.len())
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = candidates(text).map(|range| &text[range]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_candidate_is_found_whatever_describes_it() {
        check("a.png", &["a.png"]);
        check("a.png, b.png 2x", &["a.png", "b.png"]);
        check(" a.png 100w,\n\tb.png 200w , ", &["a.png", "b.png"]);
        check("a,b.png 2x,c.png", &["a,b.png", "c.png"]);
        check("a.png,, b.png", &["a.png", "b.png"]);
        check("a.png (x, y) 1x, b.png", &["a.png", "b.png"]);
        check("data:,x 1x, b.png", &["data:,x", "b.png"]);
        check(" , ,", &[]);
    }
}
