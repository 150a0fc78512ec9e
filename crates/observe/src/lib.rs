//! One set of figures, many faces: status page, JSON, Prometheus, dashboard, logs.

mod access;
mod calendar;
mod status;

pub use access::{
    AccessRecord, CacheResult, HANDED_OVER_LINE_BYTES_MAX, HANDED_OVER_LINES_MAX, HandedOver,
    LogFormat, LogText, LogVersion, RequestClass,
};
pub use status::{
    Decision, HotUrl, Latency, Level, Lifetime, LinkStatus, Peer, Rates, RegistryStatus, Status,
};
