//! What fuzzing holds against the readers of zones, keys and messages: properties that every input
//! must have.
//!
//! The targets in `fuzz/` call these with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 3] = [
    ("dns_message", dns_message),
    ("tsig_key", tsig_key),
    ("zone_file", zone_file),
];

pub use crate::server::fuzzed_message as dns_message;
pub use crate::server::fuzzed_zone as zone_file;
use crate::{DomainName, TsigKey};

/// A key is refused, or has a name that reads again; and what it prints never shows the secret.
pub fn tsig_key(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<TsigKey>() {
        Ok(key) => {
            let name = key.name().to_string();
            assert_eq!(name.parse::<DomainName>().as_ref(), Ok(key.name()));
            assert_eq!(format!("{key:?}"), format!("TsigKey({name})"));
        }
        Err(error) => assert!(!error.to_string().contains('\n') || text.contains('\n')),
    }
    if let Ok(name) = text.parse::<DomainName>() {
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert!(name.contains(&name));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
