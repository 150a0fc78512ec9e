//! The settings file into values: the first of four stages (read, settle, plan, build).
//!
//! Knows where each value stood, so that a complaint can name the line. Complains about everything
//! at once, not only about the first mistake.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{self, Setting};
use super::value::{Kind, Value};

/// Something wrong with a settings file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Line, from 1; none for what is missing or was given on the command line.
    pub line: Option<usize>,
    /// What is wrong, and the way out.
    pub text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What a settings file says, by setting.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    given: BTreeMap<&'static str, Given>,
}

#[derive(Clone, Debug)]
struct Given {
    value: Value,
    written: String,
    line: Option<usize>,
}

impl SettingsFile {
    /// Reads `text`. Relative paths in it are seen from `folder`.
    pub fn read(text: &str, folder: &Path) -> Result<Self, Vec<Complaint>> {
        let mut complaints = vec![];
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| line_of(text, span.start));
            complaints.push(Complaint {
                line,
                text: error.message().to_owned(),
            });
        }
        let mut file = Self::default();
        for (group, entry) in document.get_ref() {
            let line = line_of(text, group.span().start);
            let Some(keys) = entry.get_ref().as_table() else {
                let text = format!("`{}` must stand in a table such as [site]", group.get_ref());
                complaints.push(Complaint {
                    line: Some(line),
                    text,
                });
                continue;
            };
            for (key, value) in keys {
                let name = format!("{}.{}", group.get_ref(), key.get_ref());
                let line = line_of(text, key.span().start);
                if let Err(text) = file.take(&name, value, folder, line) {
                    complaints.push(Complaint {
                        line: Some(line),
                        text,
                    });
                }
            }
        }
        complaints.sort();
        if complaints.is_empty() {
            Ok(file)
        } else {
            Err(complaints)
        }
    }

    /// Sets `name` from the command line, over what the file says.
    pub fn set(&mut self, name: &'static str, text: &str) -> Result<(), Complaint> {
        let setting = table::find(name).expect("the command line names settings of the table");
        match setting.kind.read(text) {
            Ok(value) => {
                self.given.insert(
                    name,
                    Given {
                        value,
                        written: text.into(),
                        line: None,
                    },
                );
                Ok(())
            }
            Err(error) => Err(Complaint {
                line: None,
                text: format!("{name}: {error}"),
            }),
        }
    }

    /// The value of `name` if the file gives one.
    pub fn given(&self, name: &str) -> Option<&Value> {
        self.given.get(name).map(|given| &given.value)
    }

    /// How `name` was written, and its line; no line where the command line gave it.
    pub fn written(&self, name: &str) -> Option<(&str, Option<usize>)> {
        self.given
            .get(name)
            .map(|given| (given.written.as_str(), given.line))
    }

    /// The line at which `name` stands.
    pub fn line(&self, name: &str) -> Option<usize> {
        self.given.get(name).and_then(|given| given.line)
    }

    fn take(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        folder: &Path,
        line: usize,
    ) -> Result<(), String> {
        let setting = table::find(name).ok_or_else(|| unknown(name))?;
        let written = written(value.get_ref());
        let value =
            read_value(setting, value.get_ref()).map_err(|error| format!("{name}: {error}"))?;
        let value = if let Value::Path(path) = value {
            // Shown as one path: no `././public` from `./public` beside `./levee.toml`.
            Value::Path(folder.join(path).components().collect())
        } else {
            value
        };
        self.given.insert(
            setting.name,
            Given {
                value,
                written,
                line: Some(line),
            },
        );
        Ok(())
    }
}

/// A value as a person would write it again.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| written(part.get_ref())).collect();
            parts.join(", ")
        }
        DeValue::Table(_) | DeValue::Datetime(_) => String::new(),
    }
}

fn unknown(name: &str) -> String {
    match table::nearest(name) {
        Some(near) => format!("there is no setting `{name}`; did you mean `{near}`?"),
        None => format!("there is no setting `{name}`; `levee explain --reference` lists all"),
    }
}

fn read_value(setting: &Setting, value: &DeValue<'_>) -> Result<Value, String> {
    let expected = || format!("takes {}, e.g. {}", setting.kind.name(), setting.example);
    match value {
        DeValue::String(text) => setting.kind.read(text),
        DeValue::Integer(number) if setting.kind.is_number() => setting.kind.read(number.as_str()),
        DeValue::Float(number) if setting.kind.is_number() => setting.kind.read(number.as_str()),
        DeValue::Boolean(flag) if setting.kind == Kind::Flag => {
            setting.kind.read(&flag.to_string())
        }
        DeValue::Array(parts) if setting.kind.is_list() => read_list(setting, parts.iter()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Array(_)
        | DeValue::Table(_)
        | DeValue::Datetime(_) => Err(expected()),
    }
}

/// A list gives its parts; an empty one is a way of saying "none", and so a mistake where there has
/// to be one.
fn read_list<'a, 'i: 'a>(
    setting: &Setting,
    parts: impl Iterator<Item = &'a Spanned<DeValue<'i>>>,
) -> Result<Value, String> {
    let mut all = setting.kind.empty_list();
    let mut count = 0;
    for part in parts {
        if !part.get_ref().is_str() {
            let (takes, example) = (setting.kind.name(), setting.example);
            return Err(format!("takes {takes}, e.g. {example}"));
        }
        all.append(read_value(setting, part.get_ref())?);
        count += 1;
    }
    // No addresses at all are an answer to who may do something: nobody.
    if count == 0 && !setting.default.is_empty() && setting.kind != Kind::Blocks {
        let example = setting.example;
        return Err(format!(
            "is empty; give one, e.g. {example}, or leave it out"
        ));
    }
    Ok(all)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let read = SettingsFile::read(text, Path::new("/site"));
        read.err()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn all_mistakes_are_told_at_once_with_their_lines() {
        let found = complaints("[site]\nnam = \"a\"\nlisten = [\"here\"]\n[link]\nrate = 54\n");
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].starts_with("line 2: ") && found[0].contains("did you mean `site.name`"));
        assert!(found[1].starts_with("line 3: ") && found[1].contains("127.0.0.1:8080"));
        assert!(found[2].starts_with("line 5: ") && found[2].contains("54 kB/s"));
    }

    #[test]
    fn broken_toml_is_told_with_its_line() {
        let found = complaints("[site]\nname = \n");
        assert!(found[0].starts_with("line 2: "), "{found:#?}");
        assert!(complaints("name = \"a\"\n")[0].contains("[site]"));
    }

    #[test]
    fn paths_are_seen_from_the_settings_folder() {
        let file = SettingsFile::read("[site]\nfolder = \"public\"\n", Path::new("/site"));
        let file = file.expect("a good file");
        assert_eq!(
            file.given("site.folder"),
            Some(&Value::Path("/site/public".into()))
        );
        assert_eq!(file.line("site.folder"), Some(2));
        let clean = |folder: &str, path: &str| {
            let text = format!("[site]\nfolder = \"{path}\"\n");
            let file = SettingsFile::read(&text, Path::new(folder)).expect("a good file");
            match file.given("site.folder") {
                Some(Value::Path(path)) => path.display().to_string(),
                other => panic!("a path, not {other:?}"),
            }
        };
        assert_eq!(clean(".", "./publi"), "./publi");
        assert_eq!(clean("", "publi"), "publi");
        assert_eq!(clean("/etc/levee/.", "./../www/"), "/etc/levee/../www");
    }
}
