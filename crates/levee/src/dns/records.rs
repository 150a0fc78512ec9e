//! What we put into DNS, as it outlives a crash: a name and its addresses on each line.
//!
//! It is written before anything is put in. So a server that was killed finds at its next start all
//! that it may have left behind, and nothing that others put in.

use std::collections::BTreeMap;
use std::io;

use levee_dns::{Addresses, DomainName};
use levee_net::Shared;

use crate::state::{StateError, StateFolder};

const FILE: &str = "dns-records";
const HEADER: &str = "# levee dns-records 1: name and the addresses that this server put into it";

/// The list, and what it says now.
#[derive(Debug)]
pub(super) struct Records {
    state: StateFolder,
    all: Shared<ByName>,
}

/// Addresses that are ours, by the names that they were put into.
pub(super) type ByName = BTreeMap<DomainName, Addresses>;

impl Records {
    /// Opens the list, and gives what is in it from an earlier time.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub(super) fn open(state: &StateFolder) -> Result<(Self, ByName), StateError> {
        let mut all = ByName::new();
        for (name, addresses) in state.entries(FILE, parse)? {
            all.entry(name).or_default().extend(addresses);
        }
        let records = Self {
            state: state.clone(),
            all: Shared::new(all.clone()),
        };
        Ok((records, all))
    }

    /// Writes down that `addresses` of `name` are ours, and no others of it. Blocks for two disk
    /// flushes.
    ///
    /// # Errors
    /// A sentence; what was written before is in force then.
    pub(super) fn remember(&self, name: &DomainName, addresses: &Addresses) -> Result<(), String> {
        // Names are few and change seldom, and whoever waits here is on a thread that may.
        self.all.with(|all| {
            let mut next = all.clone();
            match addresses.is_empty() {
                true => next.remove(name),
                false => next.insert(name.clone(), addresses.clone()),
            };
            let written = self.state.replace(FILE, &text(&next));
            if written.is_err() {
                self.state.try_later(FILE, &text(all));
            }
            written.map_err(|error| error.to_string())?;
            *all = next;
            Ok(())
        })
    }
}

fn text(all: &ByName) -> String {
    let mut text = format!("{HEADER}\n");
    for (name, addresses) in all {
        let words = addresses.iter().map(ToString::to_string);
        let words: Vec<String> = [name.to_string()].into_iter().chain(words).collect();
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}

pub(super) fn parse(line: &str) -> Option<(DomainName, Addresses)> {
    let mut words = line.split(' ');
    let name = words.next()?.parse().ok()?;
    let addresses: Result<Addresses, _> = words.map(str::parse).collect();
    let addresses = addresses.ok().filter(|addresses| !addresses.is_empty())?;
    Some((name, addresses))
}

/// A blocking disk write, off the async threads. Dropped half-way, the write is finished.
pub(super) async fn blocking(
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::from(error).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Addresses {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_was_put_in_is_known_after_a_restart_and_forgotten_with_the_last_address() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::open(folder.path()).unwrap();
        let (records, before) = Records::open(&state).unwrap();
        assert!(before.is_empty());
        let name: DomainName = "www.example.org".parse().unwrap();
        let both = addresses(&["192.0.2.1", "2001:db8::1"]);
        records.remember(&name, &both).unwrap();
        let (again, before) = Records::open(&state).unwrap();
        assert_eq!(before, [(name.clone(), both)].into());
        again.remember(&name, &addresses(&[])).unwrap();
        assert!(Records::open(&state).unwrap().1.is_empty());
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::open(folder.path()).unwrap();
        state
            .replace(FILE, "# x\nwww.example.org 192.0.2\n")
            .unwrap();
        let error = Records::open(&state).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
