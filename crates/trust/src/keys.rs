//! Ed25519 keys (RFC 8032), and what is signed with them.
//!
//! One key does everything a site has to prove, so each signature covers a fixed text that says
//! what it is for before the bytes themselves: what was signed as a registration never passes as a
//! call for help.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use base64::Engine;
use base64::display::Base64Display;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

/// The secret key of a site, of a registry or of an authority. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    seed: [u8; 32],
    pair: Arc<Ed25519KeyPair>,
}

/// Who somebody is: `ed25519:` and 43 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// What only the holder of a key can have made: 86 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature([u8; 64]);

/// What a signature is for. A signature for one purpose is worth nothing for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A site offers itself to its registry.
    Registration,
    /// A registry answers a question.
    RegistryAnswer,
    /// A site calls for help.
    RescueRequest,
    /// An authority says who is a member.
    MemberList,
    /// An origin says what it has published.
    Publication,
    /// An origin permits its rescue servers to go on without it.
    Permit,
    /// A member says that another one has altered what it delivered.
    Accusation,
}

/// The signature is not of this key, this purpose and these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the signature does not fit: forged, or altered on its way")]
pub struct BadSignature;

/// A text is not a key, a signature or a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Not the text of a public key.
    #[error("a public key is `ed25519:` and 43 letters, digits, `-` and `_`")]
    NotAKey,
    /// Not the text of a signature.
    #[error("a signature is 86 letters, digits, `-` and `_`")]
    NotASignature,
    /// Not a key file.
    #[error("not a key file: it has a line `secret:` with 43 letters, digits, `-` and `_`")]
    NotAKeyFile,
    /// The two halves of a key file do not belong together.
    #[error("the lines `key:` and `secret:` of the key file do not belong together")]
    HalvesDiffer,
}

impl Identity {
    /// The identity that 32 random bytes make.
    ///
    /// # Panics
    /// When the library takes 32 bytes for no key, which it never does.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Self {
            seed: *seed,
            pair: Arc::new(pair.expect("any 32 bytes are an Ed25519 seed")),
        }
    }

    /// The public half, by which others know this identity.
    ///
    /// # Panics
    /// When the library's key does not have 32 bytes, which it always has.
    pub fn key(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().expect("Ed25519 keys have 32 bytes"))
    }

    /// Signs `bytes` for `purpose`.
    ///
    /// # Panics
    /// When the library's signature does not have 64 bytes, which it always has.
    pub fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Signature {
        let signature = self.pair.sign(&purpose.covered(bytes));
        let bytes = signature.as_ref().try_into();
        Signature(bytes.expect("Ed25519 signatures have 64 bytes"))
    }

    /// The text of a key file. It must be readable by its owner only.
    pub fn to_file_text(&self) -> String {
        let (key, secret) = (self.key(), text_of(&self.seed));
        format!("{FILE_HEADER}\nkey: {key}\nsecret: {secret}\n")
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// When it is none, or damaged.
    pub fn from_file_text(text: &str) -> Result<Self, KeyError> {
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let secret = line("secret: ").ok_or(KeyError::NotAKeyFile)?;
        let seed = decode(secret.trim_end()).ok_or(KeyError::NotAKeyFile)?;
        let identity = Self::from_seed(&seed);
        match line("key: ").map(|key| key.trim_end().parse()) {
            None => Ok(identity),
            Some(key) if key == Ok(identity.key()) => Ok(identity),
            Some(_) => Err(KeyError::HalvesDiffer),
        }
    }

    /// The key in the form that TLS libraries read (PKCS #8, RFC 8410 section 7).
    pub fn to_pkcs8(&self) -> Vec<u8> {
        [&PKCS8_HEAD[..], &self.seed].concat()
    }
}

/// Never printed by accident: a log with the key in it is the site given away.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.key())
    }
}

impl PublicKey {
    /// The key of these bytes (RFC 8032 section 5.1.5).
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks that the holder of this key signed `bytes` for `purpose`.
    ///
    /// # Errors
    /// When it did not.
    pub fn verify(
        &self,
        purpose: Purpose,
        bytes: &[u8],
        signature: &Signature,
    ) -> Result<(), BadSignature> {
        let key = ParsedPublicKey::new(&ED25519, self.0).map_err(|_| BadSignature)?;
        key.verify_sig(&purpose.covered(bytes), &signature.0)
            .map_err(|_| BadSignature)
    }

    /// The key out of a certificate or a raw public key (RFC 8410 section 4).
    pub fn from_spki(bytes: &[u8]) -> Option<Self> {
        let key = bytes.strip_prefix(&SPKI_HEAD[..])?;
        Some(Self(key.try_into().ok()?))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", text_of(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let rest = text.strip_prefix(KEY_PREFIX).ok_or(KeyError::NotAKey)?;
        decode(rest).map(Self).ok_or(KeyError::NotAKey)
    }
}

impl Signature {
    /// The signature of these bytes (RFC 8032 section 5.1.6).
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", text_of(&self.0))
    }
}

impl FromStr for Signature {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(Self).ok_or(KeyError::NotASignature)
    }
}

impl Purpose {
    const fn text(self) -> &'static str {
        match self {
            Self::Registration => "levee registration 1\n",
            Self::RegistryAnswer => "levee registry answer 1\n",
            Self::RescueRequest => "levee rescue request 1\n",
            Self::MemberList => "levee member list 1\n",
            // So that whoever knows RFC 9421 can check it. Its bytes begin with a quotation mark,
            // as no other of these texts does: nothing else passes for a publication.
            Self::Publication => "",
            Self::Permit => "levee permit 1\n",
            Self::Accusation => "levee accusation 1\n",
        }
    }

    fn covered(self, bytes: &[u8]) -> Vec<u8> {
        [self.text().as_bytes(), bytes].concat()
    }
}

/// Exactly `N` bytes in base64url without padding. Each value has one text only: the library
/// refuses left-over bits.
fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Before anything is decoded: texts come from strangers.
    if text.len() != (N * 4).div_ceil(3) {
        return None;
    }
    // The library wants room for its estimate, which is larger than what comes out.
    let mut room = [0; 72];
    let count = URL_SAFE_NO_PAD.decode_slice(text, &mut room).ok()?;
    room[..count].try_into().ok()
}

fn text_of(bytes: &[u8]) -> Base64Display<'_, 'static, GeneralPurpose> {
    Base64Display::new(bytes, &URL_SAFE_NO_PAD)
}

const KEY_PREFIX: &str = "ed25519:";
const FILE_HEADER: &str =
    "# levee identity 1. Whoever has the secret is this site: show it nobody.";
/// `SEQUENCE { 0, { 1.3.101.112 }, OCTET STRING { OCTET STRING` of 32 bytes (RFC 8410 section 7).
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// `SEQUENCE { { 1.3.101.112 }, BIT STRING` of 32 bytes (RFC 8410 section 4).
const SPKI_HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::from_seed(&[7; 32])
    }

    #[test]
    fn a_signature_holds_for_its_key_purpose_and_bytes_only() {
        let signature = identity().sign(Purpose::Registration, b"here I am");
        let check = |identity: &Identity, purpose, bytes| {
            identity.key().verify(purpose, bytes, &signature).is_ok()
        };
        assert!(check(&identity(), Purpose::Registration, b"here I am"));
        assert!(!check(&identity(), Purpose::RescueRequest, b"here I am"));
        assert!(!check(&identity(), Purpose::Registration, b"here I am."));
        let other = Identity::from_seed(&[8; 32]);
        assert!(!check(&other, Purpose::Registration, b"here I am"));
    }

    #[test]
    fn the_key_is_that_of_rfc_8032() {
        // RFC 8032 section 7.1, test 1.
        let seed = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
        let text = format!("secret: {seed}\n");
        let identity = Identity::from_file_text(&text).expect("a key file");
        let key = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        assert_eq!(identity.key().to_string(), key);
    }

    #[test]
    fn keys_and_signatures_survive_their_texts() {
        let key = identity().key();
        assert_eq!(key.to_string().parse(), Ok(key));
        let signature = identity().sign(Purpose::Permit, b"x");
        assert_eq!(signature.to_string().parse(), Ok(signature));
        for bad in [
            "",
            "ed25519:",
            "11qY",
            "ed25519:11qY=",
            &"ed25519:a".repeat(5),
        ] {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError::NotAKey), "{bad}");
        }
        // Bits that no byte needs: a second text for the same key.
        let twin = key.to_string().replace(&key.to_string()[50..], "_");
        assert!(twin == key.to_string() || twin.parse::<PublicKey>().is_err());
        assert_eq!("x".parse::<Signature>(), Err(KeyError::NotASignature));
    }

    #[test]
    fn a_key_file_is_read_as_written_and_damage_is_noticed() {
        let text = identity().to_file_text();
        let read = Identity::from_file_text(&text).expect("as written");
        assert_eq!(read.key(), identity().key());
        let other = Identity::from_seed(&[8; 32]).key().to_string();
        let mixed = text.replace(&identity().key().to_string(), &other);
        let failure = Identity::from_file_text(&mixed).map(|_| ());
        assert_eq!(failure, Err(KeyError::HalvesDiffer));
        let failure = Identity::from_file_text("").map(|_| ());
        assert_eq!(failure, Err(KeyError::NotAKeyFile));
        let debug = format!("{:?}", identity());
        assert!(!debug.contains(&text_of(&[7; 32]).to_string()), "{debug}");
    }

    #[test]
    fn the_library_reads_our_pkcs8() {
        let pair = Ed25519KeyPair::from_pkcs8(&identity().to_pkcs8()).expect("PKCS #8");
        assert_eq!(pair.public_key().as_ref(), identity().key().as_bytes());
        let spki = [&SPKI_HEAD[..], identity().key().as_bytes()].concat();
        assert_eq!(PublicKey::from_spki(&spki), Some(identity().key()));
        assert_eq!(PublicKey::from_spki(&spki[1..]), None);
    }
}
