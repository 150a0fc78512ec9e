//! Certificates of a server: read at the start, renewed at a reload, checked by `levee check`.
//!
//! A start with a certificate that is no good fails, because nobody would notice otherwise. At a
//! reload the others are renewed and the one that is no good stays what it was: an operator who is
//! asleep should wake up to a warning, not to a site that is gone.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use levee_net::Shared;
use levee_proxy::{Certificates, TlsKeys, TlsOffer, UnknownHost};

use crate::settings::{self, Settings, TlsSettings};

/// HTTPS of a running server.
pub struct Https {
    keys: TlsKeys,
    in_force: Shared<Arc<Certificates>>,
}

/// What a look at the certificates came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// They cannot be used.
    pub errors: Vec<String>,
    /// They can, and some visitors will be turned away, now or soon.
    pub warnings: Vec<String>,
}

impl Https {
    /// Reads the certificates; none where HTTPS is not configured. Warnings go to the log.
    ///
    /// # Errors
    /// Everything that is wrong with them, one a line.
    pub fn open(settings: &Settings) -> Result<Option<(Self, TlsOffer)>, String> {
        let Some(tls) = &settings.tls else {
            return Ok(None);
        };
        let (certificates, findings) = look(settings, tls);
        if !findings.errors.is_empty() {
            return Err(findings.errors.join("\n"));
        }
        warn(&findings);
        let https = Self {
            keys: TlsKeys::new().map_err(|error| format!("cannot make keys for TLS: {error}"))?,
            in_force: Shared::new(Arc::new(certificates)),
        };
        let offer = https.offer(settings, tls)?;
        Ok(Some((https, offer)))
    }

    /// Reads the certificates again. Those that are no good any more stay what they were; the text
    /// tells of them.
    ///
    /// # Errors
    /// Where nothing can be offered at all.
    pub fn renew(&self, settings: &Settings) -> Result<(Option<TlsOffer>, Vec<String>), String> {
        let Some(tls) = &settings.tls else {
            return Ok((None, vec![]));
        };
        let (mut certificates, findings) = look(settings, tls);
        warn(&findings);
        if !findings.errors.is_empty() {
            self.in_force.with(|old| certificates.keep_from(old));
        }
        self.in_force.replace(Arc::new(certificates));
        Ok((Some(self.offer(settings, tls)?), findings.errors))
    }

    /// When the first of the certificates in force expires, in seconds since 1970.
    pub fn first_expiry(&self) -> Option<f64> {
        let first = self
            .in_force
            .with(|certificates| certificates.first_expiry())?;
        let since = first.duration_since(UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    }

    fn offer(&self, settings: &Settings, tls: &TlsSettings) -> Result<TlsOffer, String> {
        let certificates = self.in_force.with(|certificates| Arc::clone(certificates));
        let unknown = match settings.site.unknown_host {
            settings::UnknownHost::Serve => UnknownHost::Serve,
            settings::UnknownHost::Refuse => UnknownHost::Refuse,
        };
        let preferred = &settings.site.name;
        self.keys
            .offer(&certificates, tls.min_version, preferred, unknown)
            .map_err(|error| format!("cannot offer HTTPS: {error}"))
    }
}

/// What `levee check` tells of the certificates.
pub fn check(settings: &Settings) -> Findings {
    match &settings.tls {
        Some(tls) => look(settings, tls).1,
        None => Findings::default(),
    }
}

fn look(settings: &Settings, tls: &TlsSettings) -> (Certificates, Findings) {
    let (certificates, errors) = Certificates::load(tls.pair.as_ref(), tls.folder.as_deref());
    let names = std::iter::once(&settings.site.name).chain(&settings.site.also);
    let warnings = match errors.is_empty() {
        true => certificates.warnings(names, SystemTime::now()),
        false => vec![],
    };
    let findings = Findings {
        errors: errors.iter().map(ToString::to_string).collect(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
    };
    (certificates, findings)
}

fn warn(findings: &Findings) {
    for error in &findings.errors {
        tracing::error!("{error}; the certificate in force stays");
    }
    for warning in &findings.warnings {
        tracing::warn!("{warning}");
    }
}
