//! The settings file into values: the first of four stages (read, settle, plan, build).
//!
//! Knows where each value stood, so that a complaint can name the line. Complains about everything
//! at once, not only about the first mistake: what could not be read is remembered beside what
//! could, and the next stage says what else is wrong. What is only wrong because something could
//! not be read is left out there (see `follows`), or a slip of the pen would be told five times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use levee_vocab::HostName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{self, SETTINGS, Setting};
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
    /// Settings that were most likely meant where something could not be read.
    unread: BTreeSet<&'static str>,
    complaints: Vec<Complaint>,
}

#[derive(Clone, Debug)]
struct Given {
    value: Value,
    written: String,
    line: Option<usize>,
}

impl SettingsFile {
    /// Reads `text`. Relative paths in it are seen from `folder`. What is wrong with single
    /// settings is kept for whoever settles them.
    ///
    /// # Errors
    /// Where it is no TOML.
    pub fn read(text: &str, folder: &Path) -> Result<Self, Vec<Complaint>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let told = errors.iter().map(|error| Complaint {
                line: error.span().map(|span| line_of(text, span.start)),
                text: error.message().to_owned(),
            });
            return Err(told.collect());
        }
        let mut file = Self::default();
        for (section, entry) in document.get_ref() {
            let name = section.get_ref();
            let complaint = match entry.get_ref().as_table() {
                None => Some(file.stray(name)),
                Some(_) if !table::is_section(name) => Some(file.unknown_section(name)),
                Some(keys) => {
                    file.take_all(name, keys, (text, folder));
                    None
                }
            };
            file.complaints.extend(complaint.map(|told| Complaint {
                line: Some(line_of(text, section.span().start)),
                text: told,
            }));
        }
        file.complaints.sort();
        Ok(file)
    }

    /// Sets `name` from the command line, over what the file says.
    pub fn set(&mut self, name: &'static str, text: &str) {
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
            }
            Err(error) => {
                self.unread.insert(name);
                self.complaints.push(Complaint {
                    line: None,
                    text: format!("{name}: {error}"),
                });
            }
        }
    }

    /// What could not be read.
    pub fn complaints(&self) -> &[Complaint] {
        &self.complaints
    }

    /// Whether `complaint` may only be there because something could not be read: it speaks of
    /// that.
    pub fn follows(&self, complaint: &Complaint) -> bool {
        self.unread.iter().any(|name| complaint.text.contains(name))
    }

    /// The settings that have another value here than in `other`, in the order of their table.
    pub fn differences(&self, other: &Self) -> Vec<&'static Setting> {
        let differ = |setting: &&Setting| self.value(setting.name) != other.value(setting.name);
        SETTINGS.iter().filter(differ).collect()
    }

    /// The value of `name`: the one that is given, or the default of the table.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        if let Some(given) = self.given(name) {
            return Some(given.clone());
        }
        let setting = table::find(name).expect("settings are asked for by names of the table");
        if setting.default.is_empty() {
            return None;
        }
        let default = setting.kind.read(setting.default);
        Some(default.expect("a test reads every default"))
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

    fn take_all(&mut self, section: &str, keys: &DeTable<'_>, (text, folder): (&str, &Path)) {
        for (key, value) in keys {
            let name = format!("{section}.{}", key.get_ref());
            let line = line_of(text, key.span().start);
            if let Err(text) = self.take(&name, value, (folder, line)) {
                let line = Some(line);
                self.complaints.push(Complaint { line, text });
            }
        }
    }

    fn take(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        (folder, line): (&Path, usize),
    ) -> Result<(), String> {
        let Some(setting) = table::find(name) else {
            return Err(self.unknown(name));
        };
        let written = written(value.get_ref());
        let value = read_value(setting, value.get_ref()).map_err(|error| {
            self.unread.insert(setting.name);
            format!("{name}: {error}{}", way_out(name, &written))
        })?;
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

    fn unknown(&mut self, name: &str) -> String {
        let Some(near) = table::nearest(name) else {
            return format!("there is no setting `{name}`; {ALL_SETTINGS}");
        };
        self.unread.insert(near);
        format!("there is no setting `{name}`; did you mean `{near}`?")
    }

    fn unknown_section(&mut self, name: &str) -> String {
        let Some(near) = table::nearest_section(name) else {
            return format!("there is no section [{name}]; {ALL_SETTINGS}");
        };
        self.unread.extend(table::section(near));
        format!("there is no section [{name}]; did you mean [{near}]?")
    }

    /// Told of a key that stands in no section.
    fn stray(&mut self, key: &str) -> String {
        let meant = SETTINGS.iter().map(|setting| setting.name);
        let meant = meant.filter(|name| table::parts(name).1 == key);
        self.unread.extend(meant);
        format!("`{key}` must stand in a table such as [site]")
    }
}

const ALL_SETTINGS: &str = "`levee explain --reference` lists all";

/// What else is there for a value that `name` does not take.
fn way_out(name: &str, written: &str) -> String {
    let (host, port) = match written.rsplit_once(':') {
        Some((host, port)) => (host, port),
        None => (written, "7070"),
    };
    let is_name = host.parse::<IpAddr>().is_err() && host.parse::<HostName>().is_ok();
    match is_name && name == "community.registry" {
        true => format!(
            "; a registry is named in community.registries = [\"{host}:{port}\"], and a domain \
             whose DNS names its registries in community.registry_domain = \"{host}\""
        ),
        false => String::new(),
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
        let told = match SettingsFile::read(text, Path::new("/site")) {
            Ok(file) => file.complaints,
            Err(complaints) => complaints,
        };
        told.iter().map(ToString::to_string).collect()
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
    fn what_is_nearly_a_name_is_told_the_name() {
        let found = complaints("[sit]\nname = \"a\"\n[comunity]\n[site]\nnmae = \"a\"\n");
        assert_eq!(
            found,
            [
                "line 1: there is no section [sit]; did you mean [site]?",
                "line 3: there is no section [comunity]; did you mean [community]?",
                "line 5: there is no setting `site.nmae`; did you mean `site.name`?",
            ]
        );
        for far in ["[web]\n", "[log]\nlevel = 3\n", "[log]\nlisten = 3\n"] {
            let found = complaints(far);
            assert!(found[0].ends_with("lists all"), "{far}: {found:#?}");
        }
    }

    #[test]
    fn a_registry_with_a_name_is_told_where_it_belongs() {
        let found = |registry| complaints(&format!("[community]\nregistry = \"{registry}\"\n"));
        for (registry, place) in [
            ("name.example", "name.example:7070"),
            ("name.example:71", "name.example:71"),
        ] {
            let told = &found(registry)[0];
            let expected = format!("community.registries = [\"{place}\"]");
            assert!(told.contains(&expected), "{told}");
            let expected = "community.registry_domain = \"name.example\"";
            assert!(told.contains(expected), "{told}");
        }
        let told = &found("192.0.2.7")[0];
        assert!(!told.contains("community.registries"), "{told}");
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
