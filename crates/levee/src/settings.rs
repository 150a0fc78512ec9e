//! What the operator wants: read from one file, settled into typed values, checked as a whole.
//!
//! Four stages, four types (STYLE.md 6): [`SettingsFile`] mirrors the file and knows the lines,
//! [`Settings`] has every value present and typed, a `Node` is built from it. Each stage gives all
//! its complaints at once. Nothing here opens a socket or touches the disk but [`load`].

mod read;
mod settle;
mod table;
mod value;

use std::io::Read as _;
use std::path::{Path, PathBuf};

pub use read::{Complaint, SettingsFile};
pub use settle::{
    AcmeSettings, AliasZone, AnswerOrder, CacheSettings, ChallengeChoice, CommunitySettings,
    Content, CopiedLinks, CrawlerSettings, DnsSettings, ExternalAccount, FetchTimes, HelpSettings,
    HotSpotSettings, IntegritySettings, LimitSettings, LinkSettings, LogSettings, NameChoice,
    NameServer, OwnServer, Recognition, RescueSettings, Settings, SiteSettings, TlsSettings,
    TrustSettings, UnknownHost, UpstreamTable,
};
pub use table::{Change, SETTINGS, Setting, reference_page};
pub use value::{Kind, rate_or_nothing, socket, time};

/// More than this is no settings file; the largest have some kilobytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Reads and settles the file at `path`.
///
/// # Errors
/// All complaints, each with its line; a file that cannot be read is one complaint.
pub fn load(path: &Path) -> Result<Settings, Vec<Complaint>> {
    Settings::settle(&read_file(path)?)
}

/// The text of a settings file.
///
/// # Errors
/// A sentence for the operator: where it cannot be read, or is longer than any settings are, such
/// as a device or a log that was named by mistake.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > TEXT_BYTES_MAX => Err(format!(
            "{} is longer than {TEXT_BYTES_MAX} bytes: that is no settings file",
            path.display()
        )),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// The settings file at `path`, not yet settled.
///
/// # Errors
/// Where it cannot be read, or is no TOML.
pub fn read_file(path: &Path) -> Result<SettingsFile, Vec<Complaint>> {
    let text = read_text(path).map_err(|text| vec![Complaint { line: None, text }])?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let folder = if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder
    };
    SettingsFile::read(&text, &folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_no_settings_file() {
        let told = load(Path::new("/dev/zero")).expect_err("zeros without end");
        assert!(
            told[0].text.ends_with("that is no settings file"),
            "{told:?}"
        );
    }
}
