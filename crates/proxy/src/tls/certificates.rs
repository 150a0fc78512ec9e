//! All certificates of this server, and which of them a visitor gets.
//!
//! They come from one pair of files, from a folder, or both. In the folder each `NAME.pem` or
//! `NAME.crt` with a `NAME.key` beside it is one, a `NAME.pem` alone has its key in itself, and
//! each sub-folder with `fullchain.pem` and `privkey.pem` is one: the folder where certbot keeps
//! what is in force can be given as it is.
//!
//! The table is immutable. Renewed files make a new one, which is swapped in; those that an
//! authority has just given us (ACME) do the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use levee_vocab::HostName;
use rustls::crypto::CryptoProvider;
use thiserror::Error;

use super::certificate::{Certificate, CertificateFlaw, PairFiles};

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    all: Vec<Certificate>,
}

/// Why there are no certificates.
#[derive(Debug, Error)]
pub enum CertificatesError {
    /// The folder cannot be read.
    #[error("cannot read the folder {path}: {cause}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The folder has nothing that looks like a certificate.
    #[error(
        "{0} has no certificates: expected NAME.pem with NAME.key, or folders with fullchain.pem and privkey.pem"
    )]
    EmptyFolder(PathBuf),
    /// One of them is no good.
    #[error(transparent)]
    Flaw(#[from] CertificateFlaw),
}

/// Something that will turn visitors away, though it keeps nobody from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateWarning {
    /// Its time is over.
    Expired(PathBuf, SystemTime),
    /// Its time has not begun.
    NotYetValid(PathBuf, SystemTime),
    /// Less than a sixth of its time is left: whoever should have renewed it did not.
    ExpiresSoon(PathBuf, SystemTime),
    /// No certificate is for this name.
    NotCovered(HostName),
}

impl std::fmt::Display for CertificateWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let date = |time: &SystemTime| httpdate::fmt_http_date(*time);
        match self {
            Self::Expired(file, at) => write!(
                f,
                "the certificate in {} expired on {}; renew it",
                file.display(),
                date(at)
            ),
            Self::NotYetValid(file, at) => write!(
                f,
                "the certificate in {} is valid only from {}; is the clock right?",
                file.display(),
                date(at)
            ),
            Self::ExpiresSoon(file, at) => write!(
                f,
                "the certificate in {} expires on {} and was not renewed",
                file.display(),
                date(at)
            ),
            Self::NotCovered(name) => write!(
                f,
                "no certificate is for {name}; browsers will warn visitors who come by https"
            ),
        }
    }
}

impl CertificateWarning {
    /// The file that it is about; none where a file is missing.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Expired(file, _) | Self::NotYetValid(file, _) | Self::ExpiresSoon(file, _) => {
                Some(file)
            }
            Self::NotCovered(_) => None,
        }
    }
}

impl CertificatesError {
    /// The file or folder that is no good.
    pub fn file(&self) -> &Path {
        match self {
            Self::Folder { path, .. } | Self::EmptyFolder(path) => path,
            Self::Flaw(flaw) => flaw.file(),
        }
    }
}

impl Certificates {
    /// Reads the certificates of `pair` and `folder`, and gives every flaw of those that are no
    /// good. The first of them is shown to whoever names no other.
    pub fn load(pair: Option<&PairFiles>, folder: Option<&Path>) -> (Self, Vec<CertificatesError>) {
        let mut errors = Vec::new();
        let mut files: Vec<PairFiles> = pair.cloned().into_iter().collect();
        if let Some(folder) = folder {
            match pairs_in(folder) {
                Ok(found) if found.is_empty() => {
                    errors.push(CertificatesError::EmptyFolder(folder.into()));
                }
                Ok(found) => files.extend(found),
                Err(cause) => errors.push(CertificatesError::Folder {
                    path: folder.into(),
                    cause,
                }),
            }
        }
        let mut certificates = Self::default();
        errors.extend(certificates.add(files));
        (certificates, errors)
    }

    /// Adds those of `files`, and gives every flaw of those that are no good.
    pub fn add(&mut self, files: impl IntoIterator<Item = PairFiles>) -> Vec<CertificatesError> {
        let provider = super::offer::provider();
        let mut errors = Vec::new();
        for files in files {
            match Certificate::load(&files, &provider) {
                Ok(certificate) => self.all.push(certificate),
                Err(flaw) => errors.push(flaw.into()),
            }
        }
        errors
    }

    /// Whether one of them is for `name`, in lower case.
    pub fn cover(&self, name: &str) -> bool {
        self.all.iter().any(|one| one.covers(name))
    }

    /// All of them.
    pub fn all(&self) -> &[Certificate] {
        &self.all
    }

    /// Takes from `old` those that are missing here, because their files are no good any more: an
    /// old certificate is better than none. Each keeps its place, for the first one is shown to
    /// whoever names no other.
    pub fn keep_missing(&mut self, old: &Self) {
        for (place, certificate) in old.all.iter().enumerate() {
            if !self.has(&certificate.files) {
                let place = place.min(self.all.len());
                self.all.insert(place, certificate.clone());
            }
        }
    }

    /// Takes from `old` those that are valid at `now` while what came instead is not: from the same
    /// files, or for one of the same names. Gives what was not taken for that, and until when the
    /// one is valid that stays.
    pub fn keep_valid(
        &mut self,
        old: &Self,
        now: SystemTime,
    ) -> Vec<(CertificateWarning, SystemTime)> {
        let mut not_taken = Vec::new();
        let mut beside = Vec::new();
        for new in &mut self.all {
            let Some(warning) = time_warning(new, now).filter(|_| !new.is_valid_at(now)) else {
                continue;
            };
            let good = old.all.iter().filter(|old| old.is_valid_at(now));
            let better: Vec<_> = good
                .filter(|old| old.files == new.files || old.stands_in_for(new))
                .collect();
            let Some(until) = better.iter().map(|one| one.valid_until).min() else {
                continue;
            };
            not_taken.push((warning, until));
            match better.iter().find(|old| old.files == new.files) {
                Some(same) => *new = (*same).clone(),
                // It may be for other names too; where both are, visitors get the good one.
                None => beside.extend(better.into_iter().cloned()),
            }
        }
        for certificate in beside {
            if !self.has(&certificate.files) {
                self.all.push(certificate);
            }
        }
        not_taken
    }

    fn has(&self, files: &PairFiles) -> bool {
        self.all.iter().any(|one| one.files == *files)
    }

    /// Those of them that are not valid at `now`, as warnings.
    pub fn invalid(&self, now: SystemTime) -> impl Iterator<Item = CertificateWarning> {
        let invalid = self.all.iter().filter(move |one| !one.is_valid_at(now));
        invalid.filter_map(move |one| time_warning(one, now))
    }

    /// When the first of them expires.
    pub fn first_expiry(&self) -> Option<SystemTime> {
        self.all.iter().map(|one| one.valid_until).min()
    }

    /// What will turn visitors away, for a server called `names`, at `now`.
    pub fn warnings<'a>(
        &self,
        names: impl IntoIterator<Item = &'a HostName>,
        now: SystemTime,
    ) -> Vec<CertificateWarning> {
        let mut warnings: Vec<_> = self
            .all
            .iter()
            .filter_map(|certificate| time_warning(certificate, now))
            .collect();
        for name in names {
            if !self.cover(name.as_str()) {
                warnings.push(CertificateWarning::NotCovered(name.clone()));
            }
        }
        warnings
    }
}

fn time_warning(certificate: &Certificate, now: SystemTime) -> Option<CertificateWarning> {
    let file = certificate.files.certificate.clone();
    let (from, until) = (certificate.valid_from, certificate.valid_until);
    let life = until.duration_since(from).unwrap_or(Duration::ZERO);
    match until.duration_since(now) {
        Err(_) => Some(CertificateWarning::Expired(file, until)),
        Ok(_) if from > now => Some(CertificateWarning::NotYetValid(file, from)),
        Ok(left) if left < life / 6 => Some(CertificateWarning::ExpiresSoon(file, until)),
        Ok(_) => None,
    }
}

/// Every pair in `folder`, in the order of their names.
fn pairs_in(folder: &Path) -> std::io::Result<Vec<PairFiles>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| pair_at(path)).collect())
}

fn pair_at(path: &Path) -> Option<PairFiles> {
    if path.is_dir() {
        let (certificate, key) = (path.join("fullchain.pem"), path.join("privkey.pem"));
        return (certificate.exists() || key.exists()).then_some(PairFiles { certificate, key });
    }
    let key = path.with_extension("key");
    match path.extension()?.to_str()? {
        "pem" | "crt" if key.exists() => Some(PairFiles {
            certificate: path.into(),
            key,
        }),
        "pem" => Some(PairFiles {
            certificate: path.into(),
            key: path.into(),
        }),
        _ => None,
    }
}

/// So that the provider is asked for in one place.
pub(super) type Provider = Arc<CryptoProvider>;

#[cfg(test)]
mod tests;
