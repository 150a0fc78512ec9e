//! A site's folder as web pages.
//!
//! Small files stand in a table in memory, with their heads ready to be sent; the table looks at
//! the disk at most once a second for each. Large files are opened once and sent by the kernel.
//! What may be opened at all is decided in [`folder`]: nothing outside the folder, nothing that
//! begins with a dot.
//!
//! Reads of the disk happen on the core that needs them. That is a choice: the files of a small
//! site are in the page cache after their first use, and handing reads to other threads would cost
//! every request what only the first one needs.

mod conditions;
mod folder;
mod table;

pub(crate) use conditions::{Conditions, Judgement, Validators, judge};
pub use folder::{Folder, FolderError};
pub(crate) use table::{Contents, FileEntry, FileTable, Found};
