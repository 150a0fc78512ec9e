//! What the bare loop answers: heads and bodies that are ready before the first request comes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// Whether the connection goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    KeepAlive,
    Close,
}

/// Every answer there is.
#[derive(Debug)]
pub(super) struct Pages {
    files: HashMap<String, Page>,
}

#[derive(Debug)]
struct Page {
    kept: String,
    closed: String,
    body: Vec<u8>,
}

/// Paths that are redirected, and where to: the workload `redirect` of the bench.
const REDIRECTED: &str = "/r/";
const REDIRECT: &str = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\
    Location: http://helper1.example.net";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n";
const CLOSE: &str = "Connection: close\r\n";

impl Pages {
    /// Reads every file of `folder`, without folders below it.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut files = HashMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let name = format!("/{}", entry.file_name().to_string_lossy());
                files.insert(name, Page::of(fs::read(entry.path())?));
            }
        }
        Ok(Self { files })
    }

    /// Writes the head of the answer to `target` up to its Date, and gives the body.
    pub(super) fn answer(&self, target: &str, after: After, head: &mut Vec<u8>) -> &[u8] {
        let path = target.split('?').next().unwrap_or(target);
        if let Some(page) = self.files.get(path) {
            let start = match after {
                After::KeepAlive => &page.kept,
                After::Close => &page.closed,
            };
            head.extend_from_slice(start.as_bytes());
            return &page.body;
        }
        if target.starts_with(REDIRECTED) {
            head.extend_from_slice(REDIRECT.as_bytes());
            head.extend_from_slice(target.as_bytes());
            head.extend_from_slice(b"\r\n");
        } else {
            head.extend_from_slice(NOT_FOUND.as_bytes());
        }
        if after == After::Close {
            head.extend_from_slice(CLOSE.as_bytes());
        }
        &[]
    }
}

impl Page {
    /// The header lines that any server sends with a file, so that the bytes are comparable, and a
    /// lifetime, so that a cache in front can keep it.
    fn of(body: Vec<u8>) -> Self {
        let kept = format!(
            "HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: text/plain\r\nETag: \"65f1-2800\"\r\n\
             Last-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\nCache-Control: max-age=3600\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        let closed = format!("{kept}{CLOSE}");
        Self { kept, closed, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, after: After, head_parts: &[&str], body_bytes: usize) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1k"), [b'x'; 1024]).unwrap();
        let pages = Pages::read(folder.path()).unwrap();
        let mut head = Vec::new();
        assert_eq!(pages.answer(target, after, &mut head).len(), body_bytes);
        let head = String::from_utf8(head).unwrap();
        for part in head_parts {
            assert!(head.contains(part), "{head} has no {part}");
        }
        assert_eq!(head.contains(CLOSE), after == After::Close);
    }

    #[test]
    fn files_redirects_and_strangers_have_their_heads() {
        let ok = ["HTTP/1.1 200 OK\r\n", "\r\nContent-Length: 1024\r\n"];
        check("/1k", After::KeepAlive, &ok, 1024);
        check("/1k?query", After::Close, &ok, 1024);
        let moved = [
            " 302 ",
            "\r\nLocation: http://helper1.example.net/r/page\r\n",
        ];
        check("/r/page", After::KeepAlive, &moved, 0);
        check("/r/page", After::Close, &moved, 0);
        check("/elsewhere", After::Close, &[" 404 "], 0);
    }
}
