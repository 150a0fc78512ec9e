//! A certificate that is ordered and renewed by itself.

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
