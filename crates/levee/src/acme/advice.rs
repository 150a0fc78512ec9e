//! When an authority wants a certificate to be renewed (RFC 9773, ACME renewal information).
//!
//! An authority that is about to revoke certificates, or wants its load spread, says so by a window
//! of time; each client picks a moment in it. It is asked by a plain GET as often as it likes, and
//! told with the order which certificate is replaced. Where it knows nothing of all this, or is not
//! to be reached, two thirds of a certificate's time decide as before.

use std::path::Path;
use std::time::{Duration, SystemTime};

use instant_acme::{CertificateIdentifier, Error};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, Der};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use super::error::AcmeError;
use super::order::Client;
use super::schedule::Window;

/// What an authority says of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// When it should be renewed; none where the authority gives no such advice.
    pub window: Option<Window>,
    /// When to ask again.
    pub again: Duration,
    /// A page that tells why.
    pub why: Option<String>,
}

/// Shortest and longest time between two questions, which RFC 9773 section 4.3.2 leaves to us.
const AGAIN_MIN: Duration = Duration::from_secs(60);
const AGAIN_MAX: Duration = Duration::from_secs(86_400);

impl Advice {
    /// Nothing for this certificate.
    pub const NONE: Self = Self {
        window: None,
        again: AGAIN_MAX,
        why: None,
    };
}

impl Client<'_> {
    /// What the authority says of the certificate in `file`; none where it gives no advice at all.
    ///
    /// # Errors
    /// When it cannot be asked, or says nothing that makes sense.
    ///
    /// Cancel safety: may be dropped at any point.
    pub async fn advice(&self, file: &Path) -> Result<Option<Advice>, AcmeError> {
        let Some(id) = identifier(file) else {
            return Ok(Some(Advice::NONE));
        };
        let account = self.account().await?;
        let (said, again) = match account.renewal_info(&id).await {
            Ok(said) => said,
            Err(Error::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(self.told(&error)),
        };
        let window = Window {
            from: SystemTime::from(said.suggested_window.start),
            until: SystemTime::from(said.suggested_window.end),
        };
        //= RFC 9773 section 4.2: "A RenewalInfo object in which the end timestamp equals or
        // precedes the start timestamp is invalid."
        Ok(Some(Advice {
            window: (window.from < window.until).then_some(window),
            again: again.clamp(AGAIN_MIN, AGAIN_MAX),
            why: said.explanation_url,
        }))
    }
}

/// How the authority calls the certificate in `file`; none for one that does not say who gave it.
/// Blocks.
//= RFC 9773 section 4.1
pub(super) fn identifier(file: &Path) -> Option<CertificateIdentifier<'static>> {
    let text = std::fs::read(file).ok()?;
    let first = CertificateDer::pem_slice_iter(&text).next()?.ok()?;
    let read = x509_cert::Certificate::from_der(&first).ok()?;
    let read = read.tbs_certificate();
    let (_, by) = read.get_extension::<AuthorityKeyIdentifier>().ok()??;
    let (key, serial) = (by.key_identifier?, read.serial_number());
    Some(CertificateIdentifier::new(
        Der::from_slice(key.as_bytes()),
        Der::from_slice(serial.as_bytes()),
    ))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, Issuer, KeyIdMethod, KeyPair, SerialNumber};

    use super::*;

    /// A certificate with the serial and the key identifier of the RFC's example.
    fn certificate() -> String {
        let key_id = [
            0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0,
            0xae, 0x2c, 0xde, 0x01, 0xc8, 0xd4,
        ];
        let mut authority = CertificateParams::new(vec![]).expect("no names");
        authority.key_identifier_method = KeyIdMethod::PreSpecified(key_id.into());
        let issuer = Issuer::new(authority, KeyPair::generate().expect("a key"));
        let mut params = CertificateParams::new(vec!["example.com".into()]).expect("a name");
        params.serial_number = Some(SerialNumber::from(vec![0x87, 0x65, 0x43, 0x21]));
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key");
        params.signed_by(&key, &issuer).expect("signed").pem()
    }

    #[test]
    fn a_certificate_is_called_as_in_the_example_of_the_rfc() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.pem");
        std::fs::write(&file, certificate()).expect("room");
        let id = identifier(&file).expect("it says who gave it");
        assert_eq!(id.to_string(), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
    }

    #[test]
    fn one_that_nobody_else_gave_is_called_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.pem");
        let own = rcgen::generate_simple_self_signed(vec!["a.example".into()]).expect("a key");
        std::fs::write(&file, own.cert.pem()).expect("room");
        assert_eq!(identifier(&file), None);
    }
}
