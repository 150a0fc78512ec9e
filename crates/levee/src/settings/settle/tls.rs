//! The table `[tls]`: certificates, and where they are shown.

use levee_proxy::{MinVersion, PairFiles};

use super::acme::AcmeSettings;
use super::types::TlsSettings;
use super::values::Values;
use crate::settings::read::Complaint;

/// What needs a certificate to make sense.
const NEEDS_CERTIFICATE: [&str; 5] = [
    "tls.key",
    "tls.listen",
    "tls.min_version",
    "tls.redirect",
    "tls.port",
];

pub(super) fn tls(
    values: &Values<'_>,
    acme: Option<&AcmeSettings>,
    complaints: &mut Vec<Complaint>,
) -> Option<TlsSettings> {
    let certificate = values.path("tls.certificate");
    let folder = values.path("tls.certificates");
    if certificate.is_none() && folder.is_none() && acme.is_none() {
        let given = |name: &&&str| values.file.given(name).is_some();
        for name in NEEDS_CERTIFICATE.iter().filter(given) {
            complaints.push(Complaint {
                line: values.file.line(name),
                text: format!(
                    "{name} does nothing without a certificate: give tls.certificate and tls.key, \
                     tls.certificates = \"/etc/letsencrypt/live\", or acme.agree = true"
                ),
            });
        }
        return None;
    }
    let key = values.path("tls.key");
    if certificate.is_none() && key.is_some() {
        complaints.push(Complaint {
            line: values.file.line("tls.key"),
            text: "tls.key belongs to tls.certificate, which is missing".into(),
        });
    }
    let pair = certificate.map(|certificate| PairFiles {
        key: key.unwrap_or_else(|| certificate.clone()),
        certificate,
    });
    Some(TlsSettings {
        listen: values.listens("tls.listen"),
        pair,
        folder,
        min_version: match values.text("tls.min_version").as_str() {
            "1.3" => MinVersion::Tls13,
            _ => MinVersion::Tls12,
        },
        redirect: values.flag("tls.redirect"),
        port: values.number("tls.port") as u16,
    })
}
