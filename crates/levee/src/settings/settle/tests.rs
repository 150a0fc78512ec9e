//! What settles, and what is told where it does not.

mod reload;

use std::path::Path;

use levee_observe::LogTarget;

use super::*;

fn settle(text: &str) -> Result<Settings, Vec<String>> {
    let told = |complaints: Vec<Complaint>| complaints.iter().map(ToString::to_string).collect();
    Settings::settle(&read(text)).map_err(told)
}

fn read(text: &str) -> SettingsFile {
    SettingsFile::read(text, Path::new(".")).expect("TOML")
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

/// What is told of a file that must not be taken.
fn check_told(text: &str, expected: &[&str]) {
    let told = settle(text).expect_err(text);
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for part in expected {
        assert!(told.iter().any(|told| told.contains(part)), "{told:#?}");
    }
}

#[test]
fn what_cannot_be_meant_is_told() {
    let upstream = |value: &str| format!("[site]\nupstream = {value}\n");
    check_told(
        &upstream("\"http://127.0.0.1:99999\""),
        &["from 1 to 65535"],
    );
    check_told(&upstream("\"127.0.0.1:3000\""), &["http://127.0.0.1:3000"]);
    check_told(&upstream("\"http://127.0.0.1/app\""), &["a path"]);
    check_told(&upstream("3000"), &["list of http://host:port"]);
    let twice = "[\"http://a:80\", \"http://a\"]";
    check_told(&upstream(twice), &["stands in the list twice"]);
    check_told("[site]\nfolder = 3\n", &["takes path"]);
    let folder = |more: &str| format!("[site]\nfolder = \"p\"\n{more}");
    check_told(&folder("listen = []\n"), &["is empty"]);
    check_told(&folder("also = true\n"), &["list of host names"]);
    let lonely = "[community]\nalias_domain = \"aliases.example.net\"\n";
    check_told(&folder(lonely), &["without community.registry"]);
    let backup = "[upstream]\nbackup = [\"http://127.0.0.1:1\"]\nhealth_path = \"health\"\n";
    check_told(
        &folder(backup),
        &["stands in for site.upstream", "not a path"],
    );
    let proxied = "listen = [\"0.0.0.0:80\"]\nproxy_protocol = [\"0.0.0.0:81\"]\n";
    check_told(&folder(proxied), &["not listened on", "trusted_proxies"]);
    check_told(
        &folder("trusted_proxies = [\"10.0.0.0/33\"]\n"),
        &["10.0.0.0/33"],
    );
}

#[test]
fn upstreams_stand_in_a_list_or_alone() {
    let list = |text: &str| {
        let settings = settle(text).expect(text);
        let list = settings.upstream.group.list.into_iter();
        list.map(|(endpoint, tier)| format!("{endpoint} {tier:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        list("[site]\nupstream = \"http://127.0.0.1:3000\"\n"),
        ["127.0.0.1:3000 Primary"]
    );
    let several = "[site]\nupstream = [\"http://app\", \"unix:/run/app.sock\"]\n\
                   [upstream]\nbackup = \"http://[::1]:8000\"\n";
    assert_eq!(
        list(several),
        [
            "app:80 Primary",
            "unix:/run/app.sock Primary",
            "[::1]:8000 Backup"
        ]
    );
}

#[test]
fn sockets_in_the_file_system_are_listened_on_and_their_mistakes_told() {
    let site = "[site]\nfolder = \"public\"\n";
    let settings = settle(&format!(
        "{site}listen = [\"unix:/run/levee.sock\", \"127.0.0.1:80\"]\nunix_mode = \"640\"\n\
         proxy_protocol = [\"unix:/run/levee.sock\"]\ntrusted_proxies = [\"127.0.0.1\"]\n"
    ))
    .unwrap();
    assert_eq!(settings.site.unix_mode, 0o640);
    assert_eq!(settings.site.proxied, settings.site.listen[..1]);
    let told = settle(&format!(
        "{site}listen = [\"unix:/run/a.sock\", \"unix:/run/a.sock\"]\nunix_mode = \"rw\"\n"
    ));
    let told = told.unwrap_err().join("\n");
    assert!(told.contains("taken by `site.listen`"), "{told}");
    assert!(told.contains("line 4: site.unix_mode: `rw`"), "{told}");
    let told = settle(&format!("{site}listen = [\"unix:levee.sock\"]\n")).unwrap_err();
    assert!(told[0].contains("`unix:/run/levee.sock`"), "{told:?}");
}

#[test]
fn hot_spots_are_as_in_the_paper_unless_the_operator_says_otherwise() {
    use levee_control::{Embedded, HotSpotPolicy, Law};

    let settings = settle("[site]\nfolder = \"public\"\n").unwrap();
    assert_eq!(settings.hot_spots.policy, HotSpotPolicy::default());
    assert_eq!(settings.hot_spots.links, super::CopiedLinks::Kept);
    let settings = settle(
        "[site]\nfolder = \"public\"\n[hot_spots]\nlaw = \"resources\"\nreplicas = 3\n\
         copy_threshold = \"2 s\"\nembedded = false\nrewriting = true\npaths = [\"/blog/\"]\n\
         types = [\".PNG\", \"text/html\"]\n",
    )
    .unwrap();
    let policy = settings.hot_spots.policy;
    assert_eq!((policy.law, policy.replicas), (Law::Resources, 3));
    assert_eq!(policy.embedded, Embedded::Without);
    assert_eq!(policy.rules.copy, std::time::Duration::from_secs(2));
    assert_eq!(policy.rules.watching.paths, ["/blog/"]);
    let extensions = policy.rules.watching.extensions;
    assert!(
        ["htm", "html", "png"]
            .map(String::from)
            .iter()
            .all(|one| extensions.contains(one))
    );
    assert_eq!(settings.hot_spots.links, super::CopiedLinks::Rewritten);
}

#[test]
fn every_mistake_about_hot_spots_is_told_with_its_way_out() {
    let told = settle(
        "[site]\nfolder = \"public\"\n[hot_spots]\nredirect_threshold = \"3 s\"\n\
         service_threshold = \"500 ms\"\npaths = [\"blog\"]\ntypes = [\"nonsense/x\"]\n",
    )
    .unwrap_err();
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    for expected in [
        "hot_spots.redirect_threshold is 3s, but must be in [1 ms, hot_spots.copy_threshold]",
        "hot_spots.service_threshold is 500ms, but must be in [hot_spots.copy_threshold, 1 h]",
        "`blog` is no path; write \"/blog\"",
        "nothing is known of the media type `nonsense/x`",
    ] {
        assert!(told.iter().any(|text| text.contains(expected)), "{told:#?}");
    }
}

#[test]
fn the_zone_of_a_name_is_the_rest_of_it_unless_it_is_given() {
    let dns = |name: &str, more: &str| {
        let text = format!(
            "[site]\nname = \"{name}\"\nfolder = \"p\"\n\
             [dns]\nserver = \"192.0.2.53:53\"\nkey = \"k\"\n{more}"
        );
        settle(&text).map(|settings| settings.dns.expect("a table").zone.to_string())
    };
    assert_eq!(dns("www.example.org", "").as_deref(), Ok("example.org"));
    let given = "zone = \"example.org\"\n";
    assert_eq!(dns("example.org", given).as_deref(), Ok("example.org"));
    let foreign = dns("www.anexample.org", given).expect_err("another zone");
    assert!(foreign[0].contains("does not lie in zone"), "{foreign:?}");
}

#[test]
fn every_mistake_about_dns_is_told_with_its_way_out() {
    let site = "[site]\nname = \"www.example.org\"\nfolder = \"p\"\n";
    let with = |more: &str| format!("{site}{more}");
    check_told(&with("[dns]\nttl = \"5 s\"\n"), &["without dns.server"]);
    let server = "[dns]\nserver = \"192.0.2.53:53\"\n";
    check_told(&with(server), &["tsig-keygen"]);
    let long = format!("{server}key = \"k\"\nttl = \"2 days\"\n");
    check_told(&with(&long), &["[1 s, 1 day]"]);
    let community =
        "[community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"a.example.net\"\n";
    let forgetful = format!("{server}key = \"k\"\n{community}");
    check_told(&with(&forgetful), &["give state.folder"]);
}

#[test]
fn a_zone_is_kept_by_one_server_ours_or_anothers() {
    let site = "[site]\nname = \"www.example.org\"\nfolder = \"p\"\n[dns]\n";
    let with = |more: &str| format!("{site}{more}");
    let server = "server = \"192.0.2.53:53\"\nkey = \"k\"\n";
    let listen = "listen = \"0.0.0.0:53\"\n";
    check_told(&with(listen), &["give dns.zone_file"]);
    let both = format!("{server}{listen}zone_file = \"z\"\n");
    check_told(&with(&both), &["dns.server or dns.listen"]);
    let idle = format!("{server}weighted = true\n");
    check_told(&with(&idle), &["without dns.listen"]);
    let taken = "listen = \"127.0.0.1:9100\"\nzone_file = \"z\"\n";
    check_told(&with(taken), &["is taken by `dns.listen`"]);
    let socket = format!("{listen}zone_file = \"z\"\nsecondaries = [\"unix:/x\"]\n");
    check_told(&with(&socket), &["no address and port"]);
}

#[test]
fn certificates_are_ordered_for_the_names_of_the_site_or_for_those_given() {
    let start = "[site]\nfolder = \"p\"\nname = \"www.example.org\"\nalso = [\"example.org\"]\n\
                 [state]\nfolder = \"s\"\n[acme]\nagree = true\n";
    let names = |more: &str| {
        let acme = settle(&format!("{start}{more}")).unwrap().acme.unwrap();
        let names = acme.names.iter().map(ToString::to_string);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(""), "www.example.org example.org");
    assert_eq!(
        names("names = [\"a.example\", \"a.example\"]\n"),
        "a.example"
    );
    // HTTPS has its listeners before there is any certificate.
    assert!(settle(start).unwrap().tls.is_some());
}

#[test]
fn orders_that_cannot_succeed_are_told_before_anybody_is_asked() {
    let told = settle(
        "[site]\nfolder = \"p\"\n[acme]\nagree = true\ndirectory = \"http://ca.example\"\n\
         names = [\"*.example.org\", \"nas.local\"]\neab_id = \"kid-1\"\n",
    )
    .expect_err("five mistakes");
    assert_eq!(told.len(), 5, "{told:#?}");
    let says = |text: &str| told.iter().any(|one| one.contains(text));
    assert!(says("line 4: acme.agree") && says("state.folder"));
    assert!(says("line 5: acme.directory") && says("https://"));
    assert!(says(
        "`*.example.org` is shown to be yours by a record in DNS, which needs"
    ));
    assert!(says("the internet does not know"));
    assert!(says("acme.eab_key is missing"));
    let idle = settle("[site]\nfolder = \"p\"\n[acme]\nnames = [\"a.example\"]\n");
    let idle = idle.expect_err("nobody has agreed");
    assert!(idle[0].contains("without acme.agree = true"), "{idle:?}");
}

#[test]
fn aliases_are_registered_in_the_zone_where_they_lie() {
    let site = "[site]\nfolder = \"p\"\n";
    let community =
        "[community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"a.example.net\"\n";
    let dns = "[dns]\nalias_server = \"192.0.2.55:53\"\n";
    let good = format!("{site}{community}{dns}alias_key = \"k\"\nttl = \"60 s\"\n");
    let zone = settle(&good).expect("good").alias_zone.expect("a zone");
    assert_eq!(zone.zone.as_str(), "a.example.net");
    check_told(&format!("{site}{dns}"), &["gives out no aliases"]);
    check_told(&format!("{site}{community}{dns}"), &["dns.alias_key ="]);
    let other = format!("{site}{community}{dns}alias_key = \"k\"\nalias_zone = \"b.net\"\n");
    check_told(&other, &["does not lie in it"]);
    check_told(
        &format!("{site}[dns]\nalias_key = \"k\"\n"),
        &["without dns.alias_server"],
    );
}

#[test]
fn a_wildcard_for_aliases_is_ordered_where_a_record_can_show_that_their_domain_is_ours() {
    let start = "[site]\nfolder = \"p\"\nname = \"www.example.org\"\n[state]\nfolder = \"s\"\n\
                 [community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"a.example.net\"\n\
                 [dns]\nalias_server = \"192.0.2.55:53\"\nalias_key = \"k\"\n\
                 alias_zone = \"example.net\"\n[acme]\nagree = true\n";
    let acme = settle(start).expect("good").acme.expect("agreed");
    let names: Vec<_> = acme.names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["www.example.org", "*.a.example.net"]);
    let can: Vec<_> = acme
        .names
        .iter()
        .map(|name| acme.can_record(name))
        .collect();
    assert_eq!(can, [false, true]);
    // A CNAME may lead from there into the zone.
    let other = format!("{start}challenge = \"dns-01\"\n");
    assert!(settle(&other).is_ok());
    let nowhere = "[site]\nfolder = \"p\"\nname = \"www.example.org\"\n[state]\nfolder = \"s\"\n\
                   [acme]\nagree = true\nchallenge = \"dns-01\"\n";
    check_told(
        nowhere,
        &["acme.challenge: `www.example.org` is shown to be yours by a record in DNS"],
    );
}

#[test]
fn an_alias_domain_shares_no_cookies_with_the_site_as_browsers_see_it() {
    let told = |site: &str, aliases: &str| {
        let text = format!(
            "[site]\nfolder = \"p\"\nname = \"{site}\"\n[community]\n\
             registry = \"192.0.2.7:7070\"\nalias_domain = \"{aliases}\"\n"
        );
        settle(&text)
            .err()
            .is_some_and(|told| told[0].contains("share its cookies"))
    };
    for (site, aliases) in [
        ("www.example.org", "aliases.example.org"),
        ("www.example.org", "example.org"),
        ("www.shop.example.co.uk", "aliases.example.co.uk"),
        // A country with a short name below it that is no public suffix.
        ("www.t.co", "aliases.t.co"),
        ("me.github.io", "aliases.me.github.io"),
        (
            "www.xn--85x722f.xn--55qx5d.cn",
            "aliases.xn--85x722f.xn--55qx5d.cn",
        ),
    ] {
        assert!(told(site, aliases), "{site} {aliases}");
    }
    for (site, aliases) in [
        ("www.example.org", "aliases.example.net"),
        ("www.example.org", "anexample.org"),
        ("www.example.co.uk", "other.co.uk"),
        ("www.mairie.gouv.fr", "aliases.gouv.fr"),
        ("me.github.io", "you.github.io"),
        ("me.github.io", "github.io"),
        ("www.city.kawasaki.jp", "aliases.kawasaki.jp"),
        ("blog.localhost", "aliases.localhost"),
        ("localhost", "aliases.localhost"),
    ] {
        assert!(!told(site, aliases), "{site} {aliases}");
    }
}

#[test]
fn visitors_come_by_https_where_it_is_spoken() {
    let visitors = |more: &str| {
        let text = format!("[site]\nfolder = \"p\"\n{more}");
        settle(&text).unwrap().visitors()
    };
    let tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
    assert_eq!(visitors(""), Visitors::Http);
    assert_eq!(visitors(tls), Visitors::Both);
    let redirect = format!("{tls}redirect = true\n");
    assert_eq!(visitors(&redirect), Visitors::Https);
}

#[test]
fn what_cannot_be_read_hides_no_other_mistake_and_is_told_once() {
    let told = settle(
        "[site]\nfoldr = \"p\"\nlisten = [\"0.0.0.0:9100\"]\nnam = \"a.example\"\n\
         [community]\nregistry = \"a.example\"\nalias_domain = \"aliases.example.net\"\n\
         [help]\nrate = \"1\"\nmember_rate = \"1 kB/s\"\nbytes_per_day = \"1 GB\"\n\
         [rescue]\ninterval = \"1 ms\"\n[acme]\nagree = true\n[state]\nfolder = 1\n",
    )
    .expect_err("many mistakes");
    let starts = [
        "line 2: there is no setting `site.foldr`",
        "line 4: there is no setting `site.nam`",
        "line 6: community.registry: ",
        "line 9: help.rate: ",
        "line 13: rescue.interval",
        "line 17: state.folder: ",
    ];
    for start in starts {
        assert!(
            told.iter().any(|told| told.starts_with(start)),
            "{start}: {told:#?}"
        );
    }
    let clash = "admin.listen: 127.0.0.1:9100 is taken by `site.listen`";
    assert!(told.iter().any(|told| told.starts_with(clash)), "{told:#?}");
    assert_eq!(told.len(), starts.len() + 1, "{told:#?}");
}

#[test]
fn whom_an_authority_may_write_to_is_a_mail_address_or_a_url() {
    let start = "[site]\nfolder = \"p\"\nname = \"www.example.org\"\n[state]\nfolder = \"s\"\n\
                 [acme]\nagree = true\n";
    let with = |contact: &str| format!("{start}contact = [\"{contact}\"]\n");
    for (given, url) in [
        ("me@example.org", "mailto:me@example.org"),
        ("mailto:me@example.org", "mailto:me@example.org"),
        ("tel:+431234567", "tel:+431234567"),
    ] {
        let acme = settle(&with(given)).expect(given).acme.expect("agreed");
        assert_eq!(acme.contact, [url]);
    }
    let no_address = "is no mail address such as \"webmaster@example.org\"";
    for bad in [
        "me",
        "mailto:me",
        "@example.org",
        "me @example.org",
        "tel:",
        "a@b@c.example",
    ] {
        check_told(&with(bad), &[no_address]);
    }
    for several in ["mailto:a@b.example?subject=x", "a@b.example,c@b.example"] {
        check_told(&with(several), &["give several as a list"]);
    }
}

#[test]
fn limits_of_help_that_nobody_gets_are_told() {
    let site = "[site]\nfolder = \"p\"\n[help]\nrate = \"1 MB/s\"\norigins_max = 3\n";
    let without = "does nothing without community.registry";
    check_told(
        site,
        &[
            &format!("line 4: help.rate {without}"),
            &format!("line 5: help.origins_max {without}"),
        ],
    );
    let community = "[community]\nregistry = \"192.0.2.7:7070\"\n";
    check_told(&format!("{site}{community}"), &["alias_domain is missing"]);
    let dns = "[dns]\nalias_server = \"192.0.2.55:53\"\nalias_key = \"k\"\n";
    check_told(
        &format!("{site}{community}{dns}"),
        &["alias_domain is missing"],
    );
}
