//! What the running server and the command tell each other of a drill, as JSON.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::way::Scheme;

/// The answer to `POST /-/drill`: what a visitor of this drill needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// What its visitors show, as `Levee-Drill`.
    pub key: String,
    /// Name and port of the site.
    pub site: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// How its visitors come there.
    #[serde(default)]
    pub scheme: Scheme,
}

/// The answer to `GET /-/drill`: how the last drill goes, or went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Whether it is under way.
    pub running: bool,
    /// Why it is over, in words; none while it is under way.
    pub ended: Option<String>,
    /// What to do about it, where it was over before its time.
    pub way_out: Option<String>,
    /// Everybody who was asked, in this order.
    pub members: Vec<Member>,
}

/// One member of the community in a drill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its own name.
    pub site: String,
    /// What it offered in the registry, bytes a second.
    pub offered: u64,
    /// Milliseconds from the beginning of the drill until it was asked.
    pub asked_ms: u64,
    /// What came of it.
    pub part: Part,
}

/// What a member does in a drill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Part {
    /// It has not answered yet.
    Asked,
    /// It takes part, or did until the drill ended.
    Helps {
        /// Milliseconds from the question to the answer.
        answer_ms: u64,
        /// D_redi, bytes a second: what it would carry now.
        rate: u64,
        /// Name and port of the alias that it gave out.
        alias: String,
        /// Where it says that the alias is served.
        address: Option<SocketAddr>,
        /// Why it left, where it did before the drill was over.
        left: Option<String>,
    },
    /// It does not take part.
    Absent {
        /// Why, in words.
        why: String,
    },
}
