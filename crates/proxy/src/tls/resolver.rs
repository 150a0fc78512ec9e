//! Which certificate a visitor gets, by the name in its first message (SNI).
//!
//! The table is immutable and shared by all cores. A name is looked up as it is and then by what
//! comes after its first label, so that a wildcard costs a second look and no copy.
//! A certificate that was not valid when the table was made is shown only by names that no other
//! one is for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use levee_vocab::HostName;
use rustls::SignatureAlgorithm;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::certificates::Certificates;
use crate::challenges::{CHALLENGE_PROTOCOL, Challenges};
use crate::site::UnknownHost;

/// Several where one name has keys of several kinds; the better ones first.
type Keys = Vec<Arc<CertifiedKey>>;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    names: HashMap<String, Keys>,
    /// Wildcards by what comes after the star and its dot.
    wildcards: HashMap<String, Keys>,
    /// For who names none.
    nameless: Keys,
    /// For who names one that we have no certificate for.
    unknown: Keys,
    /// What authorities are shown, where we order certificates.
    challenges: Option<Arc<Challenges>>,
}

impl Resolver {
    /// Shows `certificates`, those first that are valid at `now`; `preferred` is the name of those
    /// who name none.
    pub fn new(
        certificates: &Certificates,
        now: SystemTime,
        preferred: &HostName,
        unknown: UnknownHost,
    ) -> Self {
        let mut resolver = Self::default();
        let all = certificates.all().iter();
        let (good, bad): (Vec<_>, Vec<_>) = all.partition(|one| one.is_valid_at(now));
        for certificate in &good {
            resolver.add(certificate, &certificate.names);
        }
        // All are looked up before any is added: those of several kinds of keys stay together.
        let lacking = bad.iter().map(|one| {
            let names = one.names.iter().filter(|name| !resolver.has(name));
            (*one, names.cloned().collect::<Vec<_>>())
        });
        for (certificate, names) in lacking.collect::<Vec<_>>() {
            resolver.add(certificate, &names);
        }
        let first = good.into_iter().chain(bad).next();
        let first = first.map(|one| vec![Arc::clone(&one.key)]);
        resolver.nameless = match resolver.find(preferred.as_str()) {
            Some(keys) => keys.clone(),
            None => first.unwrap_or_default(),
        };
        resolver.unknown = match unknown {
            UnknownHost::Serve => resolver.nameless.clone(),
            UnknownHost::Refuse => vec![],
        };
        resolver
    }

    fn add(&mut self, certificate: &Certificate, names: &[String]) {
        for name in names {
            let keys = match name.strip_prefix("*.") {
                Some(parent) => self.wildcards.entry(parent.to_owned()),
                None => self.names.entry(name.clone()),
            };
            let keys = keys.or_default();
            keys.push(Arc::clone(&certificate.key));
            // A visitor who knows both is served faster with the smaller one.
            keys.sort_by_key(|key| rank(key.key.algorithm()));
        }
    }

    /// Whether there is one for `name`, which may begin with `*.`.
    fn has(&self, name: &str) -> bool {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcards.contains_key(parent),
            None => self.find(name).is_some(),
        }
    }

    /// The same, which also shows authorities what they ask for.
    pub fn answering(mut self, challenges: Option<Arc<Challenges>>) -> Self {
        self.challenges = challenges;
        self
    }

    /// The certificates for `name`, in lower case.
    pub fn find(&self, name: &str) -> Option<&Keys> {
        self.names.get(name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            self.wildcards.get(parent)
        })
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        if let Some(challenges) = &self.challenges
            && is_challenge(&hello)
        {
            //= RFC 8737 section 3: "The ACME server verifies that the name in the certificate"
            // is the only one; any other certificate would be as good as none.
            return challenges.certificate(&name?);
        }
        let keys = match &name {
            Some(name) => self.find(name).unwrap_or(&self.unknown),
            None => &self.nameless,
        };
        let is_known =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        keys.iter().find(is_known).or(keys.first()).cloned()
    }
}

/// Whether this is an authority that checks a name: it offers that protocol and no other.
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    let Some(mut offered) = hello.alpn() else {
        return false;
    };
    offered.next() == Some(CHALLENGE_PROTOCOL) && offered.next().is_none()
}

/// Which of several is shown first to who knows all of them: signatures of ECDSA cost a tenth of
/// those of RSA.
fn rank(algorithm: SignatureAlgorithm) -> usize {
    let order = [SignatureAlgorithm::ECDSA, SignatureAlgorithm::ED25519];
    let place = order.iter().position(|one| *one == algorithm);
    place.unwrap_or(order.len())
}
