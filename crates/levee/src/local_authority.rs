//! `levee certificate local`: a certificate authority of one's own, for tests and for machines that
//! the internet does not know.
//!
//! ```text
//! levee-certificates/
//!   root.pem  root.key          the authority: made once, then used again
//!   blog.test.pem  blog.test.key    one certificate for all the names of one call
//! ```
//!
//! No browser believes it before somebody tells it to; what to tell whom is printed. The folder can
//! be given to `tls.certificates` as it is, without the root in it being shown to anybody.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use levee_vocab::HostName;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// Ten years: whoever trusts it wants to do so once.
const ROOT_LIFE: Duration = Duration::from_secs(3650 * 86_400);
/// Browsers refuse certificates of more than 398 days.
const LIFE: Duration = Duration::from_secs(397 * 86_400);
/// Clocks of others may be late.
const EARLIER: Duration = Duration::from_secs(3600);

/// Makes a certificate for `names` in `folder`, signed by the authority there, which is made where
/// there is none. Gives what to do with it.
///
/// # Errors
/// A sentence: a name that cannot be one, a file that cannot be written.
pub fn run(names: &[String], folder: &Path) -> Result<String, String> {
    let names: Vec<String> = names
        .iter()
        .map(|name| checked(name))
        .collect::<Result<_, _>>()?;
    let first = names.first().ok_or("give at least one name")?;
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let place = Place(folder);
    let authority = place.authority()?;
    let stem = first.replace('*', "_").replace(':', "-");
    let (certificate, key) = authority.certify(&names).map_err(cannot_make)?;
    let pem = place.write(&format!("{stem}.pem"), &certificate.pem())?;
    let key = place.write(&format!("{stem}.key"), &key.serialize_pem())?;
    Ok(told(&names, (&pem, &key), &folder.join(ROOT)))
}

const ROOT: &str = "root.pem";
const ROOT_KEY: &str = "root.key";

fn checked(name: &str) -> Result<String, String> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let (star, rest) = match name.strip_prefix("*.") {
        Some(rest) => ("*.", rest),
        None => ("", name),
    };
    match rest.parse::<HostName>() {
        Ok(host) => Ok(format!("{star}{host}")),
        Err(flaw) => Err(format!("`{name}`: {flaw}")),
    }
}

/// Where everything is kept.
struct Place<'a>(&'a Path);

impl Place<'_> {
    /// The authority that is here, or a new one.
    fn authority(&self) -> Result<Authority, String> {
        let path = self.0.join(ROOT_KEY);
        let key = match fs::read_to_string(&path) {
            Ok(text) => KeyPair::from_pem(&text)
                .map_err(|error| format!("cannot use {}: {error}", path.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(cannot_make)?;
                let root = root_params(&key).self_signed(&key).map_err(cannot_make)?;
                // The key is what tells that there is an authority, so it comes last.
                self.write(ROOT, &root.pem())?;
                self.write(ROOT_KEY, &key.serialize_pem())?;
                key
            }
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let params = root_params(&key);
        Ok(Authority(Issuer::new(params, key)))
    }

    /// Writes a file that nobody else may read.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&path)?.write_all(text.as_bytes())
        };
        match write() {
            Ok(()) => Ok(path),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }
}

struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    fn certify(&self, names: &[String]) -> Result<(Certificate, KeyPair), rcgen::Error> {
        let mut params = CertificateParams::new(names.to_vec())?;
        let common = names.first().cloned().unwrap_or_default();
        params.distinguished_name.push(DnType::CommonName, common);
        let now = SystemTime::now();
        params.not_before = (now - EARLIER).into();
        params.not_after = (now - EARLIER + LIFE).into();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok((certificate, key))
    }
}

/// What the root says of itself. Its name follows from its key, so that two of them are never taken
/// for one another, and one that was made earlier is known again.
fn root_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let sum = key.public_key_raw().iter().rev().take(4);
    let sum: String = sum.map(|byte| format!("{byte:02x}")).collect();
    let name = format!("Levee local authority {sum}");
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - EARLIER).into();
    params.not_after = (now + ROOT_LIFE).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn cannot_make(error: rcgen::Error) -> String {
    format!("cannot make a certificate: {error}")
}

fn told(names: &[String], (pem, key): (&Path, &Path), root: &Path) -> String {
    let names = names.join(", ");
    let (pem, key, root) = (pem.display(), key.display(), root.display());
    format!(
        "A certificate for {names}, good for 397 days:\n\n  [tls]\n  certificate = \"{pem}\"\n  \
         key = \"{key}\"\n\nNobody believes it who does not trust {root}:\n\n  \
         curl --cacert {root} https://...\n  \
         Debian: cp {root} /usr/local/share/ca-certificates/levee.crt && update-ca-certificates\n  \
         browsers: settings, certificates, authorities, import\n\n\
         Whoever has root.key can pretend to be any site to those who do. Keep it, or delete it.\n"
    )
}
