//! The HTTP data plane: the path of a request, from its head to the last byte of its response.

mod answer;
mod back_keys;
mod cache;
mod cacheability;
mod challenges;
mod chunked;
mod connection;
mod connection_fields;
mod connections;
mod counters;
mod crawlers;
mod date;
mod disk;
mod engine;
mod fetch;
mod files;
mod flight;
mod flow;
mod forwarded;
mod front;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod histogram;
mod http2;
mod marks;
mod missing;
mod pacer;
mod parked;
mod pool;
mod publisher;
mod redirect;
mod request;
mod response;
mod router;
mod sample;
mod settings;
mod shared_cookies;
mod site;
mod tags;
mod tls;
mod trailers;
mod transport;
mod upstream;
mod wheel;

pub use cache::{BareCache, Body, Freshness, Stored};
pub use cacheability::{Credentials, Extent, ResponseControl, Sharing, Wishes};
pub use challenges::Challenges;
pub use crawlers::{Behaviour, CrawlerRules};
pub use disk::{Disk, DiskError, DiskFull, DiskOwner, Room, StoredFile};
pub use engine::PurgeInlet;
pub use fetch::{
    Clock, Delivered, DiskSettings, FetchCounters, FetchSettings, Fetcher, OriginKey,
    PushJudgement, Reply, SourceCounters, Standing, Verify, judge_push,
};
pub use files::{Folder, FolderError};
pub use flight::{
    BodyReceiver, BodySender, BrokenOff, CacheResult, Company, Fault, FetchError, Forwarding, Miss,
    ObjectKey, ObjectRef, Overloaded, Place, Progress, Purpose, Pushed, RequestHeaders,
    ResponseHead, Retry, Source, Space, SpaceRef, Spaces, Waiting, Waker, Why, body_channel,
    tunnel_channel,
};
pub use front::{BindError, Bound, Errand, Front, FrontParts, HandedOverLog};
pub use histogram::LatencyCounts;
pub use missing::{CameBack, MarkedVisitors, MissingCopy};
pub use pacer::{Class, Link};
pub use publisher::{Facts, Publisher, Sign, digest_of};
pub use request::{DRILL_FIELD, DRILL_LOOK};
pub use sample::{
    Comebacks, CoreNotes, CrawlerSample, Handshakes, LinkSample, Sample, SentBack, SlotSample,
};
pub use settings::{Cleartext, Deadlines, FrontSettings, Limits};
pub use shared_cookies::SharedCookies;
pub use site::{Content, Site, SiteTable, UnknownHost, Upstream};
pub use tags::Tags;
pub use tls::{
    Certificate, CertificateFlaw, CertificateWarning, Certificates, CertificatesError, MinVersion,
    PairFiles, TlsKeys, TlsOffer,
};
pub use upstream::{
    CheckSettings, Endpoint, EndpointError, ServerErrors, UpstreamSettings, Upstreams,
    watch_upstreams,
};
