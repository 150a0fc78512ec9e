//! What the operator wants: read from one file, settled into typed values, checked as a whole.
//!
//! Four stages, four types (STYLE.md 6): [`SettingsFile`] mirrors the file and knows the lines,
//! [`Settings`] has every value present and typed, a `Node` is built from it. Each stage gives all
//! its complaints at once. Nothing here opens a socket or touches the disk but [`load`].

mod read;
mod settle;
mod table;
mod value;

use std::path::{Path, PathBuf};

pub use read::{Complaint, SettingsFile};
pub use settle::{
    CacheSettings, CommunitySettings, Content, FetchTimes, LimitSettings, LinkSettings,
    LogSettings, RescueSettings, Settings, SiteSettings, TlsSettings, UnknownHost, UpstreamTable,
};
pub use table::{Change, SETTINGS, Setting, reference_page};
pub use value::Kind;

/// Reads and settles the file at `path`.
///
/// # Errors
/// All complaints, each with its line; a file that cannot be read is one complaint.
pub fn load(path: &Path) -> Result<Settings, Vec<Complaint>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![Complaint {
            line: None,
            text: format!("cannot read {}: {error}", path.display()),
        }]
    })?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let folder = if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder
    };
    Settings::settle(&SettingsFile::read(&text, &folder)?)
}
