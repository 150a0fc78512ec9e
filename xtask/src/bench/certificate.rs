//! The certificate that all servers of a bench share, and what clients offer them.
//!
//! ECDSA on P-256: what certificate authorities give out by default today. Clients offer TLS 1.3
//! with one cipher suite and one group, so that every server does the same arithmetic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, capture};
use crate::workspace::failed;

/// A certificate and its key, made for one run.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Both in one file, as HAProxy wants them.
    pub both: PathBuf,
    /// A settings file for OpenSSL: what clients that use it offer.
    pub openssl_conf: PathBuf,
}

const OPENSSL_CONF: &str = "openssl_conf = bench

[bench]
ssl_conf = modules

[modules]
system_default = offered

[offered]
MinProtocol = TLSv1.3
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519
";

impl Certificate {
    /// Makes them in `folder`.
    pub fn make(folder: &Path) -> Result<Self, Failure> {
        let made = Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            both: folder.join("certificate-and-key.pem"),
            openssl_conf: folder.join("openssl.cnf"),
        };
        let mut command = Command::new("openssl");
        command
            .args(["req", "-x509", "-nodes", "-days", "30"])
            .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-subj", "/CN=www.example.org"])
            .args(["-addext", "subjectAltName=DNS:www.example.org"])
            .arg("-keyout")
            .arg(&made.key)
            .arg("-out")
            .arg(&made.certificate);
        capture(&mut command)?;
        let read = |path: &Path| fs::read_to_string(path).map_err(failed("read", path));
        let both = format!("{}{}", read(&made.certificate)?, read(&made.key)?);
        let files = [
            (&made.both, both.as_str()),
            (&made.openssl_conf, OPENSSL_CONF),
        ];
        for (path, text) in files {
            fs::write(path, text).map_err(failed("write", path))?;
        }
        for path in [&made.key, &made.both] {
            readable(path)?;
        }
        Ok(made)
    }
}

/// Servers that run as nobody must read a key that is worth nothing.
fn readable(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(failed("open", path))
}
