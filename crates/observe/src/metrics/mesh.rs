//! A registry: `levee registry --admin`.

use std::collections::BTreeMap;

use super::Audience::{Detail, Operator};
use super::Kind::{Counter, Gauge};
use super::{Metric, Samples};
use crate::status::{MeshStatus, PeerStatus};

/// The names of all below.
pub(super) const ALL: [&str; 13] = [
    ENTRIES.name,
    ENTRIES_MAX.name,
    CONNECTIONS.name,
    DROPPED.name,
    REQUESTS.name,
    REFUSED.name,
    PEER_UP.name,
    PEER_AGREED.name,
    PEER_OWED.name,
    CHANGES.name,
    REPAIRS.name,
    REFUSED_CHANGES.name,
    BYTES.name,
];

/// Who is there.
pub(super) const ENTRIES: Metric = Metric {
    name: "levee_registry_entries",
    kind: Gauge,
    unit: "entries",
    level: Operator,
    help: "Sites that are registered.",
    labels: &[],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.value(mesh.entries as u64);
        }
    },
};

/// How full it is.
pub(super) const ENTRIES_MAX: Metric = Metric {
    name: "levee_registry_entries_max",
    kind: Gauge,
    unit: "entries",
    level: Detail,
    help: "Most sites that may be registered.",
    labels: &[],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.value(mesh.entries_max as u64);
        }
    },
};

/// Who is connected.
pub(super) const CONNECTIONS: Metric = Metric {
    name: "levee_registry_connections",
    kind: Gauge,
    unit: "connections",
    level: Detail,
    help: "Open connections of members, and links that other registries opened.",
    labels: &[],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.value(mesh.connections as u64);
        }
    },
};

/// Who was cut off.
pub(super) const DROPPED: Metric = Metric {
    name: "levee_registry_dropped_connections_total",
    kind: Counter,
    unit: "connections",
    level: Detail,
    help: "Connections that were cut off or never taken: too many, half a line, too many requests, no registry.",
    labels: &[],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.value(mesh.connections_dropped);
        }
    },
};

/// What was asked.
pub(super) const REQUESTS: Metric = Metric {
    name: "levee_registry_requests_total",
    kind: Counter,
    unit: "requests",
    level: Operator,
    help: "Requests of members.",
    labels: &[],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.value(mesh.requests);
        }
    },
};

/// What was refused.
pub(super) const REFUSED: Metric = Metric {
    name: "levee_registry_refused_requests_total",
    kind: Counter,
    unit: "requests",
    level: Operator,
    help: "Requests that were refused, by the code of the answer.",
    labels: &["code"],
    read: |s, out| by_code(out, s.mesh.as_ref().map(|mesh| &mesh.refused)),
};

/// Who is linked.
pub(super) const PEER_UP: Metric = Metric {
    name: "levee_registry_peer_up",
    kind: Gauge,
    unit: "1 or 0",
    level: Operator,
    help: "Whether there is a link to this other registry.",
    labels: &["peer"],
    read: |s, out| {
        of_peers(s.mesh.as_ref(), |peer| {
            let value = u64::from(peer.state == "linked");
            out.labelled([&peer.peer], value);
        });
    },
};

/// Who knows the same.
pub(super) const PEER_AGREED: Metric = Metric {
    name: "levee_registry_peer_agreed_age_seconds",
    kind: Gauge,
    unit: "seconds",
    level: Operator,
    help: "Time since this other registry knew the same; absent where it has not on this link, or is away.",
    labels: &["peer"],
    read: |s, out| {
        of_peers(s.mesh.as_ref(), |peer| {
            if let Some(ago) = peer.agreed_seconds_ago {
                out.labelled([&peer.peer], ago);
            }
        });
    },
};

/// Who is behind.
pub(super) const PEER_OWED: Metric = Metric {
    name: "levee_registry_peer_owed_changes",
    kind: Gauge,
    unit: "changes",
    level: Detail,
    help: "Changes that this other registry has not been told of yet.",
    labels: &["peer"],
    read: |s, out| {
        of_peers(s.mesh.as_ref(), |peer| {
            out.labelled([&peer.peer], peer.owed as u64);
        });
    },
};

/// What went between registries.
pub(super) const CHANGES: Metric = Metric {
    name: "levee_registry_changes_total",
    kind: Counter,
    unit: "changes",
    level: Operator,
    help: "Registrations and farewells between registries: out are all that were told, in are those that were news.",
    labels: &["direction"],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.labelled(["in"], mesh.news);
            out.labelled(["out"], mesh.told);
        }
    },
};

/// What anti-entropy mended.
pub(super) const REPAIRS: Metric = Metric {
    name: "levee_registry_repairs_total",
    kind: Counter,
    unit: "repairs",
    level: Operator,
    help: "Of the changes between registries, those that had been missed and were found by comparing sums.",
    labels: &["direction"],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.labelled(["in"], mesh.repaired);
            out.labelled(["out"], mesh.told_repairs);
        }
    },
};

/// What peers told in vain.
pub(super) const REFUSED_CHANGES: Metric = Metric {
    name: "levee_registry_refused_changes_total",
    kind: Counter,
    unit: "changes",
    level: Operator,
    help: "What other registries told and was not taken, by the code that a site would have got; grows where limits or clocks differ.",
    labels: &["code"],
    read: |s, out| by_code(out, s.mesh.as_ref().map(|mesh| &mesh.refused_from_peers)),
};

/// What it costs.
pub(super) const BYTES: Metric = Metric {
    name: "levee_registry_bytes_total",
    kind: Counter,
    unit: "bytes",
    level: Detail,
    help: "Bytes of messages with members and with other registries.",
    labels: &["with", "direction"],
    read: |s, out| {
        if let Some(mesh) = &s.mesh {
            out.labelled(["members", "in"], mesh.bytes.from_members);
            out.labelled(["members", "out"], mesh.bytes.to_members);
            out.labelled(["peers", "in"], mesh.bytes.from_peers);
            out.labelled(["peers", "out"], mesh.bytes.to_peers);
        }
    },
};

fn by_code(out: &mut Samples, counts: Option<&BTreeMap<String, u64>>) {
    for (code, count) in counts.into_iter().flatten() {
        out.labelled([code], *count);
    }
}

fn of_peers(mesh: Option<&MeshStatus>, tell: impl FnMut(&PeerStatus)) {
    mesh.into_iter().flat_map(MeshStatus::others).for_each(tell);
}
