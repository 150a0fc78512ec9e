//! One certificate with its chain and key, read from PEM files, and what it says of itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::InconsistentKeys;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate, followed by those that lead to a root.
    pub certificate: PathBuf,
    /// The private key; may be the same file.
    pub key: PathBuf,
}

/// A certificate that can be shown to visitors.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Where it came from.
    pub files: PairFiles,
    /// The names that it is for, in lower case; one may begin with `*.`.
    pub names: Vec<String>,
    /// From when on it is valid.
    pub valid_from: SystemTime,
    /// When it expires.
    pub valid_until: SystemTime,
    pub(super) key: Arc<CertifiedKey>,
}

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum CertificateFlaw {
    /// The file is not there, or we may not read it.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is no PEM file.
    #[error("{path} is not in PEM format: {cause}")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: PemError,
    },
    /// A PEM file without a certificate in it.
    #[error("{0} has no certificate in it (a part that begins with `BEGIN CERTIFICATE`)")]
    NoCertificate(PathBuf),
    /// A PEM file without a key in it.
    #[error(
        "{0} has no private key in it (a part that begins with `BEGIN PRIVATE KEY`); a key with a password cannot be used"
    )]
    NoKey(PathBuf),
    /// The certificate's own bytes make no sense.
    #[error("the certificate in {0} is damaged")]
    Damaged(PathBuf),
    /// The key's bytes make no sense, or it is of a kind that nobody uses for HTTPS.
    #[error("the key in {path} cannot be used: {cause}")]
    BadKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: rustls::Error,
    },
    /// The key is another one's.
    #[error("the key in {key} does not belong to the certificate in {certificate}")]
    Mismatch {
        /// File of the key.
        key: PathBuf,
        /// File of the certificate.
        certificate: PathBuf,
    },
}

impl CertificateFlaw {
    /// The file that is no good; where two do not fit, that of the certificate.
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. } | Self::NotPem { path, .. } => path,
            Self::NoCertificate(path) | Self::NoKey(path) | Self::Damaged(path) => path,
            Self::BadKey { path, .. } => path,
            Self::Mismatch { certificate, .. } => certificate,
        }
    }
}

impl Certificate {
    /// Reads and checks a certificate with its key.
    pub(super) fn load(
        files: &PairFiles,
        provider: &CryptoProvider,
    ) -> Result<Self, CertificateFlaw> {
        let chain = chain(&files.certificate)?;
        let key = private_key(&files.key)?;
        let damaged = || CertificateFlaw::Damaged(files.certificate.clone());
        let first = chain.first().ok_or_else(damaged)?;
        let facts = Facts::read(first).ok_or_else(damaged)?;
        let bad_key = |cause| CertificateFlaw::BadKey {
            path: files.key.clone(),
            cause,
        };
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(bad_key)?;
        let key = CertifiedKey::new(chain, key);
        // Keys that cannot tell what they belong to are believed.
        if let Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) =
            key.keys_match()
        {
            return Err(CertificateFlaw::Mismatch {
                key: files.key.clone(),
                certificate: files.certificate.clone(),
            });
        }
        Ok(Self {
            files: files.clone(),
            names: facts.names,
            valid_from: facts.valid_from,
            valid_until: facts.valid_until,
            key: Arc::new(key),
        })
    }

    /// Whether browsers take it at `now`, as far as its time goes.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.valid_from <= now && now <= self.valid_until
    }

    /// Whether it is for one of the names of `other`.
    pub(super) fn stands_in_for(&self, other: &Self) -> bool {
        let mut names = other.names.iter();
        names.any(|name| self.names.contains(name) || self.covers(name))
    }

    /// Whether it is for `name` (lower case): a star stands for one label (RFC 9525 section 6.3).
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|own| match own.strip_prefix("*.") {
            Some(suffix) => parent == Some(suffix),
            None => own == name,
        })
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateFlaw> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(chain) if chain.is_empty() => Err(CertificateFlaw::NoCertificate(path.into())),
        Ok(chain) => Ok(chain),
        Err(cause) => Err(CertificateFlaw::NotPem {
            path: path.into(),
            cause,
        }),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateFlaw> {
    let text = read(path)?;
    let mut found = PrivateKeyDer::pem_slice_iter(&text);
    match found.next() {
        Some(Ok(key)) => Ok(key),
        None => Err(CertificateFlaw::NoKey(path.into())),
        Some(Err(cause)) => Err(CertificateFlaw::NotPem {
            path: path.into(),
            cause,
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateFlaw> {
    std::fs::read(path).map_err(|cause| CertificateFlaw::Unreadable {
        path: path.into(),
        cause,
    })
}

/// What a certificate says.
struct Facts {
    names: Vec<String>,
    valid_from: SystemTime,
    valid_until: SystemTime,
}

impl Facts {
    fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let read = x509_cert::Certificate::from_der(certificate).ok()?;
        let read = read.tbs_certificate();
        let extension = read.get_extension::<SubjectAltName>().ok()?;
        let names = extension.map_or_else(Vec::new, |(_, names)| names.0);
        let validity = read.validity();
        Some(Self {
            names: names.iter().filter_map(dns_name).collect(),
            valid_from: validity.not_before.to_system_time(),
            valid_until: validity.not_after.to_system_time(),
        })
    }
}

fn dns_name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        GeneralName::OtherName(_)
        | GeneralName::Rfc822Name(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::UniformResourceIdentifier(_)
        | GeneralName::IpAddress(_)
        | GeneralName::RegisteredId(_) => None,
    }
}
