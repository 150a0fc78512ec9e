//! The table `[hot_spots]`: what is watched, from when on it is hot, and what is done about it.

use levee_control::{Embedded, HotSpotPolicy, HotSpotRules, Law, Replication, Watching};

use super::values::Values;
use crate::settings::read::Complaint;

/// The table `[hot_spots]`.
#[derive(Clone, Debug, PartialEq)]
pub struct HotSpotSettings {
    /// What rescue control goes by.
    pub policy: HotSpotPolicy,
    /// What is done about absolute links in pages that are copied.
    pub links: CopiedLinks,
}

/// Absolute links to the site's own names, in pages that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiedLinks {
    /// They stay as they are, and lead back to the site.
    Kept,
    /// They lead to wherever the page is read.
    Rewritten,
}

pub(super) fn hot_spots(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> HotSpotSettings {
    HotSpotSettings {
        policy: HotSpotPolicy {
            law: match values.text("hot_spots.law").as_str() {
                "resources" => Law::Resources,
                "load" => Law::Load,
                _ => Law::Combined,
            },
            replication: match values.text("hot_spots.replication").as_str() {
                "push" => Replication::Push,
                "pull" => Replication::Pull,
                _ => Replication::Home,
            },
            replicas: values.number("hot_spots.replicas") as usize,
            embedded: match values.flag("hot_spots.embedded") {
                true => Embedded::With,
                false => Embedded::Without,
            },
            rules: rules(values, complaints),
        },
        links: match values.flag("hot_spots.rewriting") {
            true => CopiedLinks::Rewritten,
            false => CopiedLinks::Kept,
        },
    }
}

fn rules(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> HotSpotRules {
    HotSpotRules {
        copy: values.time("hot_spots.copy_threshold"),
        redirect: values.time("hot_spots.redirect_threshold"),
        service: values.time("hot_spots.service_threshold"),
        size_reference: values.number("hot_spots.size_reference"),
        size_base: values.number("hot_spots.size_base") as f64,
        bytes_min: values.number("hot_spots.size_min"),
        watching: Watching {
            paths: paths(values, complaints),
            extensions: extensions(values, complaints),
        },
    }
}

fn paths(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Vec<String> {
    let paths = values.words("hot_spots.paths");
    for path in &paths {
        if !path.starts_with(['/', '*']) {
            complaints.push(Complaint {
                line: values.file.line("hot_spots.paths"),
                text: format!(
                    "hot_spots.paths: `{path}` is no path; write \"/{path}\" for what begins so, \
                     or \"*{path}\" for what ends so"
                ),
            });
        }
    }
    paths
}

/// Media types become the extensions that files of them have.
fn extensions(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Vec<String> {
    let mut extensions = Vec::new();
    for given in values.words("hot_spots.types") {
        let given = given.to_ascii_lowercase();
        match given.split_once('/') {
            None => extensions.push(given.trim_start_matches('.').to_owned()),
            Some((kind, detail)) => match mime_guess::get_extensions(kind, detail) {
                Some(known) => extensions.extend(known.iter().map(|&known| known.to_owned())),
                None => complaints.push(Complaint {
                    line: values.file.line("hot_spots.types"),
                    text: format!(
                        "hot_spots.types: nothing is known of the media type `{given}`; name the \
                         extensions of its files, e.g. \"html\""
                    ),
                }),
            },
        }
    }
    extensions.sort();
    extensions.dedup();
    extensions
}
