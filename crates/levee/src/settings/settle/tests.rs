//! What settles, and what is told where it does not.

use std::path::Path;

use levee_observe::LogTarget;

use super::*;

fn settle(text: &str) -> Result<Settings, Vec<String>> {
    let told = |complaints: Vec<Complaint>| complaints.iter().map(ToString::to_string).collect();
    let file = SettingsFile::read(text, Path::new(".")).map_err(told)?;
    Settings::settle(&file).map_err(told)
}

#[test]
fn a_folder_is_enough() {
    let settings = settle("[site]\nfolder = \"public\"\n").expect("defaults for the rest");
    assert_eq!(settings.site.name.as_str(), "localhost");
    assert_eq!(settings.link.usable, 0.8);
    assert_eq!(settings.rescue.thresholds, [0.1, 0.5, 0.75, 0.9]);
    assert!(settings.community.is_none());
}

#[test]
fn the_log_file_is_seen_from_the_settings_folder() {
    let file = |access: &str| {
        let text = format!("[site]\nfolder = \"p\"\n[log]\naccess = \"{access}\"\n");
        let file = SettingsFile::read(&text, Path::new("/site")).unwrap();
        Settings::settle(&file).unwrap().log.access
    };
    assert_eq!(file("a.log"), LogTarget::File("/site/a.log".into()));
    assert_eq!(file("/var/a.log"), LogTarget::File("/var/a.log".into()));
    assert_eq!(file("stdout"), LogTarget::Stdout);
    assert_eq!(file("off"), LogTarget::Off);
}

#[test]
fn what_does_not_fit_together_is_told_at_once() {
    let told = settle(
        "[site]\nname = \"www.example.org\"\nlisten = [\"0.0.0.0:9100\"]\n\
         [community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"a.example.org\"\n\
         [rescue]\ninterval = \"1 ms\"\n",
    )
    .expect_err("four mistakes");
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told.iter().any(|text| text.contains("nothing to serve")));
    assert!(
        told.iter()
            .any(|text| text.contains("taken by `site.listen`"))
    );
    assert!(
        told.iter()
            .any(|text| text.starts_with("line 6: ") && text.contains("cookies"))
    );
    assert!(
        told.iter()
            .any(|text| text.starts_with("line 8: ") && text.contains("[100 ms, 60 s]"))
    );
}

#[test]
fn both_families_share_a_port() {
    let listen = |listen: &str| {
        let admin = "[admin]\nlisten = \"127.0.0.1:9100\"\n";
        settle(&format!(
            "[site]\nfolder = \"p\"\nlisten = [{listen}]\n{admin}"
        ))
    };
    listen("\"0.0.0.0:80\", \"[::]:80\"").expect("IPv6 sockets do not speak for IPv4");
    listen("\"0.0.0.0:80\", \"127.0.0.1:80\"").expect_err("one is part of the other");
    listen("\"0.0.0.0:9100\"").expect_err("the admin address is part of it");
}

#[test]
fn aliases_lie_under_none_of_the_sites_names() {
    let told = |alias: &str| {
        settle(&format!(
            "[site]\nfolder = \"p\"\nname = \"example.org\"\nalso = [\"www.example.net\"]\n\
             [community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"{alias}\"\n"
        ))
    };
    for alias in [
        "example.org",
        "a.example.org",
        "example.net",
        "a.b.example.net",
    ] {
        told(alias).expect_err(alias);
    }
    for alias in ["notexample.org", "example.com"] {
        told(alias).expect(alias);
    }
}

#[test]
fn a_community_needs_a_domain_for_its_aliases() {
    let told = settle("[site]\nfolder = \"p\"\n[community]\nregistry = \"192.0.2.7:7070\"\n");
    assert!(told.expect_err("no alias domain")[0].starts_with("line 4: "));
}
