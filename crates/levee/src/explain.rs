//! `levee explain`: what a settings file means, before it runs.

use std::fmt::Write;
use std::path::Path;

use crate::settings::{self, Complaint, SETTINGS, Settings, SettingsFile};

/// The report of `levee explain`: each setting, its value, and where it came from.
///
/// # Errors
/// Every complaint, one a line, with the file's name before it.
pub fn explain(path: Option<&Path>) -> Result<String, String> {
    let file = match path {
        Some(path) => {
            let complain = |complaints: Vec<Complaint>| told(path, &complaints);
            let file = settings::read_file(path).map_err(complain)?;
            Settings::settle(&file).map_err(complain)?;
            file
        }
        None => SettingsFile::default(),
    };
    let mut report = String::new();
    for setting in SETTINGS {
        let (value, from) = match (file.written(setting.name), setting.default) {
            (Some((value, Some(line))), _) => (value.to_owned(), format!("line {line}")),
            (Some((value, None)), _) => (value.to_owned(), "command line".to_owned()),
            (None, "") => ("-".to_owned(), "not set".to_owned()),
            (None, default) => (default.to_owned(), "default".to_owned()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(report, "{:<30} {:<28} {from}", setting.name, value);
    }
    Ok(report)
}

/// Complaints as the operator reads them.
pub fn told(path: &Path, complaints: &[Complaint]) -> String {
    let lines: Vec<_> = complaints
        .iter()
        .map(|complaint| format!("{}: {complaint}", path.display()))
        .collect();
    lines.join("\n")
}
