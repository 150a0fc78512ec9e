//! The manual pages: of every command from the command line's own definition, and of the settings
//! file from the table of settings.

use std::path::Path;

use clap::CommandFactory;
use roff::{Inline, Roff, bold, italic, roman};

use crate::command::CommandLine;
use crate::settings::{SETTINGS, Setting};

/// Name of the page about the settings file.
const SETTINGS_PAGE: &str = "levee.toml.5";

/// Writes all pages into `folder`, which must exist: `levee.1`, one for each command, and
/// `levee.toml.5`.
///
/// # Errors
/// A sentence that names the file that could not be written.
pub fn write(folder: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| {
        format!(
            "cannot write manual pages to {}: {error}; give a folder that exists",
            folder.display()
        )
    };
    clap_mangen::generate_to(CommandLine::command(), folder).map_err(fail)?;
    std::fs::write(folder.join(SETTINGS_PAGE), settings_page()).map_err(fail)
}

/// The page about the settings file, in roff.
fn settings_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["levee.toml", "5", "", "levee", "Levee"]);
    page.control("SH", ["NAME"]);
    page.text([roman("levee.toml - settings of the levee web server")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([
        roman("A TOML file, given to "),
        bold("levee serve -c"),
        roman(
            ". Every setting has a default. A value carries its unit, such as \"54 kB/s\" or \
             \"2 days\". A relative path is seen from the folder of the settings file. ",
        ),
        bold("levee check"),
        roman(" tells every mistake at once, "),
        bold("levee explain"),
        roman(" what every setting is in the end and where that came from."),
    ]);
    let mut table = "";
    for setting in SETTINGS {
        let (group, key) = setting.name.split_once('.').unwrap_or(("", setting.name));
        if group != table {
            table = group;
            page.control("SH", [format!("[{group}]").as_str()]);
        }
        entry(&mut page, key, setting);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("levee"),
        roman("(1), "),
        bold("levee-serve"),
        roman("(1)"),
    ]);
    page.render()
}

fn entry(page: &mut Roff, key: &str, setting: &Setting) {
    page.control("TP", []);
    page.text([bold(key), roman(" = "), italic(setting.kind.name())]);
    let default = match setting.default {
        "" => String::from("No default."),
        default => format!("Default {default}."),
    };
    let range = match setting.range {
        "" => String::new(),
        range => format!(" Range {range}."),
    };
    let facts = format!(
        " {default}{range} Takes effect {}. Example: ",
        setting.change.name()
    );
    let example: Inline = bold(format!("{key} = {}", setting.example));
    page.text([roman(setting.about), roman(facts), example]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_every_setting_has_its_place_in_the_manual() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        for command in CommandLine::command().get_subcommands() {
            let page = read(&format!("levee-{}.1", command.get_name()));
            assert!(page.contains(".SH NAME"), "{page}");
        }
        let page = read(SETTINGS_PAGE);
        for setting in SETTINGS {
            let key = setting.name.split_once('.').unwrap().1;
            assert!(page.contains(&format!("\\fB{key}\\fR = ")), "{key}\n{page}");
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let error = write(Path::new("no/such/folder")).unwrap_err();
        assert!(error.contains("no/such/folder"), "{error}");
    }
}
