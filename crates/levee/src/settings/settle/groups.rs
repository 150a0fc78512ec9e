//! One function for each table of the file: its values as one part of the settings.

use levee_control::{Drills, Redirects};
use levee_observe::LogTarget;
use levee_proxy::Wishes;

use super::types::{
    CacheSettings, CommunitySettings, Content, RescueSettings, SiteSettings, UnknownHost,
};
use super::values::Values;
use super::{mesh, unix};
use crate::settings::read::Complaint;
use crate::settings::table::SETTINGS;

pub(super) fn content(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Content {
    let folder = values.path("site.folder");
    let is_upstream = !values.endpoints("site.upstream").is_empty();
    let mut complain = |text: &str, line| {
        let text = text.into();
        complaints.push(Complaint { line, text });
    };
    match (folder, is_upstream) {
        (Some(folder), false) => Content::Folder(folder),
        (None, true) => Content::Upstream,
        (Some(_), true) => {
            let text = "give site.folder or site.upstream, not both";
            complain(text, values.file.line("site.upstream"));
            Content::Upstream
        }
        (None, false) => {
            let text = "nothing to serve: give site.folder = \"./public\" or site.upstream = \"http://127.0.0.1:3000\"";
            complain(text, None);
            Content::Upstream
        }
    }
}

pub(super) fn site(
    values: &Values<'_>,
    content: Content,
    complaints: &mut Vec<Complaint>,
) -> SiteSettings {
    SiteSettings {
        name: values
            .hosts("site.name")
            .into_iter()
            .next()
            .expect("the table has a default name"),
        also: values.hosts("site.also"),
        listen: values.listens("site.listen"),
        unix_mode: unix::mode(values, complaints),
        proxied: values.listens("site.proxy_protocol"),
        trusted: values.blocks("site.trusted_proxies"),
        port: values.number("site.port") as u16,
        content,
        unknown_host: match values.text("site.unknown_host").as_str() {
            "refuse" => UnknownHost::Refuse,
            _ => UnknownHost::Serve,
        },
        purge_from: values.blocks("site.purge_from"),
        shared_cookies: values.words("site.shared_cookies"),
        cores: values.number("site.cores") as usize,
    }
}

pub(super) fn community(
    values: &Values<'_>,
    complaints: &mut Vec<Complaint>,
) -> Option<CommunitySettings> {
    let Some(registries) = mesh::registries(values, complaints) else {
        complain_of_lonely(values, complaints);
        return None;
    };
    let Some(alias_domain) = values.hosts("community.alias_domain").into_iter().next() else {
        let text = "community.alias_domain is missing: whoever joins a community gives out names under it, \
                    e.g. alias_domain = \"aliases.example.net\"";
        let line = values.file.line("community.registry");
        complaints.push(Complaint {
            line,
            text: text.into(),
        });
        return None;
    };
    let site = values
        .hosts("site.name")
        .into_iter()
        .next()
        .expect("the table has a default name");
    let given = values.text("community.alias_host");
    let alias_host = if given.is_empty() {
        site.first_label().to_owned()
    } else {
        given
    };
    Some(CommunitySettings {
        registries,
        rescue_listen: values.socket("community.rescue_listen"),
        address: values.address("community.address"),
        alias_domain,
        alias_host: alias_host.to_ascii_lowercase(),
        allow_private: values.flag("community.allow_private"),
        drills: match values.flag("community.drills") {
            true => Drills::Joined,
            false => Drills::Declined,
        },
    })
}

/// Settings of a community that nobody joins.
fn complain_of_lonely(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    let of_community = SETTINGS
        .iter()
        .filter(|setting| setting.name.starts_with("community."));
    for setting in of_community {
        if values.file.given(setting.name).is_some() {
            complaints.push(Complaint {
                line: values.file.line(setting.name),
                text: format!(
                    "{}: means nothing without community.registry, community.registries or \
                     community.registry_domain, by which a site joins a community",
                    setting.name
                ),
            });
        }
    }
}

pub(super) fn rescue(values: &Values<'_>) -> RescueSettings {
    RescueSettings {
        thresholds: [
            values.share("rescue.threshold_low"),
            values.share("rescue.threshold_alert"),
            values.share("rescue.threshold_high"),
            values.share("rescue.threshold_cutoff"),
        ],
        interval: values.time("rescue.interval"),
        low_intervals: values.number("rescue.low_intervals") as u32,
        idle_max: values.time("rescue.idle_max"),
        object_ttl: values.time("rescue.object_ttl"),
        alias_keep: values.time("rescue.alias_keep"),
        large_file: values.number("rescue.large_file"),
        servers_max: values.number("rescue.servers_max") as usize,
        redirects: match values.flag("rescue.redirects") {
            true => Redirects::On,
            false => Redirects::Off,
        },
        registry_period: values.time("rescue.registry_period"),
        wait_max: values.time("rescue.wait_max"),
    }
}

pub(super) fn cache(values: &Values<'_>) -> CacheSettings {
    CacheSettings {
        memory: values.number("cache.memory"),
        disk: values.number("cache.disk"),
        object_memory_max: values.number("cache.object_memory_max"),
        stale_if_error: values.time("cache.stale_if_error"),
        wishes: match values.text("cache.request_directives").as_str() {
            "obey" => Wishes::Met,
            _ => Wishes::Ignored,
        },
        refresh_hits: u16::try_from(values.number("cache.refresh_hits"))
            .ok()
            .filter(|&hits| hits > 0),
    }
}

pub(super) fn log_target(values: &Values<'_>) -> LogTarget {
    match (
        values.path("log.access"),
        values.text("log.access").as_str(),
    ) {
        (Some(path), _) => LogTarget::File(path),
        (None, "stdout") => LogTarget::Stdout,
        (None, _) => LogTarget::Off,
    }
}
