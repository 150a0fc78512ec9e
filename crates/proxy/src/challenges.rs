//! What a certificate authority is shown when it checks that a name is ours (ACME, RFC 8555).
//!
//! Whoever orders certificates puts an answer in before the authority is told to look, and takes it
//! out when the authority has looked. The cores read it at two places only: a request below
//! `/.well-known/acme-challenge/`, and a handshake that speaks of nothing but `acme-tls/1` (RFC
//! 8737). So the lock in here is on nobody else's way, and an answer is there for every core as
//! soon as it is in.
//!
//! A token or name that is not in here is not ours to answer: the request goes its usual way, to
//! the site's folder or application, where another client (certbot) may have left its answer.

use std::collections::HashMap;
use std::sync::Arc;

use levee_net::Shared;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct Challenges {
    answers: Shared<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Key authorizations by token (http-01).
    files: HashMap<String, Arc<str>>,
    /// Certificates by name, in lower case (tls-alpn-01).
    certificates: HashMap<String, Arc<CertifiedKey>>,
}

/// Where the answers of http-01 are asked for.
//= RFC 8555 section 8.3: "the path at which the resource is provisioned is comprised of the fixed
// prefix /.well-known/acme-challenge/, followed by the "token" value in the challenge"
pub(crate) const CHALLENGE_PREFIX: &str = "/.well-known/acme-challenge/";

/// The protocol that an authority names in its handshake (RFC 8737 section 6.2).
pub(crate) const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

impl Challenges {
    /// From now on answers the request for `token` with `answer`.
    pub fn show_file(&self, token: &str, answer: &str) {
        let entry = (token.to_owned(), Arc::from(answer));
        self.answers.with(|answers| answers.files.extend([entry]));
    }

    /// From now on shows this certificate to an authority that asks for `name`.
    ///
    /// # Errors
    /// Where the key cannot be used.
    pub fn show_certificate(
        &self,
        name: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), rustls::Error> {
        let key = crate::tls::provider().key_provider.load_private_key(key)?;
        let shown = Arc::new(CertifiedKey::new(vec![certificate], key));
        let entry = (name.to_ascii_lowercase(), shown);
        self.answers
            .with(|answers| answers.certificates.extend([entry]));
        Ok(())
    }

    /// Takes out what was shown for `token` and for `name`.
    pub fn forget(&self, token: &str, name: &str) {
        self.answers.with(|answers| {
            answers.files.remove(token);
            answers.certificates.remove(name);
        });
    }

    /// The answer to a request for `target`.
    pub(crate) fn file(&self, target: &str) -> Option<Arc<str>> {
        let token = target.strip_prefix(CHALLENGE_PREFIX)?;
        self.answers
            .with(|answers| answers.files.get(token).cloned())
    }

    /// The certificate for an authority that asks for `name`, in lower case.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.answers
            .with(|answers| answers.certificates.get(name).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_until_it_is_taken_out() {
        let challenges = Challenges::default();
        challenges.show_file("token", "token.thumb");
        let at = |target: &str| challenges.file(target);
        assert_eq!(
            at("/.well-known/acme-challenge/token").as_deref(),
            Some("token.thumb")
        );
        assert_eq!(at("/.well-known/acme-challenge/token?x"), None);
        assert_eq!(at("/token"), None);
        challenges.forget("token", "site.example");
        assert_eq!(at("/.well-known/acme-challenge/token"), None);
    }
}
