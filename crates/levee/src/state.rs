//! What must outlive a crash: the aliases that this server gave out (R8), what it gave to others in
//! the last day (`given`), and what other parts keep here.
//!
//! One small text file for each, a line an entry, replaced as a whole: written to a second file,
//! flushed, renamed. So whatever moment the power fails at, either the old list is there or the new
//! one, and a restarted server still sends the visitors of its old aliases back to their origin
//! servers and never gives a number out twice. Deliberately no database: a list has tens of lines.

mod entries;
mod given;
mod off_thread;
#[cfg(test)]
pub(crate) mod slow_file;
mod troubles;
mod watch;
mod whole_file;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levee_control::{AliasRecord, OwnName};
use levee_net::Shared;
use levee_vocab::WebAddress;
use thiserror::Error;

pub use entries::entries_at;
use entries::text_at;
pub use off_thread::off_thread;
use troubles::Troubles;
pub use watch::{StateWatch, has_no_room};
pub use whole_file::{Readers, replace};

const FILE: &str = "aliases";
/// A block of a disk: no file of ours takes less.
const PROBE: [u8; 4096] = [0; 4096];
const HEADER: &str =
    "# levee aliases 1: number alias origin port, its port for https, dns if its name led here";
/// Ends the line of an alias whose origin had us in its DNS.
const IN_DNS: &str = " dns";

/// The state folder. Clones are the same folder.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
    troubles: Arc<Troubles>,
    /// Held by whoever writes: no older text of a file ever comes after a newer one.
    writing: Arc<Shared<()>>,
}

/// What can go wrong with the state folder.
#[derive(Debug, Error)]
pub enum StateError {
    /// The folder cannot be made.
    #[error("cannot use state folder {path}: {error}{}", way_out(error))]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {error}{}", way_out(error))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error(
        "cannot write `{file}` in state folder {path}: {error}{}",
        way_out(error)
    )]
    Write {
        /// The file.
        file: String,
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A line is not one of ours.
    #[error("{path} line {line} is damaged: `{text}`; mend or delete that line")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// What an operator can do about `error`.
pub(crate) fn way_out(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::StorageFull {
        "; make room on its disk"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "; give it to the user that runs levee"
    } else if error.kind() == io::ErrorKind::InvalidData {
        "; mend or delete the file"
    } else if error.kind() == io::ErrorKind::IsADirectory {
        "; move it away"
    } else {
        ""
    }
}

impl StateFolder {
    /// Opens the folder and makes it if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        fs::create_dir_all(path).map_err(|error| StateError::Io {
            path: path.into(),
            error,
        })?;
        Ok(Self {
            path: path.into(),
            troubles: Arc::default(),
            writing: Arc::default(),
        })
    }

    /// Which files could not be written and why, in words; empty where all could.
    pub fn trouble(&self) -> String {
        self.troubles.told()
    }

    /// Writes a small file and takes it away, to find out whether the aliases can be written. That
    /// it can be does not end a trouble: what could not be written may be in the way itself.
    pub fn probe(&self) {
        let place = self.path.join("probe");
        let written = fs::write(&place, PROBE).and_then(|()| fs::remove_file(&place));
        if let Err(error) = written {
            // What a full disk took of it takes no room from others.
            let _ = fs::remove_file(&place);
            let why = self.cannot_write(FILE, error).to_string();
            self.troubles.note(FILE, why, None);
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The aliases that were given out before.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged. A missing file is an empty list.
    pub fn aliases(&self) -> Result<Vec<AliasRecord>, StateError> {
        self.entries(FILE, parse)
    }

    /// Writes the aliases so that they survive a crash from now on. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When the disk is full or the folder is gone; the old list is still there then.
    pub fn remember(&self, records: &[AliasRecord]) -> Result<(), StateError> {
        self.replace(FILE, &text_of(records))
    }

    /// These aliases are in force, for [`StateFolder::try_again`]. Never waits for the disk.
    fn remember_later(&self, records: &[AliasRecord]) {
        self.try_later(FILE, &text_of(records));
    }

    /// What `parse` makes of each line of `file`; nothing where there is no file.
    ///
    /// # Errors
    /// As those of [`entries_at`].
    pub fn entries<T>(
        &self,
        file: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, StateError> {
        entries_at(&self.path.join(file), parse)
    }

    /// Gives `file` of the folder this text, so that it survives a crash from now on. Blocks for
    /// two disk flushes.
    ///
    /// # Errors
    /// When the disk is full or the folder is gone; the old text is still there then.
    pub fn replace(&self, file: &str, text: &str) -> Result<(), StateError> {
        self.writing.with(|()| self.write(file, text, None))
    }

    /// As [`StateFolder::replace`], for a text that is in force whether or not it can be written:
    /// it is tried again until it can be, or a newer one.
    ///
    /// # Errors
    /// As [`StateFolder::replace`].
    pub fn keep(&self, file: &str, text: &str) -> Result<(), StateError> {
        self.writing.with(|()| self.write(file, text, Some(text)))
    }

    /// The text that is in force for a file that could not be written. Nothing where it could.
    /// Never waits for the disk.
    pub fn try_later(&self, file: &str, text: &str) {
        self.troubles.try_later(file, text);
    }

    /// Writes once more what could not be written, where the text in force is known. Blocks for
    /// two disk flushes a file.
    pub fn try_again(&self) {
        for (file, text) in self.troubles.to_try() {
            self.writing.with(|()| {
                // Somebody may have written meanwhile, and knows better.
                if self.troubles.is_to_try(&file, &text) {
                    // Why it failed is the file's trouble.
                    let _ = self.write(&file, &text, Some(&text));
                }
            });
        }
    }

    fn write(&self, file: &str, text: &str, again: Option<&str>) -> Result<(), StateError> {
        match replace(&self.path.join(file), text, Readers::Everybody) {
            Ok(()) => {
                self.troubles.end(file);
                Ok(())
            }
            Err(error) => {
                let error = self.cannot_write(file, error);
                self.troubles.note(file, error.to_string(), again);
                Err(error)
            }
        }
    }

    fn cannot_write(&self, file: &str, error: io::Error) -> StateError {
        StateError::Write {
            file: file.into(),
            path: self.path.clone(),
            error,
        }
    }

    /// The text of `file` of the folder; none where there is no such file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, file: &str) -> Result<Option<String>, StateError> {
        text_at(&self.path.join(file))
    }
}

fn text_of(records: &[AliasRecord]) -> String {
    let mut text = format!("{HEADER}\n");
    for AliasRecord {
        number,
        alias,
        origin,
        tls,
        own_name,
    } in records
    {
        text.push_str(&format!("{number} {alias} {} {}", origin.host, origin.port));
        if let Some(port) = tls {
            text.push_str(&format!(" {port}"));
        }
        match own_name {
            OwnName::Here => text.push_str(IN_DNS),
            OwnName::Elsewhere => {}
        }
        text.push('\n');
    }
    text
}

fn parse(line: &str) -> Option<AliasRecord> {
    let (line, own_name) = match line.strip_suffix(IN_DNS) {
        Some(line) => (line, OwnName::Here),
        None => (line, OwnName::Elsewhere),
    };
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let alias = words.next()?.parse().ok()?;
    let host = words.next()?.parse().ok()?;
    let port = words.next()?.parse().ok()?;
    let tls = match words.next() {
        Some(word) => Some(word.parse().ok()?),
        None => None,
    };
    words.next().is_none().then_some(AliasRecord {
        number,
        alias,
        origin: WebAddress { host, port },
        tls,
        own_name,
    })
}

/// A line of any file of the folder, for `crate::fuzzing`.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed_line(line: &str) {
    if let Some(record) = parse(line) {
        assert!(line.contains(record.alias.as_str()) || line.contains(char::is_uppercase));
    }
    let given = given::parse(line, 0);
    assert!(given.is_none_or(|given| given.left.subsec_nanos() == 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> AliasRecord {
        AliasRecord {
            number,
            alias: format!("www-vh{number}.example.net")
                .parse()
                .expect("a good alias"),
            origin: WebAddress {
                host: "www.example.org".parse().expect("a good name"),
                port: 8080,
            },
            tls: (number == 2).then_some(8443),
            own_name: match number {
                1 => OwnName::Elsewhere,
                _ => OwnName::Here,
            },
        }
    }

    #[test]
    fn aliases_survive_a_restart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(&folder.path().join("new")).expect("the folder is made");
        assert_eq!(state.aliases().expect("nothing yet"), vec![]);
        state.remember(&[record(1)]).expect("room on the disk");
        state
            .remember(&[record(1), record(2), record(3)])
            .expect("room on the disk");
        assert_eq!(
            state.aliases().expect("three lines"),
            vec![record(1), record(2), record(3)]
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_until_it_can() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(folder.path()).expect("the folder is there");
        let in_the_way = folder.path().join(FILE);
        fs::create_dir(&in_the_way).expect("a folder where the file should be");
        state
            .remember(&[record(1)])
            .expect_err("nothing is written");
        let shown = state.clone();
        assert!(
            shown.trouble().contains("cannot write `aliases`"),
            "{}",
            shown.trouble()
        );
        fs::remove_dir(&in_the_way).expect("removed");
        state.remember(&[record(1)]).expect("room on the disk");
        assert_eq!(shown.trouble(), "");
    }

    #[test]
    fn a_file_that_can_be_written_hides_no_other_that_cannot() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(folder.path()).expect("the folder is there");
        for file in ["first", "second"] {
            fs::create_dir(folder.path().join(file)).expect("a folder in the way");
            state.keep(file, "old").expect_err("it is in the way");
            let half = folder.path().join(format!("{file}.new"));
            assert!(!half.exists(), "it takes no room");
        }
        state.replace("third", "text").expect("room on the disk");
        let told = state.trouble();
        assert!(
            told.contains("`first`") && told.contains("`second`"),
            "{told}"
        );
        fs::remove_dir(folder.path().join("second")).expect("removed");
        state.try_again();
        let told = state.trouble();
        assert!(
            told.contains("`first`") && !told.contains("`second`"),
            "{told}"
        );
        fs::remove_dir(folder.path().join("first")).expect("removed");
        state.try_later("first", "new");
        state.try_again();
        assert_eq!(state.trouble(), "");
        let texts = ["first", "second"].map(|file| state.read(file).expect("a text"));
        assert_eq!(texts, [Some("new".into()), Some("old".into())]);
    }

    #[test]
    fn a_damaged_line_is_named_and_not_guessed_at() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let state = StateFolder::open(folder.path()).expect("the folder is there");
        fs::write(folder.path().join(FILE), "# x\n1 www-vh1.example.net\n").expect("written");
        let error = state
            .aliases()
            .expect_err("a line with two words")
            .to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
