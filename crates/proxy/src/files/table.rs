//! Files that were asked for lately, ready to be sent. One table per core and site: no locks.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use foldhash::fast::RandomState;
use levee_vocab::Timestamp;

use super::folder::{Folder, Opened, Stamp, relative};

/// The table.
#[derive(Debug)]
pub(crate) struct FileTable {
    folder: Arc<Folder>,
    places: HashMap<Rc<str>, usize, RandomState>,
    entries: Vec<Entry>,
    hand: usize,
    bytes: u64,
    bytes_max: u64,
}

/// What a path of a URL leads to.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    File(Rc<FileEntry>),
    /// A directory whose path lacks its slash.
    Directory,
    Missing,
}

/// One file, ready to be sent.
#[derive(Debug)]
pub(crate) struct FileEntry {
    /// Status line and header lines of the whole file.
    pub head: Vec<u8>,
    pub content_type: String,
    pub etag: String,
    pub modified: String,
    pub size: u64,
    pub contents: Contents,
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Contents {
    Memory(Bytes),
    Disk(Arc<File>),
}

#[derive(Debug)]
struct Entry {
    path: Rc<str>,
    /// Relative path in the folder, with the index file's name.
    real: Vec<u8>,
    stamp: Option<Stamp>,
    found: Found,
    checked: Timestamp,
    used: Used,
    cost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    Lately,
    LongAgo,
}

/// Files up to this size are held in memory. Above it sendfile costs less than the memory is worth
/// (findings: from about 100 KB up the two are level).
const SMALL_FILE_MAX: u64 = 256 * 1024;
/// How old what is known of a file may be.
const CHECKED_MAX: Duration = Duration::from_secs(1);
/// What a file that is held open counts for. It takes no memory to speak of, but there are far
/// fewer descriptors than bytes, and one file has as many spellings in a URL as a visitor likes.
const OPEN_FILE_BYTES: u64 = SMALL_FILE_MAX;
/// What an entry costs beside its texts and its body.
const ENTRY_BYTES: u64 = 320;

impl FileTable {
    /// An empty table of `folder` that holds at most `bytes_max`, its index included.
    pub fn new(folder: Arc<Folder>, bytes_max: u64) -> Self {
        Self {
            folder,
            places: HashMap::with_hasher(RandomState::default()),
            entries: Vec::new(),
            hand: 0,
            bytes: 0,
            bytes_max,
        }
    }

    pub fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// What `path`, as it stands in a URL, leads to.
    pub fn find(&mut self, path: &str, now: Timestamp) -> Found {
        if let Some(&place) = self.places.get(path) {
            let entry = &mut self.entries[place];
            entry.used = Used::Lately;
            if now.since(entry.checked) < CHECKED_MAX {
                return entry.found.clone();
            }
            if entry.stamp.is_some() && self.folder.stamp(&entry.real) == entry.stamp {
                entry.checked = now;
                return entry.found.clone();
            }
            self.remove(place);
        }
        let entry = self.look_up(path, now);
        let found = entry.found.clone();
        self.insert(entry);
        found
    }

    fn look_up(&self, path: &str, now: Timestamp) -> Entry {
        let mut entry = Entry {
            path: path.into(),
            real: Vec::new(),
            stamp: None,
            found: Found::Missing,
            checked: now,
            used: Used::Lately,
            cost: ENTRY_BYTES + 2 * path.len() as u64,
        };
        let Some(mut real) = relative(path) else {
            return entry;
        };
        let mut opened = self.folder.find(&real);
        if matches!(opened, Opened::Directory) {
            if !path.ends_with('/') {
                entry.found = Found::Directory;
                return entry;
            }
            if !real.is_empty() {
                real.push(b'/');
            }
            real.extend_from_slice(b"index.html");
            opened = self.folder.find(&real);
        } else if path.ends_with('/') {
            // `/page.html/` is not `/page.html`: its relative links would lead elsewhere.
            return entry;
        }
        if let Opened::File(file, stamp) = opened
            && let Some(found) = FileEntry::read(file, stamp, &real)
        {
            entry.cost += found.cost();
            entry.stamp = Some(stamp);
            entry.found = Found::File(Rc::new(found));
        }
        entry.real = real;
        entry
    }

    fn insert(&mut self, entry: Entry) {
        if entry.cost > self.bytes_max / 4 {
            // One file must not push out all others; it is read again each time.
            return;
        }
        while self.bytes + entry.cost > self.bytes_max && !self.entries.is_empty() {
            self.evict_one();
        }
        self.bytes += entry.cost;
        self.places
            .insert(Rc::clone(&entry.path), self.entries.len());
        self.entries.push(entry);
    }

    /// The clock algorithm: the hand goes round and takes the first entry that was not used since
    /// it came by last.
    fn evict_one(&mut self) {
        loop {
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = &mut self.entries[self.hand];
            match entry.used {
                Used::Lately => entry.used = Used::LongAgo,
                Used::LongAgo => return self.remove(self.hand),
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let entry = self.entries.swap_remove(place);
        self.places.remove(&entry.path);
        self.bytes -= entry.cost;
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(Rc::clone(&moved.path), place);
        }
    }
}

impl FileEntry {
    fn read(mut file: File, stamp: Stamp, real: &[u8]) -> Option<Self> {
        let contents = if stamp.size <= SMALL_FILE_MAX {
            let mut body = Vec::with_capacity(usize::try_from(stamp.size).ok()?);
            file.by_ref()
                .take(SMALL_FILE_MAX)
                .read_to_end(&mut body)
                .ok()?;
            if body.len() as u64 != stamp.size {
                // Somebody writes to it just now: half a file is worse than none.
                return None;
            }
            Contents::Memory(body.into())
        } else {
            Contents::Disk(Arc::new(file))
        };
        let content_type = content_type(real);
        let seconds = u64::try_from(stamp.modified_seconds).unwrap_or_default();
        let modified = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        let etag = format!(
            "\"{:x}-{:x}-{:x}\"",
            stamp.modified_seconds, stamp.modified_nanoseconds, stamp.size
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             ETag: {etag}\r\nLast-Modified: {modified}\r\nAccept-Ranges: bytes\r\n",
            stamp.size
        );
        Some(Self {
            head: head.into_bytes(),
            content_type,
            etag,
            modified,
            size: stamp.size,
            contents,
        })
    }

    /// The lines of a 304.
    pub fn validators(&self) -> String {
        let (etag, modified) = (&self.etag, &self.modified);
        format!("ETag: {etag}\r\nLast-Modified: {modified}\r\n")
    }

    /// The lines of a 206, but for the part.
    pub fn validators_and_type(&self) -> String {
        format!(
            "Content-Type: {}\r\n{}",
            self.content_type,
            self.validators()
        )
    }

    fn cost(&self) -> u64 {
        let texts = self.head.capacity() + self.content_type.len() + self.etag.len();
        let body = match &self.contents {
            Contents::Memory(body) => body.len() as u64,
            Contents::Disk(_) => OPEN_FILE_BYTES,
        };
        body + texts as u64
    }
}

/// The type of a file by its name. Texts are taken to be UTF-8, as everything written today is.
fn content_type(real: &[u8]) -> String {
    let name = String::from_utf8_lossy(real);
    let guess = mime_guess::from_path(&*name).first_or_octet_stream();
    let is_text = guess.type_() == "text" || guess.subtype() == "javascript";
    match is_text {
        true => format!("{guess}; charset=utf-8"),
        false => guess.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_milliseconds(millis)
    }

    fn table(bytes_max: u64) -> (tempfile::TempDir, FileTable) {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(place.path()).unwrap());
        (place, FileTable::new(folder, bytes_max))
    }

    fn body(found: Found) -> String {
        match found {
            Found::File(file) => match &file.contents {
                Contents::Memory(body) => String::from_utf8(body.to_vec()).unwrap(),
                Contents::Disk(_) => "disk".into(),
            },
            Found::Directory => "directory".into(),
            Found::Missing => "missing".into(),
        }
    }

    #[test]
    fn a_changed_file_is_seen_after_a_second() {
        let (place, mut table) = table(1 << 20);
        let write = |text: &str| std::fs::write(place.path().join("a.html"), text).unwrap();
        write("one");
        assert_eq!(body(table.find("/a.html", at(0))), "one");
        write("three");
        assert_eq!(body(table.find("/a.html", at(999))), "one");
        assert_eq!(body(table.find("/a.html", at(1001))), "three");
        std::fs::remove_file(place.path().join("a.html")).unwrap();
        assert_eq!(body(table.find("/a.html", at(3000))), "missing");
        write("four");
        assert_eq!(body(table.find("/a.html", at(5000))), "four");
    }

    #[test]
    fn directories_need_their_slash_and_an_index() {
        let (place, mut table) = table(1 << 20);
        std::fs::create_dir(place.path().join("d")).unwrap();
        assert_eq!(body(table.find("/d", at(0))), "directory");
        assert_eq!(body(table.find("/d/", at(0))), "missing");
        std::fs::write(place.path().join("d/index.html"), "index").unwrap();
        assert_eq!(body(table.find("/d/", at(2000))), "index");
        assert_eq!(body(table.find("/d/index.html/", at(2000))), "missing");
        std::fs::write(place.path().join("big"), vec![0; 300 * 1024]).unwrap();
        assert_eq!(body(table.find("/big", at(0))), "disk");
    }

    #[test]
    fn thousands_of_files_stay_within_the_limit() {
        let (place, mut table) = table(200_000);
        for number in 0..1000 {
            std::fs::write(place.path().join(number.to_string()), vec![b'x'; 1000]).unwrap();
        }
        for round in 0..3 {
            for number in 0..1000 {
                let found = table.find(&format!("/{number}"), at(round));
                assert_eq!(body(found).len(), 1000);
                assert_eq!(body(table.find("/0", at(round))).len(), 1000);
                assert!(table.bytes <= 200_000, "{}", table.bytes);
            }
        }
        for number in 0..5000 {
            table.find(&format!("/none/{number}"), at(10));
        }
        assert!(table.bytes <= 200_000);
        assert_eq!(table.entries.len(), table.places.len());
    }

    #[test]
    fn spellings_of_a_large_file_hold_few_descriptors() {
        let (place, mut table) = table(64 * 1024 * 1024);
        std::fs::write(place.path().join("big"), vec![0; 300 * 1024]).unwrap();
        for slashes in 1..=2000 {
            let path = "/".repeat(slashes) + "big";
            assert_eq!(body(table.find(&path, at(0))), "disk");
            assert!(table.entries.len() <= 256, "{}", table.entries.len());
        }
    }

    #[test]
    fn types_follow_names() {
        assert_eq!(content_type(b"a/b.html"), "text/html; charset=utf-8");
        assert_eq!(content_type(b"a.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type(b"a.png"), "image/png");
        assert_eq!(content_type(b"a"), "application/octet-stream");
    }
}
