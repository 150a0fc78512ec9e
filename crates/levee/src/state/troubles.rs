//! Which files of a state folder could not be written, why, and what is to be written there.
//!
//! Kept by file: that one could be written says nothing of another. Where the text in force is
//! known it can be tried again, by whoever may wait for the disk; nothing here waits.

use std::collections::BTreeMap;

use levee_net::Shared;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Troubles(Shared<BTreeMap<String, Trouble>>);

#[derive(Debug)]
struct Trouble {
    why: String,
    /// What is to stand there; none where it is not known yet.
    text: Option<String>,
}

impl Troubles {
    /// `file` could not be written. `text` is what is in force all the same.
    pub(super) fn note(&self, file: &str, why: String, text: Option<&str>) {
        let text = text.map(str::to_owned);
        self.0
            .with(|all| all.insert(file.into(), Trouble { why, text }));
    }

    /// This is to stand in `file`, if it is in trouble.
    pub(super) fn try_later(&self, file: &str, text: &str) {
        self.0.with(|all| {
            if let Some(trouble) = all.get_mut(file) {
                trouble.text = Some(text.into());
            }
        });
    }

    /// `file` was written.
    pub(super) fn end(&self, file: &str) {
        self.0.with(|all| all.remove(file));
    }

    /// All of them, for people.
    pub(super) fn told(&self) -> String {
        self.0.with(|all| {
            let whys: Vec<&str> = all.values().map(|trouble| trouble.why.as_str()).collect();
            whys.join(", and ")
        })
    }

    /// What can be tried again: files and their texts.
    pub(super) fn to_try(&self) -> Vec<(String, String)> {
        self.0.with(|all| {
            let known = all.iter();
            let known = known.filter_map(|(file, one)| Some((file.clone(), one.text.clone()?)));
            known.collect()
        })
    }

    /// Whether `text` is still what is to be tried for `file`.
    pub(super) fn is_to_try(&self, file: &str, text: &str) -> bool {
        self.0
            .with(|all| all.get(file).and_then(|one| one.text.as_deref()) == Some(text))
    }
}
