//! What an operator may set about hot spots: which law steers redirects, and how copies are made.
//!
//! | law | rescue servers are drafted by | visitors are redirected by |
//! |---|---|---|
//! | combined | load, earlier by what becomes hot | load, what is hot and copied first |
//! | resources | what becomes hot | resource, whatever the load |
//! | load | load | load |
//!
//! `resources` is the paper on hot spots alone, `load` that on rescue alone; both are there for the
//! lab and for comparison.

use std::time::Duration;

use crate::copies::Embedded;
use crate::hotspot::HotSpotRules;
use crate::parameters::ParameterError;

/// Which of the two papers decides, or both. See the file header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// Both: resources act early, the load says how much.
    #[default]
    Combined,
    /// Resources alone (hotspot-avoidance).
    Resources,
    /// Load alone (dotslash).
    Load,
}

/// How a resource comes to the rescue servers (H3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replication {
    /// It is pushed to its home among them; the others pull it from there.
    #[default]
    Home,
    /// It is pushed to each.
    Push,
    /// Each pulls it.
    Pull,
}

/// Settings of the control law. Part of [`crate::Parameters`].
#[derive(Clone, Debug, PartialEq)]
pub struct HotSpotPolicy {
    /// Who decides.
    pub law: Law,
    /// How copies are made.
    pub replication: Replication,
    /// Most rescue servers under [`Law::Resources`], 1 to 64. Default 8, as in the paper.
    pub replicas: usize,
    /// Whether what a hot page embeds is copied with it.
    pub embedded: Embedded,
    /// From when on a resource is hot.
    pub rules: HotSpotRules,
}

impl Default for HotSpotPolicy {
    fn default() -> Self {
        Self {
            law: Law::default(),
            replication: Replication::default(),
            replicas: 8,
            embedded: Embedded::With,
            rules: HotSpotRules::default(),
        }
    }
}

impl HotSpotPolicy {
    /// What is out of its range, by the names in the settings file.
    pub(crate) fn check(&self) -> Vec<ParameterError> {
        let HotSpotRules {
            copy,
            redirect,
            service,
            size_reference,
            size_base,
            ..
        } = self.rules;
        let limits = Duration::from_millis(1)..=Duration::from_hours(1);
        let checks = [
            (
                "hot_spots.replicas",
                self.replicas.to_string(),
                (1..=64).contains(&self.replicas),
                "[1, 64]",
            ),
            (
                "hot_spots.copy_threshold",
                format!("{copy:?}"),
                limits.contains(&copy),
                "[1 ms, 1 h]",
            ),
            (
                "hot_spots.redirect_threshold",
                format!("{redirect:?}"),
                limits.contains(&redirect) && redirect <= copy,
                "[1 ms, hot_spots.copy_threshold]: what is redirected was copied before",
            ),
            (
                "hot_spots.service_threshold",
                format!("{service:?}"),
                limits.contains(&service) && service >= copy,
                "[hot_spots.copy_threshold, 1 h]: what was copied a moment ago would be let go",
            ),
            (
                "hot_spots.size_reference",
                size_reference.to_string(),
                size_reference >= 1,
                "[1, any)",
            ),
            (
                "hot_spots.size_base",
                size_base.to_string(),
                (1.1..=1000.0).contains(&size_base),
                "[1.1, 1000]",
            ),
        ];
        let wrong = checks.into_iter().filter(|(_, _, fits, _)| !fits);
        wrong
            .map(|(setting, value, _, range)| ParameterError {
                setting,
                value,
                range,
            })
            .collect()
    }
}
