//! What a reload takes, what it leaves as it was, and what is told of both.

use std::fs;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;
use crate::settings::SettingsFile;

/// A site with two certificates in a folder, and a server that shows them.
struct Stage {
    folder: tempfile::TempDir,
    settings: Settings,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let text = format!(
            "[site]\nname = \"a.example\"\nfolder = \"{place}\"\n\
             [tls]\ncertificates = \"{place}\"\n"
        );
        let values = SettingsFile::read(&text, folder.path()).unwrap();
        let settings = Settings::settle(&values).unwrap();
        Self { folder, settings }
    }

    fn certify(&self, name: &str, year: i32) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2024, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let text = made.pem() + &key.serialize_pem();
        fs::write(self.folder.path().join(format!("{name}.pem")), text).unwrap();
    }

    fn open(&self) -> Https {
        Https::open(&self.settings).unwrap().unwrap().0
    }
}

/// Until when the certificate for `name` is valid that is in force.
fn until(https: &Https, name: &str) -> SystemTime {
    let in_force = https.certificates();
    let all = in_force.certificates.all().iter();
    let its: Vec<_> = all.filter(|one| one.covers(name)).collect();
    assert_eq!(its.len(), 1);
    its[0].valid_until
}

fn year(year: i32) -> SystemTime {
    date_time_ymd(year, 1, 1).into()
}

#[test]
fn each_certificate_is_renewed_or_stays_for_itself() {
    let stage = Stage::new();
    stage.certify("a.example", 2090);
    stage.certify("b.example", 2090);
    let https = stage.open();
    assert_eq!(https.troubles(SystemTime::now()), []);
    stage.certify("a.example", 2025);
    stage.certify("b.example", 2091);
    let (_, not_taken) = https.renew(&stage.settings).unwrap();
    assert_eq!(not_taken.len(), 1, "{not_taken:?}");
    assert!(
        not_taken[0].contains("a.example.pem expired on"),
        "{not_taken:?}"
    );
    assert!(
        not_taken[0].ends_with("stays, it is valid until 2090-01-01T00:00:00Z"),
        "{not_taken:?}"
    );
    assert_eq!(until(&https, "a.example"), year(2090));
    assert_eq!(until(&https, "b.example"), year(2091));
    let troubles = https.troubles(SystemTime::now());
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].file.ends_with("a.example.pem"), "{troubles:?}");
    assert_eq!(troubles[0].in_force_until, unix(year(2090)));
    // At a second look it is the same, and a damaged file is no other case.
    fs::write(stage.folder.path().join("b.example.pem"), "torn").unwrap();
    let (_, not_taken) = https.renew(&stage.settings).unwrap();
    assert_eq!(not_taken.len(), 2, "{not_taken:?}");
    assert_eq!(until(&https, "a.example"), year(2090));
    assert_eq!(until(&https, "b.example"), year(2091));
    let troubles = https.troubles(SystemTime::now());
    let of_b = troubles
        .iter()
        .find(|one| one.file.ends_with("b.example.pem"));
    assert_eq!(of_b.unwrap().in_force_until, unix(year(2091)));
    stage.certify("a.example", 2092);
    stage.certify("b.example", 2092);
    let (_, not_taken) = https.renew(&stage.settings).unwrap();
    assert_eq!(not_taken, [""; 0]);
    assert_eq!(until(&https, "a.example"), year(2092));
    assert_eq!(https.troubles(SystemTime::now()), []);
}

#[test]
fn what_has_expired_is_taken_where_nothing_is_better_and_is_told() {
    let stage = Stage::new();
    stage.certify("a.example", 2025);
    let https = stage.open();
    let troubles = https.troubles(SystemTime::now());
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].problem.contains("expired on"), "{troubles:?}");
    assert_eq!(troubles[0].in_force_until, None);
    let (_, not_taken) = https.renew(&stage.settings).unwrap();
    assert_eq!(not_taken, [""; 0]);
    // One that was good comes to its end while the server runs.
    stage.certify("a.example", 2090);
    https.renew(&stage.settings).unwrap();
    assert_eq!(https.troubles(SystemTime::now()), []);
    assert_eq!(https.troubles(year(2091)).len(), 1);
}
