//! A site's folder as web pages.
//!
//! Small files stand in a table in memory, with their heads ready to be sent; the table looks at
//! the disk at most once a second for each. Large files are opened once and sent by the kernel.
//! What may be opened at all is decided in [`folder`]: nothing outside the folder, nothing that
//! begins with a dot.
//!
//! A visitor gets the smallest coding that it takes: what lies compressed beside the file, or what
//! a thread beside the cores has made of it ([`compressor`]).
//!
//! Reads of the disk happen on the core that needs them. That is a choice: the files of a small
//! site are in the page cache after their first use, and handing reads to other threads would cost
//! every request what only the first one needs.

mod coding;
mod compressor;
mod conditions;
mod entry;
mod folder;
mod ranges;
mod table;

pub(crate) use coding::Accepted;
pub(crate) use compressor::{Compressed, Compressor, Job, Queued};
pub(crate) use conditions::{Conditions, Judgement, Validators, judge};
pub(crate) use entry::FileEntry;
pub use folder::{Folder, FolderError};
#[cfg(any(test, fuzzing))]
pub(crate) use ranges::fuzzed_cut;
pub(crate) use table::{Contents, FileTable, Found};
