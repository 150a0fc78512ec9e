//! One set of figures, many faces: status page, JSON, Prometheus, dashboard, logs.
//!
//! [`Status`] holds every figure of a server at one moment. Each face is a pure function of it, so
//! that no two faces can tell different stories. The access log is beside them: one
//! [`AccessRecord`] a request, written by a thread of its own.

mod access;
mod access_log;
mod auto;
mod calendar;
mod dashboard;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hand_over;
mod history;
mod html;
mod logging;
mod metrics;
mod page;
mod status;
mod terminal;
pub mod words;

pub use access::{
    AccessRecord, CacheResult, HANDED_OVER_LINE_BYTES_MAX, HANDED_OVER_LINES_MAX, HandedOver,
    LogFormat, LogText, LogVersion, RequestClass, VisitorKind,
};
pub use access_log::{AccessLog, AccessLogError, AccessLogThread, LogTarget};
pub use auto::{render_auto, render_auto_page};
pub use calendar::Calendar;
pub use dashboard::{Asset, DASHBOARD_HTML, asset};
pub use hand_over::{HAND_OVER_ALIASES_MAX, HAND_OVER_BYTES_MAX, HandOver, HandOverLines};
pub use history::{HISTORY_LENGTH, History, Snapshot, StatusBoard};
pub use logging::{LoggingError, LoggingStyle, start_logging};
pub use metrics::{
    Audience, Kind, METRICS_CONTENT_TYPE, Metric, metrics, metrics_reference, render_metrics,
    render_registry_metrics,
};
pub use page::{STYLE_CSS, render_page, render_registry_page};
pub use status::{
    AccusationStatus, AliasNamesStatus, CallStatus, CertificateStatus, CertificateTrouble,
    CopyStatus, CrawlerStatus, Decision, DnsStatus, DrillStatus, ExpelledStatus, HelpStatus,
    HotUrl, Http2Status, IntegrityStatus, KeptAlias, Latency, Level, Lifetime, LinkStatus,
    MeshBytes, MeshStatus, NameServerStatus, OrderCount, Peer, PeerStatus, Rates, RefusedSite,
    RegisteredSite, RegistryPlace, RegistryStatus, Status, TlsStatus, TrustRefusal, TrustStatus,
    UpstreamStatus,
};
pub use terminal::{render_status_text, render_top};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
