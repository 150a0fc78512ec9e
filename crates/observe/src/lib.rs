//! One set of figures, many faces: status page, JSON, Prometheus, dashboard, logs.

mod status;

pub use status::{
    Decision, HotUrl, Latency, Level, Lifetime, LinkStatus, Peer, Rates, RegistryStatus, Status,
};
