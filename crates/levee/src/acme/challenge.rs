//! How an authority is shown that a name is ours, and how that is taken back.

use std::fmt;
use std::sync::Arc;

use instant_acme::{ChallengeHandle, ChallengeType};
use levee_proxy::Challenges;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::error::AcmeError;
use super::name::CertificateName;
use super::records::Records;
use crate::settings::{AcmeSettings, ChallengeChoice};

/// One way to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A page on port 80.
    Http01,
    /// A certificate in a handshake on port 443 (RFC 8737).
    TlsAlpn01,
    /// A record in DNS.
    Dns01,
}

impl Way {
    /// The way for the next attempt to certify `name`, after so many ways that failed.
    pub fn choose(settings: &AcmeSettings, name: &CertificateName, failed: u32) -> Self {
        let ways: &[Self] = match settings.challenge {
            ChallengeChoice::Dns01 => &[Self::Dns01],
            ChallengeChoice::Auto | ChallengeChoice::Http01 | ChallengeChoice::TlsAlpn01
                if name.is_wildcard() =>
            {
                &[Self::Dns01]
            }
            ChallengeChoice::Auto if settings.can_record(name) => {
                &[Self::Http01, Self::TlsAlpn01, Self::Dns01]
            }
            ChallengeChoice::Auto => &[Self::Http01, Self::TlsAlpn01],
            ChallengeChoice::Http01 => &[Self::Http01],
            ChallengeChoice::TlsAlpn01 => &[Self::TlsAlpn01],
        };
        ways[failed as usize % ways.len()]
    }

    /// As the protocol calls it.
    pub const fn kind(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Self::Dns01 => ChallengeType::Dns01,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        })
    }
}

/// Where it is shown.
#[derive(Clone)]
pub struct Boards {
    /// By the cores.
    pub challenges: Arc<Challenges>,
    /// In DNS.
    pub records: Arc<Records>,
}

/// What the cores show; dropping it takes it back. Records in DNS are taken back by the keeper.
pub(super) struct Shown {
    challenges: Arc<Challenges>,
    token: String,
    name: String,
}

impl Shown {
    /// Shows what `challenge` asks for, by `way`.
    ///
    /// # Errors
    /// Where a certificate for the handshake cannot be made, or a record cannot be put into DNS.
    ///
    /// Cancel safety: what was put into DNS is known, and is taken out by [`Records::take_back`].
    pub async fn show(
        boards: &Boards,
        way: Way,
        name: &CertificateName,
        challenge: &ChallengeHandle<'_>,
    ) -> Result<Self, AcmeError> {
        let answer = challenge.key_authorization();
        let shown = Self {
            challenges: Arc::clone(&boards.challenges),
            token: challenge.token.clone(),
            name: name.host().to_string(),
        };
        match way {
            Way::Http01 => boards.challenges.show_file(&shown.token, answer.as_str()),
            Way::TlsAlpn01 => shown.show_certificate(answer.digest().as_ref())?,
            Way::Dns01 => boards.records.show(name, answer.dns_value()).await?,
        }
        Ok(shown)
    }

    //= RFC 8737 section 3: "The client prepares for validation by constructing a self-signed
    // certificate that MUST contain an acmeIdentifier extension and a subjectAlternativeName
    // extension"
    fn show_certificate(&self, digest: &[u8]) -> Result<(), AcmeError> {
        let made = || -> Result<_, rcgen::Error> {
            let mut params = CertificateParams::new(vec![self.name.clone()])?;
            params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?;
            Ok((certificate.der().clone(), key.serialize_der()))
        };
        let told = |error: String| AcmeError::Certificate(error);
        let (certificate, key) = made().map_err(|error| told(error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(key).into();
        self.challenges
            .show_certificate(&self.name, certificate, key)
            .map_err(|error| told(error.to_string()))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.challenges.forget(&self.token, &self.name);
    }
}
