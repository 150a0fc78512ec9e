//! What must outlive a crash: the account, orders under way, certificates with their keys.
//!
//! ```text
//! certificates/
//!   account-HOST-PATH.json      who we are to the authority, one file for each directory
//!   www.example.org.order       an order under way: its URL and the key that it is for
//!   www.example.org.pem         key and chain, in one file so that they always belong together
//!   records-in-dns.json         what we put into DNS and have not taken out again
//! ```
//!
//! Each file is written beside the old one, flushed, and renamed: at whatever moment the power
//! fails, the old one is there or the new one. Nobody but the user who runs the server may read
//! them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use instant_acme::AccountCredentials;
use levee_net::Shared;
use levee_proxy::PairFiles;
use rcgen::KeyPair;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::name::CertificateName;
use crate::state::{Readers, replace, way_out};

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct CertificateStore {
    folder: PathBuf,
    /// Held by whoever writes: two never write the same file at once.
    writing: Arc<Shared<()>>,
}

/// What can go wrong with the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It cannot be written: no room, or not ours.
    #[error("cannot write {path}: {cause}; is the disk full, and is it ours?")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {cause}{}", way_out(cause))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is not one of ours.
    #[error("{path} is damaged: {cause}; mend or delete the file")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it is not.
        cause: serde_json::Error,
    },
    /// The key in it is none.
    #[error("{path} is damaged: its key cannot be used, {cause}; mend or delete the file")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: rcgen::Error,
    },
}

/// An order that was placed and may not be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendingOrder {
    /// The authority's directory.
    pub directory: String,
    /// The order at that authority.
    pub url: String,
    /// The key of the certificate to come, in PEM.
    pub key: String,
}

/// A record in DNS that shows that a name is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRecord {
    /// Where it stands.
    pub name: String,
    /// What it says.
    pub text: String,
    /// Where the authority looks for it: a name that leads to it, or it itself.
    #[serde(default)]
    pub asked_at: String,
}

/// How files of orders end.
const ORDER: &str = "order";
/// The file of records in DNS.
const RECORDS: &str = "records-in-dns.json";

impl CertificateStore {
    /// Opens the store in the state folder, and makes it if need be. Blocks.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(state_folder: &Path) -> Result<Self, StoreError> {
        let store = Self::at(state_folder);
        let folder = &store.folder;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|cause| StoreError::Write {
            path: folder.clone(),
            cause,
        })?;
        Ok(store)
    }

    /// The store in the state folder, to be read only: it may not be there.
    pub fn at(state_folder: &Path) -> Self {
        Self {
            folder: state_folder.join("certificates"),
            writing: Arc::default(),
        }
    }

    /// Where the certificate for `name` is kept, if there is one.
    pub fn files(&self, name: &CertificateName) -> Option<PairFiles> {
        let path = self.path(name, "pem");
        path.exists().then(|| PairFiles {
            certificate: path.clone(),
            key: path,
        })
    }

    /// Keeps a certificate with its key. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When it cannot be written; the old one is still there then.
    pub fn keep(
        &self,
        name: &CertificateName,
        (key, chain): (&str, &str),
    ) -> Result<(), StoreError> {
        let text = format!("{}\n{}\n", key.trim_end(), chain.trim_end());
        self.replace(&self.path(name, "pem"), &text)
    }

    /// The order for `name` that is under way at `directory`. What cannot be read or used is as
    /// good as none: it costs a new order.
    pub fn order(&self, name: &CertificateName, directory: &str) -> Option<PendingOrder> {
        let order = self.check_order(name).ok()??;
        (order.directory == directory).then_some(order)
    }

    /// The order for `name` that was under way, at whatever directory.
    ///
    /// # Errors
    /// When it is there and cannot be gone on with.
    pub fn check_order(&self, name: &CertificateName) -> Result<Option<PendingOrder>, StoreError> {
        let path = self.path(name, ORDER);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(StoreError::Read { path, cause }),
        };
        let order: PendingOrder = match serde_json::from_slice(&text) {
            Ok(order) => order,
            Err(cause) => return Err(StoreError::Damaged { path, cause }),
        };
        match KeyPair::from_pem(&order.key) {
            Ok(_) => Ok(Some(order)),
            Err(cause) => Err(StoreError::Key { path, cause }),
        }
    }

    /// Files of orders for other names than these. None where there is no store.
    pub fn stray_orders(&self, names: &[CertificateName]) -> Vec<PathBuf> {
        let ours: Vec<PathBuf> = names.iter().map(|name| self.path(name, ORDER)).collect();
        let files = fs::read_dir(&self.folder).into_iter().flatten();
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let is_order = |path: &PathBuf| path.extension().is_some_and(|end| end == ORDER);
        let mut strays: Vec<PathBuf> = paths.filter(is_order).collect();
        strays.retain(|path| !ours.contains(path));
        strays.sort();
        strays
    }

    /// Writes an order down. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_order(
        &self,
        name: &CertificateName,
        order: &PendingOrder,
    ) -> Result<(), StoreError> {
        // Three texts always have a JSON form.
        let text = serde_json::to_string(order).unwrap_or_default();
        self.replace(&self.path(name, ORDER), &text)
    }

    /// Forgets the order for `name`.
    pub fn forget_order(&self, name: &CertificateName) {
        // It is gone, or will be found to be over.
        let _ = fs::remove_file(self.path(name, ORDER));
    }

    /// The account at `directory`, as it was kept.
    ///
    /// # Errors
    /// When it is there and cannot be read: a second account in its place would be no help.
    pub fn account(&self, directory: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.account_path(directory);
        match fs::read(&path) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::Read { path, cause }),
        }
    }

    /// Whether the account at `directory`, if there is one, can be used.
    ///
    /// # Errors
    /// When it is there and cannot be read, or is damaged.
    pub fn check_account(&self, directory: &str) -> Result<(), StoreError> {
        let Some(text) = self.account(directory)? else {
            return Ok(());
        };
        let path = self.account_path(directory);
        let read = serde_json::from_slice::<AccountCredentials>(&text);
        read.map(drop)
            .map_err(|cause| StoreError::Damaged { path, cause })
    }

    /// Keeps the account at `directory`. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_account(&self, directory: &str, text: &str) -> Result<(), StoreError> {
        self.replace(&self.account_path(directory), text)
    }

    /// Forgets the account at `directory`, which does not know it any more.
    pub fn forget_account(&self, directory: &str) {
        // What is left is refused again.
        let _ = fs::remove_file(self.account_path(directory));
    }

    /// The records in DNS that were put in and not taken out again.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn records(&self) -> Result<Vec<ShownRecord>, StoreError> {
        let path = self.folder.join(RECORDS);
        match fs::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|cause| StoreError::Damaged { path, cause })
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(vec![]),
            Err(cause) => Err(StoreError::Read { path, cause }),
        }
    }

    /// Writes down which records are in DNS. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When they cannot be written; what was written before is still there then.
    pub fn keep_records(&self, records: &[ShownRecord]) -> Result<(), StoreError> {
        // Pairs of texts always have a JSON form.
        let text = serde_json::to_string(records).unwrap_or_default();
        self.replace(&self.folder.join(RECORDS), &text)
    }

    fn path(&self, name: &CertificateName, end: &str) -> PathBuf {
        self.folder.join(format!("{}.{end}", name.file_stem()))
    }

    fn account_path(&self, directory: &str) -> PathBuf {
        let place = directory.strip_prefix("https://").unwrap_or(directory);
        let fits = |letter: char| match letter.is_ascii_alphanumeric() || letter == '.' {
            true => letter,
            false => '-',
        };
        let place: String = place.chars().map(fits).take(200).collect();
        self.folder.join(format!("account-{place}.json"))
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), StoreError> {
        let written = self.writing.with(|()| replace(path, text, Readers::Owner));
        written.map_err(|cause| StoreError::Write {
            path: path.into(),
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_found_again_and_is_nobody_elses() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(folder.path()).expect("a store");
        let name: CertificateName = "*.example.net".parse().expect("a name");
        assert_eq!(store.files(&name), None);
        store.keep(&name, ("KEY\n", "CHAIN\n")).expect("room");
        let kept = store.files(&name).expect("it was kept").certificate;
        assert_eq!(fs::read_to_string(&kept).expect("text"), "KEY\nCHAIN\n");
        let mode = fs::metadata(&kept).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(kept.ends_with("certificates/_.example.net.pem"));
    }

    #[test]
    fn records_in_dns_are_known_after_a_crash() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(folder.path()).expect("a store");
        assert_eq!(store.records().expect("no file"), []);
        let record = ShownRecord {
            name: "_acme-challenge.example.net".into(),
            text: "digest".into(),
            asked_at: "_acme-challenge.example.org".into(),
        };
        store
            .keep_records(std::slice::from_ref(&record))
            .expect("room");
        assert_eq!(store.records().expect("a file"), [record]);
        let damaged = folder.path().join("certificates").join(RECORDS);
        fs::write(damaged, "[{").expect("room");
        let told = store.records().expect_err("half a file").to_string();
        assert!(told.contains(RECORDS), "{told}");
    }

    #[test]
    fn an_order_is_for_one_authority() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(folder.path()).expect("a store");
        let name: CertificateName = "a.example".parse().expect("a name");
        let order = PendingOrder {
            directory: "https://ca.example/dir".into(),
            url: "https://ca.example/order/1".into(),
            key: KeyPair::generate().expect("a key").serialize_pem(),
        };
        store.note_order(&name, &order).expect("room");
        let found = store.order(&name, "https://ca.example/dir");
        assert_eq!(found.map(|order| order.url), Some(order.url.clone()));
        assert!(store.order(&name, "https://other.example/dir").is_none());
        // With a key that is none, no certificate would ever come of it.
        let key = "KEY".into();
        store
            .note_order(&name, &PendingOrder { key, ..order })
            .expect("room");
        assert!(store.order(&name, "https://ca.example/dir").is_none());
        store.forget_order(&name);
        assert!(store.check_order(&name).expect("no file").is_none());
    }
}
