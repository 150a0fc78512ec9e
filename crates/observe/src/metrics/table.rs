//! The table of all metrics: the one place where a metric is declared.
//!
//! A name says `levee_<thing>_<unit>`, in base units; a counter ends in `_total`. A test checks
//! this and that the reference page in `docs/` is up to date.

use super::Audience::{Detail, Operator};
use super::Kind::{Counter, Gauge, Summary};
use super::{
    Metric, certificates, copies, crawlers, dns, drills, fetches, help, homes, integrity, log,
    mesh, purges, registry, trust, upstreams, way_back,
};

/// Every metric, in the order in which they are shown.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "levee_build_info",
        kind: Gauge,
        unit: "always 1",
        level: Detail,
        help: "Version of this server.",
        labels: &["version"],
        read: |s, out| out.labelled([&s.version], true),
    },
    Metric {
        name: "levee_uptime_seconds",
        kind: Gauge,
        unit: "seconds",
        level: Operator,
        help: "Time since the process started.",
        labels: &[],
        read: |s, out| out.value(s.uptime),
    },
    Metric {
        name: "levee_ready",
        kind: Gauge,
        unit: "1 or 0",
        level: Operator,
        help: "Whether the listeners are up and a plan is in force.",
        labels: &[],
        read: |s, out| out.value(s.ready),
    },
    Metric {
        name: "levee_state",
        kind: Gauge,
        unit: "1 or 0",
        level: Operator,
        help: "State of the server: 1 for the one it is in.",
        labels: &["state"],
        read: |s, out| {
            for state in ["normal", "sos", "rescue"] {
                out.labelled([state], s.state == state);
            }
        },
    },
    drills::DRILL,
    trust::SERIAL,
    trust::EXPIRY,
    trust::REFUSALS,
    trust::ACCUSATIONS,
    dns::ENTERED,
    dns::CHANGES,
    dns::QUESTIONS,
    dns::CROWDED,
    dns::DECLINED,
    Metric {
        name: "levee_link_capacity_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "B, the outbound link.",
        labels: &[],
        read: |s, out| out.value(s.link.capacity),
    },
    Metric {
        name: "levee_link_usable_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "D_out, the part of the link that is usable for HTTP.",
        labels: &[],
        read: |s, out| out.value(s.link.usable),
    },
    Metric {
        name: "levee_link_carried_bytes_total",
        kind: Counter,
        unit: "bytes",
        level: Operator,
        help: "Bytes that have left over the link, with the overhead of connections.",
        labels: &[],
        read: |s, out| out.value(s.link.carried),
    },
    Metric {
        name: "levee_link_peak_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Detail,
        help: "Most bytes that left within any one second since the start.",
        labels: &[],
        read: |s, out| out.value(s.link.peak),
    },
    Metric {
        name: "levee_link_backlog_seconds",
        kind: Gauge,
        unit: "seconds",
        level: Operator,
        help: "Time that the link needs for what is admitted but not yet sent.",
        labels: &[],
        read: |s, out| out.value(s.link.backlog),
    },
    Metric {
        name: "levee_load_ratio",
        kind: Gauge,
        unit: "ratio",
        level: Operator,
        help: "Load level of a resource; 1 is capacity.",
        labels: &["resource"],
        read: |s, out| {
            for level in &s.levels {
                out.labelled([&level.resource], level.level);
            }
        },
    },
    Metric {
        name: "levee_threshold_ratio",
        kind: Gauge,
        unit: "ratio",
        level: Operator,
        help: "Load level at which something happens: low, alert, high, cutoff, and redirect while visitors are redirected.",
        labels: &["threshold"],
        read: |s, out| {
            let names = ["low", "alert", "high", "cutoff"];
            for (name, level) in names.into_iter().zip(s.thresholds) {
                out.labelled([name], level);
            }
            if let Some(level) = s.redirect_threshold {
                out.labelled(["redirect"], level);
            }
        },
    },
    Metric {
        name: "levee_calm_intervals",
        kind: Gauge,
        unit: "control intervals",
        level: Detail,
        help: "Consecutive control intervals below T_low.",
        labels: &[],
        read: |s, out| out.value(f64::from(s.calm_intervals)),
    },
    Metric {
        name: "levee_out_bytes_per_second",
        kind: Gauge,
        unit: "accounted bytes a second",
        level: Operator,
        help: "d_out of the last control interval, by class: own, redirect, rescue.",
        labels: &["class"],
        read: |s, out| {
            out.labelled(["own"], s.rates.own);
            out.labelled(["redirect"], s.rates.redirect);
            out.labelled(["rescue"], s.rates.rescue);
        },
    },
    Metric {
        name: "levee_redirected_file_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Detail,
        help: "Size of the files to which visitors were redirected in the last control interval.",
        labels: &[],
        read: |s, out| out.value(s.rates.redirected_files),
    },
    Metric {
        name: "levee_requests_total",
        kind: Counter,
        unit: "requests",
        level: Operator,
        help: "Requests whose head was read.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.requests),
    },
    Metric {
        name: "levee_responses_total",
        kind: Counter,
        unit: "responses",
        level: Operator,
        help: "Responses by class: own, redirect, rescue, fetch (by a rescue server), refusal (503), bad (4xx).",
        labels: &["class"],
        read: |s, out| {
            out.labelled(["own"], s.lifetime.own_requests);
            out.labelled(["redirect"], s.lifetime.redirects);
            out.labelled(["rescue"], s.lifetime.rescue_requests);
            out.labelled(["fetch"], s.lifetime.fetches_served);
            out.labelled(["refusal"], s.lifetime.refused);
            out.labelled(["bad"], s.lifetime.bad_requests);
        },
    },
    Metric {
        name: "levee_response_bytes_total",
        kind: Counter,
        unit: "bytes",
        level: Operator,
        help: "True bytes of responses, heads too, by class: own, redirect, rescue.",
        labels: &["class"],
        read: |s, out| {
            out.labelled(["own"], s.lifetime.own_bytes);
            out.labelled(["redirect"], s.lifetime.redirect_bytes);
            out.labelled(["rescue"], s.lifetime.rescue_bytes);
        },
    },
    Metric {
        name: "levee_sent_bytes_total",
        kind: Counter,
        unit: "bytes",
        level: Detail,
        help: "True bytes of all responses, heads too.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.bytes),
    },
    Metric {
        name: "levee_dropped_connections_total",
        kind: Counter,
        unit: "connections",
        level: Operator,
        help: "Connections that were closed without an answer for lack of capacity.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.dropped),
    },
    Metric {
        name: "levee_evicted_connections_total",
        kind: Counter,
        unit: "connections",
        level: Operator,
        help: "Connections that made room for new ones: idle ones, and those of visitors who are slow.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.evicted),
    },
    Metric {
        name: "levee_waiting_requests",
        kind: Gauge,
        unit: "requests",
        level: Operator,
        help: "Requests that wait now until the link has room for them.",
        labels: &[],
        read: |s, out| out.value(s.waiting),
    },
    Metric {
        name: "levee_open_connections",
        kind: Gauge,
        unit: "connections",
        level: Operator,
        help: "Open connections.",
        labels: &[],
        read: |s, out| out.value(s.connections.0),
    },
    Metric {
        name: "levee_open_connections_limit",
        kind: Gauge,
        unit: "connections",
        level: Detail,
        help: "Most connections that may be open.",
        labels: &[],
        read: |s, out| out.value(s.connections.1),
    },
    Metric {
        name: "levee_response_latency_seconds",
        kind: Summary,
        unit: "seconds",
        level: Operator,
        help: "Time from a request's head to the end of its response, in the last control intervals, by quantile.",
        labels: &["quantile"],
        read: |s, out| {
            out.labelled(["0.5"], s.latency.p50);
            out.labelled(["0.99"], s.latency.p99);
        },
    },
    Metric {
        name: "levee_redirects_at_risk_total",
        kind: Counter,
        unit: "redirects",
        level: Operator,
        help: "Redirects to a rescue server that proved dead within the same rescue: what was lost at most.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.redirects_at_risk),
    },
    Metric {
        name: "levee_rescue_servers",
        kind: Gauge,
        unit: "rescue servers",
        level: Operator,
        help: "Rescue servers that help us.",
        labels: &[],
        read: |s, out| out.value(s.rescue_servers.len() as u64),
    },
    Metric {
        name: "levee_rescue_server_rate_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "D_redi, what may be redirected to a rescue server.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.rescue_servers {
                out.labelled([&peer.site], peer.rate);
            }
        },
    },
    Metric {
        name: "levee_rescue_server_used_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "d_redi, the size of the files that were redirected to a rescue server.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.rescue_servers {
                out.labelled([&peer.site], peer.used);
            }
        },
    },
    Metric {
        name: "levee_rescue_server_requests_total",
        kind: Counter,
        unit: "requests",
        level: Detail,
        help: "Requests that were redirected to this rescue server since the rescue began.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.rescue_servers {
                out.labelled([&peer.site], peer.requests);
            }
        },
    },
    Metric {
        name: "levee_rescue_server_bytes_total",
        kind: Counter,
        unit: "bytes",
        level: Detail,
        help: "Bytes of files that were redirected to this rescue server since the rescue began.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.rescue_servers {
                out.labelled([&peer.site], peer.bytes);
            }
        },
    },
    Metric {
        name: "levee_origins",
        kind: Gauge,
        unit: "origins",
        level: Operator,
        help: "Origins that we help, and those whose last visitors are here.",
        labels: &[],
        read: |s, out| out.value(s.origins.len() as u64),
    },
    Metric {
        name: "levee_kept_aliases",
        kind: Gauge,
        unit: "aliases",
        level: Operator,
        help: "Aliases of ended rescues that lead late visitors back.",
        labels: &[],
        read: |s, out| out.value(s.kept_aliases.len() as u64),
    },
    Metric {
        name: "levee_origin_rate_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "D_redi, what we promised to carry for an origin.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.origins {
                out.labelled([&peer.site], peer.rate);
            }
        },
    },
    Metric {
        name: "levee_origin_used_bytes_per_second",
        kind: Gauge,
        unit: "bytes a second",
        level: Operator,
        help: "d_resc, what we carry for an origin.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.origins {
                out.labelled([&peer.site], peer.used);
            }
        },
    },
    Metric {
        name: "levee_origin_requests_total",
        kind: Counter,
        unit: "requests",
        level: Detail,
        help: "Requests since the rescue of this origin began.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.origins {
                out.labelled([&peer.site], peer.requests);
            }
        },
    },
    Metric {
        name: "levee_origin_bytes_total",
        kind: Counter,
        unit: "bytes",
        level: Detail,
        help: "Bytes since the rescue of this origin began.",
        labels: &["peer"],
        read: |s, out| {
            for peer in &s.origins {
                out.labelled([&peer.site], peer.bytes);
            }
        },
    },
    Metric {
        name: "levee_candidates",
        kind: Gauge,
        unit: "candidates",
        level: Detail,
        help: "Sites that we would ask for help next.",
        labels: &[],
        read: |s, out| out.value(s.candidates.len() as u64),
    },
    registry::CONNECTED,
    registry::REFUSES,
    Metric {
        name: "levee_rescue_messages_refused_total",
        kind: Counter,
        unit: "messages",
        level: Operator,
        help: "Rescue messages that were refused, by whatever cause.",
        labels: &[],
        read: |s, out| out.value(s.lifetime.rescue_messages_refused),
    },
    Metric {
        name: "levee_http2_connections_total",
        kind: Counter,
        unit: "connections",
        level: Detail,
        help: "Connections of visitors who speak HTTP/2.",
        labels: &[],
        read: |s, out| out.value(s.http2.connections),
    },
    Metric {
        name: "levee_http2_requests_total",
        kind: Counter,
        unit: "requests",
        level: Detail,
        help: "Requests by HTTP/2; they are part of levee_requests_total.",
        labels: &[],
        read: |s, out| out.value(s.http2.requests),
    },
    Metric {
        name: "levee_http2_streams",
        kind: Gauge,
        unit: "streams",
        level: Detail,
        help: "Requests by HTTP/2 that are under way.",
        labels: &[],
        read: |s, out| out.value(s.http2.streams),
    },
    Metric {
        name: "levee_tls_handshakes_total",
        kind: Counter,
        unit: "handshakes",
        level: Operator,
        help: "TLS handshakes, by result: full (with a signature), resumed (with a ticket), failed.",
        labels: &["result"],
        read: |s, out| {
            if let Some(tls) = &s.tls {
                out.labelled(["full"], tls.handshakes_full);
                out.labelled(["resumed"], tls.handshakes_resumed);
                out.labelled(["failed"], tls.handshakes_failed);
            }
        },
    },
    Metric {
        name: "levee_tls_connections_total",
        kind: Counter,
        unit: "connections",
        level: Detail,
        help: "Connections whose handshake was done, by version of TLS.",
        labels: &["version"],
        read: |s, out| {
            if let Some(tls) = &s.tls {
                out.labelled(["1.2"], tls.handshakes_tls12);
                out.labelled(["1.3"], tls.handshakes_tls13);
            }
        },
    },
    Metric {
        name: "levee_tls_certificate_expiry_seconds",
        kind: Gauge,
        unit: "seconds",
        level: Operator,
        help: "Time until the first certificate in force expires; negative when it has.",
        labels: &[],
        read: |s, out| {
            if let Some(expires) = s.tls.and_then(|tls| tls.certificate_expires) {
                out.value(expires - s.now);
            }
        },
    },
    certificates::ORDERS,
    Metric {
        name: "levee_cache_bytes",
        kind: Gauge,
        unit: "bytes",
        level: Operator,
        help: "Bytes of the object cache in memory, with its index.",
        labels: &[],
        read: |s, out| out.value(s.cache_bytes.0),
    },
    Metric {
        name: "levee_cache_limit_bytes",
        kind: Gauge,
        unit: "bytes",
        level: Detail,
        help: "Most bytes that the object cache may take in memory.",
        labels: &[],
        read: |s, out| out.value(s.cache_bytes.1),
    },
    Metric {
        name: "levee_cache_lookups_total",
        kind: Counter,
        unit: "lookups",
        level: Operator,
        help: "Requests that asked the object cache, by result: hit, miss, collapsed (shared the fetch of another).",
        labels: &["result"],
        read: |s, out| {
            out.labelled(["hit"], s.lifetime.cache_hits);
            out.labelled(["miss"], s.lifetime.cache_misses);
            out.labelled(["collapsed"], s.lifetime.collapsed);
        },
    },
    fetches::EARLY,
    crawlers::REQUESTS,
    crawlers::SENT,
    crawlers::PUT_OFF,
    crawlers::RATE,
    crawlers::BLOCKS,
    purges::PURGES,
    purges::OBJECTS,
    purges::ANSWERS,
    fetches::ALL,
    fetches::ERRORS,
    log::LOST,
    log::LEFT_OUT,
    log::TAKEN_OVER,
    log::REFUSED,
    homes::ASKS,
    homes::ANSWERS,
    homes::EXCEPTIONS,
    integrity::SIGNATURES,
    integrity::LOOKS,
    integrity::EXPELLED,
    way_back::KEPT,
    way_back::SENT_BACK,
    way_back::COMEBACKS,
    copies::HOT,
    copies::TAKEN,
    copies::TAKEN_BYTES,
    copies::SENT,
    copies::SENT_BYTES,
    help::GIVEN,
    help::GIVEN_TO,
    help::RATE,
    help::REFUSED,
    help::WITHHELD,
    help::STATE_FOLDER_USABLE,
    help::DISK,
    upstreams::UP,
    upstreams::OUTSTANDING,
    upstreams::REQUESTS,
    upstreams::FAILURES,
    upstreams::EJECTIONS,
    mesh::ENTRIES,
    mesh::ENTRIES_MAX,
    mesh::CONNECTIONS,
    mesh::DROPPED,
    mesh::REQUESTS,
    mesh::REFUSED,
    mesh::PEER_UP,
    mesh::PEER_AGREED,
    mesh::PEER_OWED,
    mesh::CHANGES,
    mesh::REPAIRS,
    mesh::REFUSED_CHANGES,
    mesh::BYTES,
];
