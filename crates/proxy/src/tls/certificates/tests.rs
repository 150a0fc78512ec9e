//! Which certificates are found, what is told of them, and what stays when one is no good.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use levee_vocab::HostName;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;
use crate::site::UnknownHost;
use crate::tls::resolver::Resolver;

const DAY: Duration = Duration::from_secs(86_400);

/// Writes a certificate that is valid in the first 90 days of 2026.
fn certify(name: &str, certificate: &Path, key: &Path) {
    certify_for(2026, name, certificate, key);
}

/// Writes a certificate that is valid in the first 90 days of `year`.
fn certify_for(year: i32, name: &str, certificate: &Path, key: &Path) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(year, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1) + DAY * 90;
    let pair = KeyPair::generate().unwrap();
    let made = params.self_signed(&pair).unwrap();
    fs::create_dir_all(certificate.parent().unwrap()).unwrap();
    fs::write(certificate, made.pem()).unwrap();
    let before = fs::read_to_string(key).unwrap_or_default();
    fs::write(key, before + &pair.serialize_pem()).unwrap();
}

/// A folder such as certbot's, with two more beside it in the other forms.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    certify(
        "a.example",
        &at("a.example/fullchain.pem"),
        &at("a.example/privkey.pem"),
    );
    certify("*.b.example", &at("b.crt"), &at("b.key"));
    certify("c.example", &at("c.pem"), &at("c.pem"));
    fs::write(at("README"), "about this folder").unwrap();
    folder
}

fn names(names: &[&str]) -> Vec<HostName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// So many days after the beginning of 2026.
fn day(number: u32) -> SystemTime {
    SystemTime::from(date_time_ymd(2026, 1, 1)) + DAY * number
}

#[test]
fn every_form_of_a_certificate_in_a_folder_is_found() {
    let folder = folder();
    let (certificates, errors) = Certificates::load(None, Some(folder.path()));
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(certificates.all().len(), 3);
    let sites = names(&["a.example", "x.b.example", "c.example"]);
    assert_eq!(certificates.warnings(&sites, day(30)), []);
    let strangers = names(&["b.example", "x.y.b.example", "x.a.example"]);
    let warnings = certificates.warnings(&strangers, day(30));
    assert_eq!(
        warnings,
        strangers
            .into_iter()
            .map(CertificateWarning::NotCovered)
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_warning_comes_when_a_sixth_of_the_time_is_left() {
    let folder = folder();
    let (certificates, _) = Certificates::load(None, Some(&folder.path().join("a.example")));
    assert!(
        certificates.all().is_empty(),
        "a folder of folders is expected"
    );
    let pair = PairFiles {
        certificate: folder.path().join("c.pem"),
        key: folder.path().join("c.pem"),
    };
    let (certificates, _) = Certificates::load(Some(&pair), None);
    let told = |at| {
        certificates
            .warnings([], at)
            .first()
            .map(ToString::to_string)
    };
    assert_eq!(told(day(74)), None);
    assert!(
        told(day(76))
            .unwrap()
            .contains("expires on Wed, 01 Apr 2026")
    );
    assert!(
        told(day(91))
            .unwrap()
            .contains("expired on Wed, 01 Apr 2026")
    );
    assert!(
        told(day(0) - DAY)
            .unwrap()
            .contains("valid only from Thu, 01 Jan 2026")
    );
    assert_eq!(certificates.first_expiry(), Some(day(90)));
}

#[test]
fn a_certificate_that_is_no_good_any_more_stays_what_it_was() {
    let folder = folder();
    let (old, _) = Certificates::load(None, Some(folder.path()));
    fs::write(folder.path().join("c.pem"), "torn").unwrap();
    let (mut new, errors) = Certificates::load(None, Some(folder.path()));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("c.pem"), "{errors:?}");
    assert_eq!(new.all().len(), 2);
    new.keep_missing(&old);
    assert_eq!(new.warnings(&names(&["c.example"]), day(1)), []);
    let empty = tempfile::tempdir().unwrap();
    let (_, errors) = Certificates::load(None, Some(empty.path()));
    assert!(
        errors[0].to_string().contains("has no certificates"),
        "{errors:?}"
    );
}

/// What was in a pair of files, and what is in it now: a certificate for `year`.
fn renewed_for(year: i32) -> (Certificates, Certificates) {
    let folder = tempfile::tempdir().unwrap();
    let pair = PairFiles {
        certificate: folder.path().join("a.pem"),
        key: folder.path().join("a.key"),
    };
    let load = |year| {
        let _ = fs::remove_file(&pair.key);
        certify_for(year, "a.example", &pair.certificate, &pair.key);
        let (certificates, errors) = Certificates::load(Some(&pair), None);
        assert!(errors.is_empty(), "{errors:?}");
        certificates
    };
    (load(2026), load(year))
}

#[test]
fn one_that_is_not_valid_never_takes_the_place_of_one_that_is() {
    for year in [2025, 2027] {
        let (old, mut new) = renewed_for(year);
        let not_taken = new.keep_valid(&old, day(30));
        assert_eq!(not_taken.len(), 1);
        assert!(not_taken[0].0.file().unwrap().ends_with("a.pem"));
        assert_eq!(not_taken[0].1, day(90));
        assert_eq!(new.all().len(), 1);
        assert_eq!(new.first_expiry(), Some(day(90)));
    }
    // What is no better stays away, and so does what is renewed well.
    let (old, mut new) = renewed_for(2025);
    assert_eq!(new.keep_valid(&old, day(91)), []);
    assert!(new.first_expiry() < Some(day(0)));
    let (old, mut new) = renewed_for(2026);
    assert_eq!(new.keep_valid(&old, day(30)), []);
}

#[test]
fn the_same_holds_when_the_files_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    certify("*.b.example", &at("good.pem"), &at("good.key"));
    certify_for(2025, "x.b.example", &at("late.pem"), &at("late.key"));
    let pair = |file: &str| PairFiles {
        certificate: at(&format!("{file}.pem")),
        key: at(&format!("{file}.key")),
    };
    let (old, _) = Certificates::load(Some(&pair("good")), None);
    let (mut new, _) = Certificates::load(Some(&pair("late")), None);
    assert_eq!(new.keep_valid(&old, day(30)).len(), 1);
    assert_eq!(new.all().len(), 2);
    let preferred = "other.example".parse().unwrap();
    let shown = |at, certificates: &Certificates, name| {
        let resolver = Resolver::new(certificates, at, &preferred, UnknownHost::Refuse);
        let keys = resolver.find(name).unwrap();
        assert_eq!(keys.len(), 1);
        let all = certificates.all().iter();
        let mut shown = all.filter(|one| Arc::ptr_eq(&one.key, &keys[0]));
        shown.next().unwrap().files.certificate.clone()
    };
    assert_eq!(shown(day(30), &new, "x.b.example"), at("good.pem"));
    // Where there is no good one, the one for exactly that name is the better of two bad ones.
    assert_eq!(shown(day(91), &new, "x.b.example"), at("late.pem"));
    assert_eq!(shown(day(91), &new, "y.b.example"), at("good.pem"));
}
