//! Certificates of a server: read at the start, renewed at a reload, checked by `levee check`.
//!
//! A start with a certificate that is no good fails, because nobody would notice otherwise. At a
//! reload the others are renewed and the one that is no good stays what it was: an operator who is
//! asleep should wake up to a warning, not to a site that is gone. One that has expired, or is not
//! valid yet, is no good either where the one in force is: it is taken at a start, and never in
//! place of one that is valid. The status page tells of both. Certificates that were ordered
//! (`acme`) come from the state folder, and each new one is read like at a reload; one of those
//! that is no good is ordered again, so it stops nobody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use levee_control::Visitors;
use levee_net::Shared;
use levee_observe::{Calendar, CertificateTrouble};
use levee_proxy::{Certificates, CertificatesError, Challenges, TlsKeys, TlsOffer, UnknownHost};
use levee_vocab::HostName;

use crate::acme::{CertificateName, CertificateStore, Lifetime};
use crate::settings::{self, Settings, TlsSettings};

/// HTTPS of a running server.
pub struct Https {
    keys: TlsKeys,
    challenges: Arc<Challenges>,
    in_force: Shared<Arc<InForce>>,
}

/// The certificates that are shown.
#[derive(Default)]
struct InForce {
    certificates: Certificates,
    /// Those of them that were ordered.
    ordered: BTreeMap<CertificateName, Lifetime>,
    /// The files that those are in.
    ordered_files: Vec<PathBuf>,
    /// Files that were not taken at the last reload.
    not_taken: Vec<CertificateTrouble>,
}

/// Certificates as they were read.
#[derive(Default)]
struct Looked {
    in_force: InForce,
    errors: Vec<CertificatesError>,
    /// Ordered ones that cannot be used.
    flaws: Vec<CertificatesError>,
}

/// What a look at the certificates came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// They cannot be used.
    pub errors: Vec<String>,
    /// They can, and some visitors will be turned away, now or soon.
    pub warnings: Vec<String>,
}

/// The ports at which visitors by HTTPS are answered. Certificates come and expire, so it is asked
/// anew each time that somebody is told.
#[derive(Clone, Default)]
pub struct HttpsPorts(Option<Arc<dyn Fn() -> Ports + Send + Sync>>);

/// See [`HttpsPorts`]; none where there is no certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// By the site's own name.
    pub site: Option<u16>,
    /// By the aliases that we give out.
    pub alias: Option<u16>,
}

impl HttpsPorts {
    /// The ports of a server that answers at `port`, by the site's name and by any alias.
    pub fn of(https: &Arc<Https>, settings: &Settings, port: u16) -> Self {
        let https = Arc::clone(https);
        let site = settings.site.name.clone();
        let community = settings.community.as_ref();
        let aliases = community.map(|community| community.alias_domain.clone());
        let covers_aliases = move |https: &Https| {
            let domain = aliases.as_ref();
            domain.is_some_and(|domain| https.covers_all_below(domain))
        };
        Self(Some(Arc::new(move || Ports {
            site: https.covers(&site).then_some(port),
            alias: covers_aliases(&https).then_some(port),
        })))
    }

    /// The ports now.
    pub fn now(&self) -> Ports {
        self.0.as_ref().map_or_else(Ports::default, |ask| ask())
    }
}

/// By which schemes visitors come: what the settings want, as far as there is a certificate.
#[derive(Debug)]
pub struct VisitorSchemes {
    wanted: Visitors,
    ports: HttpsPorts,
}

impl VisitorSchemes {
    /// Those that `wanted` asks for, of a server that answers at `ports`.
    pub const fn new(wanted: Visitors, ports: HttpsPorts) -> Self {
        Self { wanted, ports }
    }

    /// The settings want something else.
    pub fn want(&mut self, wanted: Visitors) {
        self.wanted = wanted;
    }

    /// How they come now.
    pub fn now(&self) -> Visitors {
        self.wanted.while_answered_at(self.ports.now().site)
    }
}

impl std::fmt::Debug for HttpsPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.now().fmt(f)
    }
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
        let looked = look(settings, tls);
        let findings = looked.findings(settings);
        if !findings.errors.is_empty() {
            return Err(findings.errors.join("\n"));
        }
        warn(&findings);
        let keys = TlsKeys::new().map_err(|error| format!("cannot make keys for TLS: {error}"))?;
        let challenges = Arc::<Challenges>::default();
        let https = Self {
            keys: keys.answering(Arc::clone(&challenges)),
            challenges,
            in_force: Shared::new(Arc::new(looked.in_force)),
        };
        let offer = https.offer(settings, tls)?;
        Ok(Some((https, offer)))
    }

    /// What authorities are shown that check our names.
    pub const fn challenges(&self) -> &Arc<Challenges> {
        &self.challenges
    }

    /// Reads the certificates again. Those that are no good any more stay what they were; the text
    /// tells of them, one sentence each.
    ///
    /// # Errors
    /// Where nothing can be offered at all.
    pub fn renew(&self, settings: &Settings) -> Result<(Option<TlsOffer>, Vec<String>), String> {
        let Some(tls) = &settings.tls else {
            return Ok((None, vec![]));
        };
        let mut looked = look(settings, tls);
        looked.keep_from(&self.certificates(), SystemTime::now());
        let findings = looked.findings(settings);
        let not_taken: Vec<_> = looked.in_force.not_taken.iter().map(complaint).collect();
        for complaint in &not_taken {
            tracing::error!("{complaint}");
        }
        warn(&findings);
        self.in_force.replace(Arc::new(looked.in_force));
        Ok((Some(self.offer(settings, tls)?), not_taken))
    }

    /// Certificates that turn visitors away at `now`, or were not taken at the last reload. Those
    /// that are ordered tell of themselves.
    pub fn troubles(&self, now: SystemTime) -> Vec<CertificateTrouble> {
        let in_force = self.certificates();
        let mut troubles = in_force.not_taken.clone();
        for warning in in_force.certificates.invalid(now) {
            let file = shown(warning.file());
            let is_ordered = |own: &PathBuf| Some(own.as_path()) == warning.file();
            let is_told = troubles.iter().any(|one| one.file == file);
            if !is_told && !in_force.ordered_files.iter().any(is_ordered) {
                troubles.push(CertificateTrouble {
                    file,
                    problem: warning.to_string(),
                    in_force_until: None,
                });
            }
        }
        troubles
    }

    /// When the first of the certificates in force expires, in seconds since 1970.
    pub fn first_expiry(&self) -> Option<f64> {
        unix(self.certificates().certificates.first_expiry()?)
    }

    /// From when until when the certificate that was ordered for `name` is valid.
    pub fn lifetime(&self, name: &CertificateName) -> Option<Lifetime> {
        self.certificates().ordered.get(name).copied()
    }

    /// Whether there is a certificate for `name`.
    pub fn covers(&self, name: &HostName) -> bool {
        self.certificates().certificates.cover(name.as_str())
    }

    /// Whether there is a certificate for every name one label below `domain`.
    pub fn covers_all_below(&self, domain: &HostName) -> bool {
        let wildcard = CertificateName::below(domain).to_string();
        let in_force = self.certificates();
        let mut all = in_force.certificates.all().iter();
        all.any(|one| one.names.contains(&wildcard) && one.valid_until > SystemTime::now())
    }

    fn certificates(&self) -> Arc<InForce> {
        self.in_force.with(|in_force| Arc::clone(in_force))
    }

    fn offer(&self, settings: &Settings, tls: &TlsSettings) -> Result<TlsOffer, String> {
        let in_force = self.certificates();
        let unknown = match settings.site.unknown_host {
            settings::UnknownHost::Serve => UnknownHost::Serve,
            settings::UnknownHost::Refuse => UnknownHost::Refuse,
        };
        let preferred = &settings.site.name;
        self.keys
            .offer(&in_force.certificates, tls.min_version, preferred, unknown)
            .map_err(|error| format!("cannot offer HTTPS: {error}"))
    }
}

/// What `levee check` tells of the certificates.
pub fn check(settings: &Settings) -> Findings {
    match &settings.tls {
        Some(tls) => look(settings, tls).findings(settings),
        None => Findings::default(),
    }
}

impl Looked {
    /// What of `old` is better stays.
    fn keep_from(&mut self, old: &InForce, now: SystemTime) {
        let certificates = &mut self.in_force.certificates;
        for (warning, until) in certificates.keep_valid(&old.certificates, now) {
            self.in_force.not_taken.push(CertificateTrouble {
                file: shown(warning.file()),
                problem: warning.to_string(),
                in_force_until: unix(until),
            });
        }
        if !self.errors.is_empty() {
            certificates.keep_missing(&old.certificates);
        }
        for error in &self.errors {
            let all = certificates.all().iter();
            let is_from = |path: &Path| path.starts_with(error.file());
            let its = all.filter(|one| is_from(&one.files.certificate) || is_from(&one.files.key));
            // A new name in the settings has none of its own in force: then that of all others.
            let until = its.map(|one| one.valid_until).min();
            let until = until.or_else(|| old.certificates.first_expiry());
            self.in_force.not_taken.push(CertificateTrouble {
                file: shown(Some(error.file())),
                problem: error.to_string(),
                in_force_until: until.and_then(unix),
            });
        }
    }

    fn findings(&self, settings: &Settings) -> Findings {
        let flaws = self.flaws.iter();
        let mut findings = Findings {
            errors: self.errors.iter().map(ToString::to_string).collect(),
            warnings: flaws
                .map(|flaw| format!("{flaw}; a new one is ordered"))
                .collect(),
        };
        if findings.errors.is_empty() {
            // What is to come is not missing.
            let is_to_come = |name: &&HostName| {
                let mut names = settings.acme.iter().flat_map(|acme| &acme.names);
                names.any(|one| one.covers(name))
            };
            let names = std::iter::once(&settings.site.name).chain(&settings.site.also);
            let names = names.filter(|name| !is_to_come(name));
            let certificates = &self.in_force.certificates;
            let warnings = certificates.warnings(names, SystemTime::now());
            let told = warnings.iter().map(ToString::to_string);
            findings.warnings.extend(told);
        }
        findings
    }
}

fn look(settings: &Settings, tls: &TlsSettings) -> Looked {
    let (certificates, errors) = match (&tls.pair, &tls.folder) {
        (None, None) => <_>::default(),
        (pair, folder) => Certificates::load(pair.as_ref(), folder.as_deref()),
    };
    let mut looked = Looked {
        errors,
        ..Looked::default()
    };
    looked.in_force.certificates = certificates;
    let wanted = settings.acme.iter().flat_map(|acme| &acme.names);
    let store = settings.state_folder.as_deref().map(CertificateStore::at);
    for (name, store) in wanted.filter_map(|name| Some((name, store.as_ref()?))) {
        let Some(files) = store.files(name) else {
            continue;
        };
        looked
            .in_force
            .ordered_files
            .push(files.certificate.clone());
        let certificates = &mut looked.in_force.certificates;
        let known = certificates.all().len();
        looked.flaws.extend(certificates.add([files]));
        if let Some(one) = certificates.all().get(known) {
            let (from, until) = (one.valid_from, one.valid_until);
            let lifetime = Lifetime { from, until };
            looked.in_force.ordered.insert(name.clone(), lifetime);
        }
    }
    looked
}

/// What is told of a certificate that was not taken.
fn complaint(trouble: &CertificateTrouble) -> String {
    let problem = &trouble.problem;
    match trouble.in_force_until {
        Some(until) => format!(
            "{problem}; the certificate in force stays, it is valid until {}",
            Calendar::of(until as u64).rfc3339()
        ),
        None => format!("{problem}; there was none in force"),
    }
}

fn shown(file: Option<&Path>) -> String {
    file.map(|file| file.display().to_string())
        .unwrap_or_default()
}

fn unix(time: SystemTime) -> Option<f64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64())
}

fn warn(findings: &Findings) {
    for warning in &findings.warnings {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests;
