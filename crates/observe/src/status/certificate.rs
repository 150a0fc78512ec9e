//! Certificates: those that are ordered and renewed by themselves, and files that are no good.

use serde::{Deserialize, Serialize};

/// A name whose certificate is ordered and renewed by itself (ACME).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// The name; one may begin with `*.`.
    pub name: String,
    /// `missing`, `ordering`, `valid` or `expired`.
    pub state: String,
    /// When the certificate in force expires, in Unix seconds.
    pub expires: Option<f64>,
    /// When the next one is ordered, in Unix seconds; none means at once.
    pub next_attempt: Option<f64>,
    /// Why the last attempt failed, in a sentence; empty after one that did not.
    pub problem: String,
    /// The same in one word, as `levee_certificate_orders_total` has it; empty after one that did
    /// not.
    pub cause: String,
    /// Orders since the start, by what became of them.
    pub orders: Vec<OrderCount>,
}

/// Orders for a certificate that came to one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderCount {
    /// `issued`, or why there is no certificate.
    pub result: String,
    /// How many.
    pub count: u64,
}

/// A certificate in a file of the operator's that turns visitors away, or was not taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateTrouble {
    /// The file, or the folder where that is no good.
    pub file: String,
    /// What is wrong, in a sentence that names the file.
    pub problem: String,
    /// Of one that was not taken at a reload: until when the one is valid that stays in force, in
    /// Unix seconds. None where it is in force all the same.
    pub in_force_until: Option<f64>,
}
