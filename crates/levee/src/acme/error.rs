//! Why there is no certificate, in sentences for the operator.
//!
//! Each says what was tried and, where somebody can do something about it, what.

use std::error::Error as StdError;
use std::time::Duration;

use instant_acme::{Error, Problem};
use levee_dns::{DomainName, ZoneError};
use thiserror::Error as ThisError;

use super::challenge::Way;
use super::name::CertificateName;
use super::nonce::is_bad_nonce;
use super::store::StoreError;

/// See the head of this file.
#[derive(Debug, ThisError)]
pub enum AcmeError {
    /// No connection, no answer, or nothing that makes sense.
    #[error("cannot reach the authority at {directory}: {cause}")]
    Unreachable {
        /// Its directory.
        directory: String,
        /// What went wrong.
        cause: String,
    },
    /// There is nothing to know the authority by.
    #[error("no root certificates to know the authority by: {0}; mend acme.root")]
    Roots(String),
    /// It has had enough of us.
    #[error("the authority wants us to come back later (rateLimited): {0}")]
    RateLimited(String),
    /// It refuses, for a reason of its own.
    #[error("the authority refuses ({kind}): {detail}")]
    Refused {
        /// The last part of the problem's type.
        kind: String,
        /// What it says.
        detail: String,
    },
    /// It looked whether the name is ours, and found that it is not.
    #[error("the authority checked the name by {way} and says ({kind}): {detail}; {hint}")]
    CheckFailed {
        /// How it looked.
        way: Way,
        /// The last part of the problem's type.
        kind: String,
        /// What it says.
        detail: String,
        /// What to look after.
        hint: &'static str,
    },
    /// It does not look in any way that we were to use.
    #[error("the authority does not check this name by {0}; choose another acme.challenge")]
    NotOffered(Way),
    /// It can only be shown by a record, and no zone of ours holds the name.
    #[error(
        "that {0} is ours is shown by a record in DNS, and none of the zones of [dns] in force \
         holds it; give its zone there (a change of [dns] takes effect at the next start), or \
         have a CNAME at _acme-challenge lead into a zone that is there"
    )]
    NoZone(CertificateName),
    /// A record cannot be put into DNS.
    #[error("cannot put the TXT record {name} into DNS for the authority: {error}")]
    Record {
        /// Where it was to stand.
        name: DomainName,
        /// What the zone says.
        error: ZoneError,
    },
    /// The record's name leads out of all zones of ours.
    #[error(
        "{name} is only another name (CNAME), which leads to {target}, and none of the zones of \
         [dns] in force holds that; have it lead into {}, or take it away",
        .zones.join(" or ")
    )]
    RecordElsewhere {
        /// Where it was to stand.
        name: DomainName,
        /// Where the name leads in the end.
        target: DomainName,
        /// The zones in which it could stand.
        zones: Vec<String>,
    },
    /// The record's name leads from one to another for ever.
    #[error("{0} is only another name (CNAME), which leads in a circle or through too many others")]
    RecordNowhere(DomainName),
    /// Nobody says whether the record's name leads somewhere else.
    #[error("cannot look up whether {name} is only another name (CNAME): {why}")]
    NotLookedUp {
        /// Where it was to stand.
        name: DomainName,
        /// What went wrong.
        why: String,
    },
    /// The zone took the record and does not show it.
    #[error(
        "the DNS server took the TXT record {0} and does not show it; does it show others (views) \
         the same zone?"
    )]
    RecordNotShown(DomainName),
    /// What must be kept cannot be.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was kept of the account makes no sense.
    #[error("the account at the authority is damaged: {0}; delete the file account-*.json")]
    DamagedAccount(String),
    /// A key or a request could not be made, or what came is no certificate for our key.
    #[error("cannot use what the authority sent: {0}")]
    Certificate(String),
    /// It took longer than an order may take.
    #[error("the authority has not finished the order in {} minutes", .0.as_secs() / 60)]
    TooSlow(Duration),
}

impl AcmeError {
    /// What the library says of a step at `directory`.
    pub(super) fn of(error: &Error, directory: &str) -> Self {
        match error {
            // It was asked again and again, and has not looked at the request itself.
            Error::Api(problem) if is_bad_nonce(problem) => Self::Unreachable {
                directory: directory.to_owned(),
                cause: "it takes none of the nonces that it gives (badNonce)".into(),
            },
            Error::Api(problem) => Self::told(problem),
            Error::Crypto
            | Error::KeyRejected
            | Error::Http(_)
            | Error::InvalidUri(_)
            | Error::Json(_)
            | Error::Timeout(_)
            | Error::Unsupported(_)
            | Error::Other(_)
            | Error::Str(_)
            | _ => Self::Unreachable {
                directory: directory.to_owned(),
                cause: causes(error),
            },
        }
    }

    /// The same in one word, for metrics.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Roots(_) => "roots",
            Self::RateLimited(_) => "rate_limited",
            Self::Refused { .. } => "refused",
            Self::CheckFailed { .. } => "check_failed",
            Self::NotOffered(_) => "not_offered",
            Self::NoZone(_)
            | Self::Record { .. }
            | Self::RecordElsewhere { .. }
            | Self::RecordNowhere(_)
            | Self::NotLookedUp { .. }
            | Self::RecordNotShown(_) => "dns",
            Self::Store(_) => "disk",
            Self::DamagedAccount(_) => "account",
            Self::Certificate(_) => "unusable",
            Self::TooSlow(_) => "too_slow",
        }
    }

    fn told(problem: &Problem) -> Self {
        let (kind, detail) = words(problem);
        match kind.as_str() {
            "rateLimited" => Self::RateLimited(detail),
            _ => Self::Refused { kind, detail },
        }
    }

    /// A check by `way` failed with `problem`.
    pub(super) fn check(way: Way, problem: &Problem) -> Self {
        let (kind, detail) = words(problem);
        let hint = hint(way, &kind);
        Self::CheckFailed {
            way,
            kind,
            detail,
            hint,
        }
    }
}

/// What to look after when a check failed (RFC 8555 section 6.7).
fn hint(way: Way, kind: &str) -> &'static str {
    match (kind, way) {
        ("dns", Way::Http01 | Way::TlsAlpn01) => {
            "does the name have an A or AAAA record that leads to this server?"
        }
        ("caa", _) => "the CAA record of the domain allows another authority only",
        (_, Way::Http01) => {
            "does port 80 of the name lead to this server, past every firewall and proxy?"
        }
        (_, Way::Dns01) => {
            "do the name servers of the domain, all of them, know our record at once?"
        }
        (_, Way::TlsAlpn01) => {
            "does port 443 of the name lead to this server, with no other TLS server before it?"
        }
    }
}

/// Type and text of a problem.
fn words(problem: &Problem) -> (String, String) {
    let kind = problem.r#type.as_deref().unwrap_or("no type");
    let kind = kind.rsplit(':').next().unwrap_or(kind).to_owned();
    let mut detail = problem.detail.clone().unwrap_or_default();
    for part in problem.subproblems.iter().take(4) {
        detail.push_str(&format!("; {part}"));
    }
    (kind, detail)
}

/// An error with everything that led to it.
pub(super) fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}
