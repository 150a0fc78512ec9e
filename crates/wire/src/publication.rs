//! What an origin says of a response that others will deliver for it: its digest (RFC 9530), and a
//! signature over that and over what it belongs to (RFC 9421).
//!
//! ```text
//! Repr-Digest: sha-256=:<base64>:
//! Signature-Input: levee=("repr-digest" "@status" "content-type" "content-encoding"
//!                         "@path";req "@query";req);created=1;expires=2;keyid="ed25519:..."
//!                         ;alg="ed25519";tag="levee www.example.org:80"
//! Signature: levee=:<base64>:
//! ```
//!
//! Three fields of an ordinary response, so that they pass through caches and homes like any other.
//! The host of the request is not covered, because a visitor asks under an alias: the tag names the
//! origin instead, and the path is the same under both. So no page passes for another page, nor for
//! one of another site, whoever hands it out.
//!
//! Two halves: [`Published`] writes, [`Claim`] reads what somebody delivers and says over which
//! bytes its signature must be. No key is known here. A fixed list of components is written, and
//! nothing else is taken: of the many ways to sign that RFC 9421 has, one is enough here.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sfv::{
    BareItem, DictSerializer, Dictionary, InnerList, Item, KeyRef, ListEntry, Parameters, Parser,
};
use thiserror::Error;

/// The field of the digest, in lower case.
pub const DIGEST_FIELD: &str = "repr-digest";
/// The field that says what is signed, in lower case.
pub const INPUT_FIELD: &str = "signature-input";
/// The field of the signature, in lower case.
pub const SIGNATURE_FIELD: &str = "signature";

/// SHA-256 of a representation: of the body, with its content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// From when to when a signature holds, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When it was made.
    pub created: u64,
    /// When it is worth nothing any more.
    pub expires: u64,
}

/// A response as its origin publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published<'a> {
    /// Of its body.
    pub digest: Digest,
    /// Its status.
    pub status: u16,
    /// Content-Type, where it has one.
    pub content_type: Option<&'a str>,
    /// Content-Encoding, where it has one.
    pub content_encoding: Option<&'a str>,
    /// Name and port of the origin, `www.example.org:80`.
    pub site: &'a str,
    /// Path and query, as sent.
    pub target: &'a str,
}

/// What a delivered response claims of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What the body should have.
    pub digest: Digest,
    /// How long it holds.
    pub validity: Validity,
    /// Text of the key that is said to have signed it.
    pub key: String,
    /// The signature.
    pub signature: [u8; 64],
    /// What is signed, as it goes into the base.
    parameters: String,
    components: Vec<String>,
    tag: String,
}

/// Why a claim is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClaimFault {
    /// There is none.
    #[error("it is not signed")]
    Unsigned,
    /// It cannot be read, or is not of the form that is written here.
    #[error("its signature is not of the form that origins write")]
    Malformed,
    /// It does not cover what it should, or more.
    #[error("its signature does not cover what it should")]
    Coverage,
    /// It is for another site.
    #[error("it is signed for another site")]
    OtherSite,
}

const LABEL: &str = "levee";
const ALGORITHM: &str = "ed25519";

impl Digest {
    /// Its 64 hexadecimal digits.
    pub fn hexadecimal(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The digest with these 64 digits; none where they are not.
    pub fn from_hexadecimal(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_hex) {
            return None;
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(digest))
    }

    fn text(self) -> String {
        format!("sha-256=:{}:", STANDARD.encode(self.0))
    }
}

impl Published<'_> {
    /// What is signed and by whom: the value that goes into the base, and after the label into
    /// Signature-Input.
    pub fn parameters(&self, validity: Validity, key: &str) -> String {
        let Validity { created, expires } = validity;
        let components = self.components().join(" ");
        format!(
            "({components});created={created};expires={expires};keyid=\"{key}\";alg=\"{ALGORITHM}\"\
             ;tag=\"{}\"",
            self.tag()
        )
    }

    /// The bytes to sign (RFC 9421 section 2.5); `parameters` are those of
    /// [`Published::parameters`]. They begin with a quotation mark, as nothing else does that a
    /// site signs.
    pub fn base(&self, parameters: &str) -> String {
        let (path, query) = match self.target.find('?') {
            Some(at) => self.target.split_at(at),
            None => (self.target, "?"),
        };
        let mut base = String::with_capacity(320);
        let mut line = |name: &str, value: &str| {
            // Writing to memory does not fail.
            let _ = writeln!(base, "{name}: {value}");
        };
        line("\"repr-digest\"", &self.digest.text());
        line("\"@status\"", &format!("{:03}", self.status));
        if let Some(content_type) = self.content_type {
            line("\"content-type\"", content_type);
        }
        if let Some(coding) = self.content_encoding {
            line("\"content-encoding\"", coding);
        }
        line("\"@path\";req", path);
        line("\"@query\";req", query);
        let _ = write!(base, "\"@signature-params\": {parameters}");
        base
    }

    /// The three header lines, each with its end.
    pub fn lines(&self, parameters: &str, signature: &[u8; 64]) -> String {
        format!(
            "Repr-Digest: {}\r\nSignature-Input: {LABEL}={parameters}\r\nSignature: {LABEL}=:{}:\r\n",
            self.digest.text(),
            STANDARD.encode(signature)
        )
    }

    /// Whether everything in it can stand in a signature base: a base has no other line ends than
    /// its own.
    pub fn is_plain(&self) -> bool {
        let values = [self.content_type, self.content_encoding, Some(self.target)];
        let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        values
            .into_iter()
            .flatten()
            .all(|value| value.trim() == value && !value.is_empty() && value.bytes().all(is_plain))
    }

    fn components(&self) -> Vec<&'static str> {
        let mut components = vec!["\"repr-digest\"", "\"@status\""];
        components.extend(self.content_type.map(|_| "\"content-type\""));
        components.extend(self.content_encoding.map(|_| "\"content-encoding\""));
        components.extend(["\"@path\";req", "\"@query\";req"]);
        components
    }

    fn tag(&self) -> String {
        format!("levee {}", self.site)
    }
}

impl Claim {
    /// Reads the three fields; `field` gives the value of a field by its name in lower case.
    ///
    /// # Errors
    /// When there is no claim, or one of another form.
    pub fn read<'a>(field: impl Fn(&str) -> Option<&'a [u8]>) -> Result<Self, ClaimFault> {
        let missing = ClaimFault::Unsigned;
        let digest = field(DIGEST_FIELD).ok_or(missing)?;
        let input = field(INPUT_FIELD).ok_or(missing)?;
        let signature = field(SIGNATURE_FIELD).ok_or(missing)?;
        // An application may sign its responses itself, under another label.
        if dictionary(input).is_some_and(|inputs| !inputs.contains_key(LABEL)) {
            return Err(missing);
        }
        Self::parse(digest, input, signature).ok_or(ClaimFault::Malformed)
    }

    fn parse(digest: &[u8], input: &[u8], signature: &[u8]) -> Option<Self> {
        let digest = bytes_of(&dictionary(digest)?, "sha-256")?;
        let signature = bytes_of(&dictionary(signature)?, LABEL)?;
        let inputs = dictionary(input)?;
        let list = match inputs.get(LABEL)? {
            ListEntry::InnerList(list) => list,
            ListEntry::Item(_) => return None,
        };
        let parameters = &list.params;
        if text_of(parameters, "alg")? != ALGORITHM {
            return None;
        }
        Some(Self {
            digest: Digest(digest),
            validity: Validity {
                created: number_of(parameters, "created")?,
                expires: number_of(parameters, "expires")?,
            },
            key: text_of(parameters, "keyid")?.to_owned(),
            tag: text_of(parameters, "tag")?.to_owned(),
            signature,
            components: list.items.iter().map(component).collect::<Option<_>>()?,
            parameters: rewritten(list)?,
        })
    }

    /// The bytes over which the signature must be, where it is of `published`: what was delivered,
    /// with the digest that it claims.
    ///
    /// # Errors
    /// When it covers other things, or is for another site.
    pub fn base(&self, published: &Published<'_>) -> Result<String, ClaimFault> {
        if self.tag != published.tag() {
            return Err(ClaimFault::OtherSite);
        }
        let covers = self.components == published.components();
        if !covers || !published.is_plain() || self.digest != published.digest {
            return Err(ClaimFault::Coverage);
        }
        Ok(published.base(&self.parameters))
    }
}

/// As RFC 9421 section 2.5 has it: what was received, written anew by the strict rules.
fn rewritten(list: &InnerList) -> Option<String> {
    let key = KeyRef::from_str(LABEL).ok()?;
    let entry = ListEntry::InnerList(list.clone());
    let mut serializer = DictSerializer::new();
    serializer.members([(key, &entry)]);
    let text = serializer.finish()?;
    Some(text.strip_prefix(LABEL)?.strip_prefix('=')?.to_owned())
}

fn component(item: &Item) -> Option<String> {
    let name = item.bare_item.as_string()?.as_str();
    let of_request = |(key, value): (&sfv::Key, &BareItem)| {
        key.as_str() == "req" && value.as_boolean() == Some(true)
    };
    let ending = match item.params.len() {
        0 => "",
        1 if item.params.iter().all(of_request) => ";req",
        _ => return None,
    };
    Some(format!("\"{name}\"{ending}"))
}

fn dictionary(text: &[u8]) -> Option<Dictionary> {
    Parser::new(text).parse().ok()
}

fn bytes_of<const N: usize>(dictionary: &Dictionary, name: &str) -> Option<[u8; N]> {
    match dictionary.get(name)? {
        ListEntry::Item(item) => item.bare_item.as_byte_sequence()?.try_into().ok(),
        ListEntry::InnerList(_) => None,
    }
}

fn text_of<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    Some(parameters.get(name)?.as_string()?.as_str())
}

fn number_of(parameters: &Parameters, name: &str) -> Option<u64> {
    i64::from(parameters.get(name)?.as_integer()?)
        .try_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const VALIDITY: Validity = Validity {
        created: 1_700_000_000,
        expires: 1_700_086_400,
    };

    fn page(target: &str) -> Published<'_> {
        Published {
            digest: Digest([1; 32]),
            status: 200,
            content_type: Some("text/html; charset=utf-8"),
            content_encoding: None,
            site: "www.example.org:80",
            target,
        }
    }

    fn read(lines: &str) -> Result<Claim, ClaimFault> {
        Claim::read(|name| {
            let mut lines = lines.lines();
            lines.find_map(|line| {
                let (field, value) = line.split_once(": ")?;
                field.eq_ignore_ascii_case(name).then_some(value.as_bytes())
            })
        })
    }

    fn signed(published: &Published<'_>) -> (String, String) {
        let parameters = published.parameters(VALIDITY, KEY);
        let lines = published.lines(&parameters, &[2; 64]);
        (published.base(&parameters), lines)
    }

    #[test]
    fn the_base_is_that_of_rfc_9421() {
        let (base, _) = signed(&page("/news?page=2"));
        let expected = "\"repr-digest\": sha-256=:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=:\n\
            \"@status\": 200\n\
            \"content-type\": text/html; charset=utf-8\n\
            \"@path\";req: /news\n\
            \"@query\";req: ?page=2\n\
            \"@signature-params\": (\"repr-digest\" \"@status\" \"content-type\" \"@path\";req \
            \"@query\";req);created=1700000000;expires=1700086400;keyid=\"ed25519:11qYAYKxCrfVS_7Ty\
            WQHOg7hcvPapiMlrwIaaPcHURo\";alg=\"ed25519\";tag=\"levee www.example.org:80\"";
        assert_eq!(base, expected);
    }

    #[test]
    fn what_was_written_is_read_back() {
        for target in ["/", "/news?page=2", "/a?", "/%20"] {
            let published = page(target);
            let (base, lines) = signed(&published);
            let claim = read(&lines).unwrap();
            assert_eq!(claim.base(&published).unwrap(), base);
            assert_eq!(claim.validity, VALIDITY);
            assert_eq!(claim.key, KEY);
            assert_eq!(claim.signature, [2; 64]);
        }
    }

    #[test]
    fn a_page_passes_for_no_other() {
        let (base, lines) = signed(&page("/news"));
        let claim = read(&lines).unwrap();
        let others = [
            page("/other"),
            page("/news?x"),
            Published {
                status: 404,
                ..page("/news")
            },
            Published {
                content_type: Some("text/plain"),
                ..page("/news")
            },
        ];
        for other in others {
            assert_ne!(claim.base(&other), Ok(base.clone()));
        }
        let elsewhere = Published {
            site: "www.example.net:80",
            ..page("/news")
        };
        assert_eq!(claim.base(&elsewhere), Err(ClaimFault::OtherSite));
        let coded = Published {
            content_encoding: Some("gzip"),
            ..page("/news")
        };
        assert_eq!(claim.base(&coded), Err(ClaimFault::Coverage));
        let untyped = Published {
            content_type: None,
            ..page("/news")
        };
        assert_eq!(claim.base(&untyped), Err(ClaimFault::Coverage));
    }

    #[test]
    fn what_is_no_claim_is_named() {
        let (_, lines) = signed(&page("/"));
        assert_eq!(read(""), Err(ClaimFault::Unsigned));
        for (word, other) in [
            ("sha-256", "sha-512"),
            ("alg=\"ed25519\"", "alg=\"hmac-sha256\""),
            ("created=1700000000", "created=x"),
            ("Signature: levee", "Signature: other"),
            ("levee=(", "levee=;("),
            ("\"@path\";req", "\"@path\";bs"),
        ] {
            let changed = lines.replace(word, other);
            assert_eq!(read(&changed), Err(ClaimFault::Malformed), "{word}");
        }
        let of_an_application = lines.replace("Input: levee", "Input: app");
        assert_eq!(read(&of_an_application), Err(ClaimFault::Unsigned));
    }

    #[test]
    fn a_target_with_a_line_end_is_not_signed() {
        assert!(page("/news").is_plain());
        assert!(!page("/a\n\"@status\": 200").is_plain());
        assert!(!page("/ä").is_plain());
        assert!(!page("").is_plain());
    }
}
