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

use crate::copies::Embedded;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSpotPolicy {
    /// Who decides.
    pub law: Law,
    /// How copies are made.
    pub replication: Replication,
    /// Most rescue servers under [`Law::Resources`], 1 to 64. Default 8, as in the paper.
    pub replicas: usize,
    /// Whether what a hot page embeds is copied with it.
    pub embedded: Embedded,
}

impl Default for HotSpotPolicy {
    fn default() -> Self {
        Self {
            law: Law::default(),
            replication: Replication::default(),
            replicas: 8,
            embedded: Embedded::With,
        }
    }
}
