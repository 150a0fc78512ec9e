//! Keys that sign updates (TSIG, RFC 8945): their text, and the file that BIND's tools write.
//!
//! ```text
//! community.:hmac-sha256:bWFrZSBpdCBsb25n                       one line
//! key "community." { algorithm hmac-sha256; secret "..."; };    as tsig-keygen prints it
//! ```
//!
//! Algorithms are those that are safe today, by SHA-2 without truncation. A secret is never shown:
//! neither by `Debug` nor by an error.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::rr::rdata::tsig::TsigAlgorithm;
use hickory_proto::rr::{Name, TSigner};
use thiserror::Error;

use crate::name::DomainName;

/// Most that two clocks may differ, in seconds: what the standard recommends.
//= RFC 8945 section 10
const FUDGE_SECONDS: u16 = 300;

/// A name, an algorithm and a secret that two servers share.
#[derive(Clone)]
pub struct TsigKey {
    signer: TSigner,
    name: DomainName,
}

/// What is wrong with the text of a key. Never shows the secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TsigKeyError {
    /// Neither of the two forms.
    #[error(
        "a key is `name:algorithm:secret`, e.g. `levee.:hmac-sha256:c2VjcmV0`, or a file as \
         `tsig-keygen` writes it"
    )]
    Form,
    /// An algorithm that is unknown or broken.
    #[error("algorithm `{0}` is not one of hmac-sha256, hmac-sha384, hmac-sha512")]
    Algorithm(String),
    /// A name that is none.
    #[error("the key's name `{0}` is not a domain name")]
    Name(String),
    /// Not base64, or nothing.
    #[error("the secret of key `{0}` is not base64")]
    Secret(String),
}

impl TsigKey {
    /// Name of the key, as both servers know it.
    pub const fn name(&self) -> &DomainName {
        &self.name
    }

    pub(crate) const fn signer(&self) -> &TSigner {
        &self.signer
    }

    fn new(name: &str, algorithm: &str, secret: &str) -> Result<Self, TsigKeyError> {
        let known = match algorithm.to_ascii_lowercase().trim_end_matches('.') {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            _ => return Err(TsigKeyError::Algorithm(algorithm.into())),
        };
        let domain: DomainName = name.parse().map_err(|_| TsigKeyError::Name(name.into()))?;
        let wrong = |_| TsigKeyError::Secret(name.into());
        let secret = STANDARD.decode(secret).map_err(wrong)?;
        if secret.is_empty() {
            return Err(TsigKeyError::Secret(name.into()));
        }
        let own: Name = domain.as_name().clone();
        let signer = TSigner::new(secret, known, own, FUDGE_SECONDS);
        Ok(Self {
            signer: signer.expect("all three algorithms are supported"),
            name: domain,
        })
    }
}

impl FromStr for TsigKey {
    type Err = TsigKeyError;

    /// Reads either form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let after = text.strip_prefix("key");
        let begins =
            |rest: &&str| rest.starts_with(|next: char| next == '"' || next.is_whitespace());
        if let Some(rest) = after.filter(begins) {
            return statement(rest);
        }
        let [name, algorithm, secret] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(TsigKeyError::Form);
        };
        // nsupdate wants the algorithm first: nobody should have to remember which.
        match name.to_ascii_lowercase().starts_with("hmac-") {
            true => Self::new(algorithm, name, secret),
            false => Self::new(name, algorithm, secret),
        }
    }
}

/// Reads `"name" { algorithm hmac-sha256; secret "..."; };`.
fn statement(text: &str) -> Result<TsigKey, TsigKeyError> {
    let form = || TsigKeyError::Form;
    let (name, rest) = text.split_once('{').ok_or_else(form)?;
    let (body, _) = rest.split_once('}').ok_or_else(form)?;
    let (mut algorithm, mut secret) = (None, None);
    for clause in body.split(';') {
        let mut words = clause.split_whitespace().map(|word| word.trim_matches('"'));
        match (words.next(), words.next()) {
            (Some("algorithm"), word) => algorithm = word,
            (Some("secret"), word) => secret = word,
            (None, _) => {}
            (Some(_), _) => return Err(form()),
        }
    }
    let name = name.trim().trim_matches('"');
    TsigKey::new(name, algorithm.ok_or_else(form)?, secret.ok_or_else(form)?)
}

impl fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TsigKey({})", self.name)
    }
}

impl PartialEq for TsigKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.signer.algorithm() == other.signer.algorithm()
            && self.signer.key() == other.signer.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, TsigKeyError>) {
        let read = text.parse::<TsigKey>();
        assert_eq!(read.map(|key| format!("{key:?}")), expected.map(Into::into));
    }

    #[test]
    fn both_forms_are_read_and_no_secret_is_shown() {
        check("a.example:hmac-sha256:c2VjcmV0", Ok("TsigKey(a.example)"));
        check("hmac-sha512:A.example.:c2VjcmV0", Ok("TsigKey(a.example)"));
        let file = "key \"a.example\" {\n\talgorithm hmac-sha384;\n\tsecret \"c2VjcmV0\";\n};\n";
        check(file, Ok("TsigKey(a.example)"));
        check(
            "key.example:hmac-sha256:c2VjcmV0",
            Ok("TsigKey(key.example)"),
        );
    }

    #[test]
    fn what_is_wrong_is_told_without_the_secret() {
        check("c2VjcmV0", Err(TsigKeyError::Form));
        check("key x { secret }", Err(TsigKeyError::Form));
        check("key \"x\" { bits 3; }", Err(TsigKeyError::Form));
        let old = TsigKeyError::Algorithm("hmac-md5".into());
        check("a:hmac-md5:c2VjcmV0", Err(old));
        check("a:hmac-sha256:%%%", Err(TsigKeyError::Secret("a".into())));
        check("a:hmac-sha256:", Err(TsigKeyError::Secret("a".into())));
        let name = TsigKeyError::Name("a..b".into());
        check("a..b:hmac-sha256:c2VjcmV0", Err(name));
    }
}
