//! Files that were asked for lately, ready to be sent. One table per core and site: no locks.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use levee_vocab::Timestamp;

use super::coding::Coding;
use super::compressor::Compressed;
use super::entry::FileEntry;
use super::folder::{Folder, Opened, Stamp, relative};

/// The table.
#[derive(Debug)]
pub(crate) struct FileTable {
    /// The folder of the site, by which it is known to others.
    folder: Arc<Folder>,
    /// What stands at its path by now.
    current: Arc<Folder>,
    placed: Timestamp,
    /// What was found up to then may have changed.
    distrusted: Option<Timestamp>,
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
    /// There is something that this process may not read.
    Forbidden,
    /// It could not be read just now.
    Unavailable,
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Contents {
    Memory(Bytes),
    Disk(Arc<File>),
}

impl Contents {
    /// What `file` holds; none where somebody writes to it just now.
    pub fn read(mut file: File, stamp: Stamp) -> Option<Self> {
        if stamp.size > SMALL_FILE_MAX {
            return Some(Self::Disk(Arc::new(file)));
        }
        let mut body = Vec::with_capacity(usize::try_from(stamp.size).ok()?);
        file.by_ref()
            .take(SMALL_FILE_MAX)
            .read_to_end(&mut body)
            .ok()?;
        // Half a file is worse than none.
        (body.len() as u64 == stamp.size).then(|| Self::Memory(body.into()))
    }

    /// What it counts for in the table.
    pub fn cost(&self) -> u64 {
        match self {
            Self::Memory(body) => body.len() as u64,
            Self::Disk(_) => OPEN_FILE_BYTES,
        }
    }
}

/// Files up to this size are held in memory. Above it the kernel sends them itself: at 100 KB that
/// costs half of copying them (`cargo xtask bench peers --only hot_100k`).
const SMALL_FILE_MAX: u64 = 64 * 1024;
/// What a file that is held open counts for. It takes no memory to speak of, but there are far
/// fewer descriptors than bytes, and one file has as many spellings in a URL as a visitor likes.
const OPEN_FILE_BYTES: u64 = SMALL_FILE_MAX;

#[derive(Debug)]
struct Entry {
    path: Rc<str>,
    /// Relative path in the folder, with the index file's name.
    real: Vec<u8>,
    stamp: Option<Stamp>,
    /// Files beside it that were compressed beforehand, or could be put there.
    beside: Vec<(Coding, Option<Stamp>)>,
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

/// How old what is known of a file may be.
const CHECKED_MAX: Duration = Duration::from_secs(1);
/// What an entry costs beside its texts and its body.
const ENTRY_BYTES: u64 = 320;

impl FileTable {
    /// An empty table of `folder` that holds at most `bytes_max`, its index included.
    pub fn new(folder: Arc<Folder>, bytes_max: u64) -> Self {
        Self {
            current: Arc::clone(&folder),
            folder,
            placed: Timestamp::ZERO,
            distrusted: None,
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
        if let Some(found) = self.known(path, now) {
            return found;
        }
        self.look_at_place(now);
        if let Some(&place) = self.places.get(path) {
            let entry = &mut self.entries[place];
            if entry.stamp.is_some() && entry.is_unchanged(&self.current) {
                entry.checked = now;
                return entry.found.clone();
            }
            self.remove(place);
        }
        let entry = self.look_up(path, now);
        let found = entry.found.clone();
        match found {
            // The next visitor may be luckier.
            Found::Unavailable => {}
            Found::File(_) | Found::Directory | Found::Missing | Found::Forbidden => {
                self.insert(entry);
            }
        }
        found
    }

    /// What was found up to now may have changed: it is looked at again before it is served.
    pub fn recheck(&mut self, now: Timestamp) {
        self.distrusted = Some(now);
        self.placed = Timestamp::ZERO;
    }

    /// What was found a moment ago.
    fn known(&mut self, path: &str, now: Timestamp) -> Option<Found> {
        let entry = &mut self.entries[*self.places.get(path)?];
        entry.used = Used::Lately;
        let is_trusted = self.distrusted.is_none_or(|until| entry.checked > until);
        let is_new = now.since(entry.checked) < CHECKED_MAX;
        (is_new && is_trusted).then(|| entry.found.clone())
    }

    /// Goes over to the folder that stands at the path now, where it was exchanged.
    fn look_at_place(&mut self, now: Timestamp) {
        if now.since(self.placed) < CHECKED_MAX {
            return;
        }
        self.placed = now;
        if let Some(next) = self.current.replaced() {
            self.current = Arc::new(next);
            self.places.clear();
            self.entries.clear();
            self.bytes = 0;
        }
    }

    /// Takes a file in that was compressed, where it has not changed meanwhile.
    pub fn attach(&mut self, compressed: &Compressed) {
        let (Some(&place), Some(body)) =
            (self.places.get(compressed.path.as_str()), &compressed.body)
        else {
            return;
        };
        let entry = &mut self.entries[place];
        let Found::File(file) = &entry.found else {
            return;
        };
        if entry.stamp != Some(compressed.stamp) || file.has(compressed.coding) {
            return;
        }
        let file = file.with(
            compressed.coding,
            Contents::Memory(body.clone()),
            body.len() as u64,
        );
        let more = file.cost() - entry.file_cost();
        entry.found = Found::File(Rc::new(file));
        entry.cost += more;
        self.bytes += more;
        self.shrink(0);
    }

    fn look_up(&self, path: &str, now: Timestamp) -> Entry {
        let mut entry = Entry {
            path: path.into(),
            real: Vec::new(),
            stamp: None,
            beside: Vec::new(),
            found: Found::Missing,
            checked: now,
            used: Used::Lately,
            cost: ENTRY_BYTES + 2 * path.len() as u64,
        };
        let Some(mut real) = relative(path) else {
            return entry;
        };
        let mut opened = self.current.find(&real);
        if matches!(opened, Opened::Directory) {
            if !path.ends_with('/') {
                entry.found = Found::Directory;
                return entry;
            }
            if !real.is_empty() {
                real.push(b'/');
            }
            real.extend_from_slice(b"index.html");
            opened = self.current.find(&real);
        } else if path.ends_with('/') {
            // `/page.html/` is not `/page.html`: its relative links would lead elsewhere.
            return entry;
        }
        entry.real = real;
        entry.found = match opened {
            Opened::File(file, stamp) => match FileEntry::read(file, stamp, &entry.real) {
                Some(found) => {
                    entry.stamp = Some(stamp);
                    let found = self.with_siblings(found, &mut entry);
                    entry.cost += found.cost();
                    Found::File(Rc::new(found))
                }
                // Somebody writes to it.
                None => Found::Unavailable,
            },
            // A folder without an index.
            Opened::Directory | Opened::Nothing => Found::Missing,
            Opened::Forbidden => Found::Forbidden,
            Opened::Unavailable => Found::Unavailable,
        };
        entry
    }

    /// The file with those beside it that were compressed beforehand: `page.html.br` and the like,
    /// where they are not older than the file itself.
    fn with_siblings(&self, mut found: FileEntry, entry: &mut Entry) -> FileEntry {
        if !found.gains() {
            return found;
        }
        for coding in Coding::ALL {
            let opened = self.current.find(&beside(&entry.real, coding));
            let (contents, stamp) = match opened {
                Opened::File(file, stamp) => (Contents::read(file, stamp), Some(stamp)),
                Opened::Directory | Opened::Nothing | Opened::Forbidden | Opened::Unavailable => {
                    (None, None)
                }
            };
            entry.beside.push((coding, stamp));
            if let (Some(contents), Some(stamp)) = (contents, stamp)
                && stamp.is_not_older_than(&found.stamp)
            {
                found = found.with(coding, contents, stamp.size);
            }
        }
        found
    }

    fn insert(&mut self, entry: Entry) {
        if entry.cost > self.bytes_max / 4 {
            // One file must not push out all others; it is read again each time.
            return;
        }
        self.shrink(entry.cost);
        self.bytes += entry.cost;
        self.places
            .insert(Rc::clone(&entry.path), self.entries.len());
        self.entries.push(entry);
    }

    /// Makes room for `cost` more bytes.
    fn shrink(&mut self, cost: u64) {
        while self.bytes + cost > self.bytes_max && !self.entries.is_empty() {
            self.evict_one();
        }
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

impl Entry {
    /// Whether the file and all beside it look as they did.
    fn is_unchanged(&self, folder: &Folder) -> bool {
        let same = |(coding, stamp): &(Coding, Option<Stamp>)| {
            folder.stamp(&beside(&self.real, *coding)) == *stamp
        };
        folder.stamp(&self.real) == self.stamp && self.beside.iter().all(same)
    }

    fn file_cost(&self) -> u64 {
        match &self.found {
            Found::File(file) => file.cost(),
            Found::Directory | Found::Missing | Found::Forbidden | Found::Unavailable => 0,
        }
    }
}

/// Where a file that was compressed beforehand would lie.
fn beside(real: &[u8], coding: Coding) -> Vec<u8> {
    [real, coding.suffix().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::files::coding::Accepted;

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
            Found::Forbidden => "forbidden".into(),
            Found::Unavailable => "unavailable".into(),
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
            assert!(table.entries.len() <= 1024, "{}", table.entries.len());
        }
    }

    fn coded(found: &Found, field: &str) -> (String, String) {
        let Found::File(file) = found else {
            panic!("a file");
        };
        let chosen = FileEntry::representation(file, Accepted::of(Some(field.as_bytes())));
        let head = String::from_utf8(chosen.head.clone()).unwrap();
        (body(Found::File(chosen)), head)
    }

    #[test]
    fn files_compressed_beforehand_are_found_unless_they_are_older() {
        let (place, mut table) = table(1 << 20);
        let write = |name: &str, text: &str, seconds| {
            let file = File::create(place.path().join(name)).unwrap();
            (&file).write_all(text.as_bytes()).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
                .unwrap();
        };
        write("a.css", "a long text", 1000);
        write("a.css.gz", "short", 1000);
        write("a.css.br", "old", 999);
        write("a.png", "picture", 1000);
        write("a.png.gz", "pic", 1000);
        let found = table.find("/a.css", at(0));
        let (body, head) = coded(&found, "gzip, br");
        assert_eq!(body, "short");
        assert!(head.contains("Content-Encoding: gzip\r\n"), "{head}");
        assert!(head.contains("Vary: Accept-Encoding\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/css; charset=utf-8\r\n"));
        let (body, plain) = coded(&found, "zstd");
        assert_eq!(body, "a long text");
        assert!(plain.contains("Vary: Accept-Encoding\r\n"), "{plain}");
        let etag = |head: &str| {
            head.lines()
                .find(|line| line.starts_with("ETag"))
                .map(str::to_owned)
        };
        assert_ne!(etag(&head), etag(&plain));
        assert_eq!(coded(&table.find("/a.png", at(0)), "gzip").0, "picture");
        write("a.css.br", "new", 1000);
        assert_eq!(coded(&table.find("/a.css", at(2000)), "gzip, br").0, "new");
    }

    #[test]
    fn what_was_compressed_meanwhile_is_taken_in_unless_the_file_has_changed() {
        let (place, mut table) = table(1 << 20);
        let text = "text ".repeat(1000);
        std::fs::write(place.path().join("a.txt"), &text).unwrap();
        let Found::File(file) = table.find("/a.txt", at(0)) else {
            panic!("a file");
        };
        let accepted = Accepted::of(Some(b"gzip"));
        assert_eq!(file.wish(accepted), Some(Coding::Gzip));
        assert_eq!(file.wish(Accepted::of(None)), None);
        let result = |stamp| Compressed {
            folder: Arc::clone(table.folder()),
            path: "/a.txt".to_owned(),
            stamp,
            coding: Coding::Gzip,
            body: Some(Bytes::from_static(b"tiny")),
        };
        let (mine, before) = (result(file.stamp), table.bytes);
        table.attach(&mine);
        assert!(table.bytes > before);
        let found = table.find("/a.txt", at(1));
        assert_eq!(coded(&found, "gzip").0, "tiny");
        assert_eq!(coded(&found, "identity").0, text);
        std::fs::write(place.path().join("a.txt"), "other").unwrap();
        table.find("/a.txt", at(2000));
        table.attach(&mine);
        assert_eq!(coded(&table.find("/a.txt", at(2000)), "gzip").0, "other");
    }

    #[test]
    fn an_exchanged_folder_is_seen_after_a_second() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["site", "next"] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("a"), name).unwrap();
        }
        let folder = Arc::new(Folder::open(&path("site")).unwrap());
        let mut table = FileTable::new(folder, 1 << 20);
        assert_eq!(body(table.find("/a", at(1000))), "site");
        std::fs::rename(path("site"), path("before")).unwrap();
        std::fs::rename(path("next"), path("site")).unwrap();
        assert_eq!(body(table.find("/a", at(3000))), "next");
    }
}
