//! The figures of a running server at one moment: what every face of it shows.
//!
//! This is the JSON of `GET /status.json` on the admin address, and a promise to whoever reads it:
//! fields are added, never renamed. Rates are bytes a second over the last control interval,
//! counters are since the start of the process, times are Unix seconds. A field that is absent
//! reads as zero, so that `levee top` understands an older server.

mod call;
mod certificate;
mod kept_alias;
mod mesh;
mod trust;
mod upstream;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

pub use call::CallStatus;
pub use certificate::{CertificateStatus, CertificateTrouble, OrderCount};
pub use kept_alias::KeptAlias;
pub use mesh::{MeshBytes, MeshStatus, PeerStatus, RegisteredSite};
pub use trust::{AccusationStatus, TrustRefusal, TrustStatus};
pub use upstream::UpstreamStatus;

/// A whole server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The site's name and port.
    pub site: String,
    /// Version of Levee.
    pub version: String,
    /// Unix seconds now.
    pub now: f64,
    /// Seconds since the process started.
    pub uptime: f64,
    /// `normal`, `sos` or `rescue`.
    pub state: String,
    /// Whether the listeners are up and a plan is in force.
    pub ready: bool,
    /// Threads that answered visitors and have died; a restart brings them back.
    #[serde(default)]
    pub lost_cores: u64,
    /// The outbound link.
    pub link: LinkStatus,
    /// Load level of each resource.
    pub levels: Vec<Level>,
    /// T_low, T_alert, T_high, T_coff as shares of capacity, in this order.
    pub thresholds: [f64; 4],
    /// T_redi; none when nothing is redirected.
    pub redirect_threshold: Option<f64>,
    /// Consecutive control intervals below T_low.
    pub calm_intervals: u32,
    /// Rates of the last control interval.
    pub rates: Rates,
    /// Counters since the start.
    pub lifetime: Lifetime,
    /// Rescue servers that help us.
    pub rescue_servers: Vec<Peer>,
    /// Origins that we help, and those whose last visitors are here.
    pub origins: Vec<Peer>,
    /// Aliases of ended rescues that lead late visitors back.
    #[serde(default)]
    pub kept_aliases: Vec<KeptAlias>,
    /// Whom we would ask next, best first: name and offered bytes a second.
    pub candidates: Vec<(String, u64)>,
    /// Whether their aliases answer by HTTPS, of those that say so.
    #[serde(default)]
    pub candidates_https: BTreeMap<String, bool>,
    /// What has become of calling for help.
    pub call: CallStatus,
    /// The registry.
    pub registry: RegistryStatus,
    /// Hot URLs of the last interval, hottest first.
    pub hot: Vec<HotUrl>,
    /// Resources that are copied, and those of them whose visitors are redirected early.
    pub hot_resources: [u64; 2],
    /// The last decisions, newest first.
    pub decisions: Vec<Decision>,
    /// Time from a request's head to the end of its response.
    pub latency: Latency,
    /// Bytes of the object cache in memory, with its index, and the limit.
    pub cache_bytes: (u64, u64),
    /// Open connections and the limit.
    pub connections: (u64, u64),
    /// Requests that wait now until the link has room for them.
    pub waiting: u64,
    /// Applications behind the site, in the order of the settings.
    pub upstreams: Vec<UpstreamStatus>,
    /// HTTPS; none where there is no certificate.
    #[serde(default)]
    pub tls: Option<TlsStatus>,
    /// Names whose certificates are ordered and renewed by themselves.
    #[serde(default)]
    pub certificates: Vec<CertificateStatus>,
    /// Files with certificates that turn visitors away, or were not taken.
    #[serde(default)]
    pub certificate_troubles: Vec<CertificateTrouble>,
    /// Visitors who speak HTTP/2.
    #[serde(default)]
    pub http2: Http2Status,
    /// Crawlers.
    pub crawlers: CrawlerStatus,
    /// The rehearsal that this site holds or takes part in.
    pub drill: Option<DrillStatus>,
    /// The site's name in DNS; none where it is left alone.
    pub dns: Option<DnsStatus>,
    /// What others deliver for this site; none where it stands alone.
    pub integrity: Option<IntegrityStatus>,
    /// What was given to others, and to whom it was not.
    #[serde(default)]
    pub help: HelpStatus,
    /// The closed community; none in an open one.
    pub trust: Option<TrustStatus>,
    /// How aliases are found in DNS; none where none are given out.
    pub alias_names: Option<AliasNamesStatus>,
    /// The registry that this process is; none where it is a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshStatus>,
}

/// How aliases are found in DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AliasNamesStatus {
    /// The domain under which they lie.
    pub domain: String,
    /// The name server where each is registered; empty where a wildcard record stands for all.
    pub server: String,
    /// Aliases that are registered.
    pub registered: u64,
    /// What went wrong last, and is tried again; empty where nothing did.
    pub cause: String,
    /// Calls for help that were declined because their alias could not be registered.
    pub declined: u64,
}

/// The site's name in DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DnsStatus {
    /// The name.
    pub name: String,
    /// Who keeps its zone.
    pub server: String,
    /// `settled`, `working`, `failing`, or `unused`, where rescue servers are not put in.
    pub state: String,
    /// Why it fails or is not used, in a sentence; empty where there is nothing to tell.
    pub cause: String,
    /// Addresses that the name had when we looked last.
    pub addresses: Vec<String>,
    /// Those of rescue servers that we put in.
    pub entered: Vec<String>,
    /// Changes made since the start, and attempts that failed.
    pub changes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// What our own name server was asked; none where another keeps the zone.
    pub asked: Option<NameServerStatus>,
}

/// A name server of our own, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameServerStatus {
    /// Questions answered.
    pub answers: u64,
    /// Answers held back, or cut, because one block of addresses asked for too many.
    pub held_back: u64,
    /// Updates made.
    pub updates: u64,
    /// Updates, signatures and transfers refused.
    pub refused: u64,
    /// Copies of the zone that secondaries fetched.
    pub transfers: u64,
    /// Idle connections by TCP that made way for newcomers.
    pub made_way: u64,
    /// Newcomers by TCP who were turned away, since nobody was idle.
    pub turned_away: u64,
}

/// What others deliver for a site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntegrityStatus {
    /// Public key of the site, by which what it publishes is signed.
    pub key: String,
    /// Looks at what rescue servers deliver, by what they showed.
    pub looks: BTreeMap<String, u64>,
    /// Members that altered something, the oldest first.
    pub expelled: Vec<ExpelledStatus>,
}

/// A member that altered what it delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpelledStatus {
    /// Its name.
    pub member: String,
    /// Since when, in Unix seconds.
    pub since: u64,
    /// Path and query of the page.
    pub target: String,
    /// Digest of what was published.
    pub expected: String,
    /// Digest of what was delivered.
    pub seen: String,
}

/// What was given to others in the last 24 hours, and to whom it was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HelpStatus {
    /// Bytes given to all of them.
    pub given: u64,
    /// The most of that; none without a limit.
    pub given_max: Option<u64>,
    /// The most for one of them; none without a limit.
    pub member_given_max: Option<u64>,
    /// What there is for all of them together now, in bytes a second.
    pub rate: u64,
    /// Who was given how many bytes, most first; the last ones may stand together, as `others`.
    pub sites: Vec<(String, u64)>,
    /// Bytes on disk that are theirs, and the most.
    pub disk: (u64, u64),
    /// The last that asked and were refused, newest first.
    pub refused: Vec<RefusedSite>,
    /// Calls that were refused since the start, by kind.
    pub refused_calls: BTreeMap<String, u64>,
    /// Why nobody can be helped: what a rescue server must remember cannot be written. Empty where
    /// it can.
    pub state_trouble: String,
}

/// A site that was not helped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedSite {
    /// Its name.
    pub site: String,
    /// Why, as a sentence goes on.
    pub why: String,
    /// Unix seconds of the last time.
    pub at: f64,
    /// How often in all.
    pub times: u64,
}

/// Crawlers, since the start, and what is true now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlerStatus {
    /// Requests of those that say what they are.
    pub by_name: u64,
    /// Requests of those that were recognised by what they do.
    pub by_behaviour: u64,
    /// Bytes that they got, with those before they were recognised.
    pub bytes: u64,
    /// Requests that were told to come back later.
    pub put_off: u64,
    /// Connections that were closed without an answer.
    pub closed: u64,
    /// What they get now at most, in bytes a second.
    pub rate: u64,
    /// Blocks of addresses that are taken for crawlers' now.
    pub blocks: u64,
}

/// A rehearsal of a rescue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrillStatus {
    /// Name of the site whose it is.
    pub site: String,
    /// Whether that is ours.
    pub own: bool,
    /// Unix seconds at which it ends at the latest.
    pub ends: f64,
}

/// HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Status {
    /// Connections that began to speak it, since the start.
    pub connections: u64,
    /// Requests by it, since the start.
    pub requests: u64,
    /// Requests by it that are under way.
    pub streams: u64,
}

/// HTTPS, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsStatus {
    /// Handshakes done with a signature.
    pub handshakes_full: u64,
    /// Handshakes done with a ticket of an earlier connection.
    pub handshakes_resumed: u64,
    /// Handshakes begun and not finished.
    pub handshakes_failed: u64,
    /// Those done in TLS 1.2.
    pub handshakes_tls12: u64,
    /// Those done in TLS 1.3.
    pub handshakes_tls13: u64,
    /// When the first certificate expires, in seconds since 1970.
    pub certificate_expires: Option<f64>,
}

/// The outbound link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkStatus {
    /// B in bytes a second.
    pub capacity: u64,
    /// Whether it was configured, or found by measuring.
    pub configured: bool,
    /// D_out in bytes a second.
    pub usable: u64,
    /// Bytes that have left over the link since the start, with overhead. Only where the server
    /// enforces the limit.
    pub carried: u64,
    /// Most bytes that left within any one second.
    pub peak: u64,
    /// Seconds that the link needs for what is admitted but not yet sent.
    #[serde(serialize_with = "finite")]
    pub backlog: f64,
}

/// Load level of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Level {
    /// `bandwidth`, `cpu`, `connections`.
    pub resource: String,
    /// 1 is capacity.
    #[serde(serialize_with = "finite")]
    pub level: f64,
}

/// Rates of the last control interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// d_out, accounted bytes a second.
    pub out: u64,
    /// d_self.
    pub own: u64,
    /// d_resc.
    pub rescue: u64,
    /// d_redi: accounted bytes a second of the redirect responses themselves.
    pub redirect: u64,
    /// Size of the redirected files, bytes a second.
    pub redirected_files: u64,
    /// Requests a second.
    #[serde(serialize_with = "finite")]
    pub requests: f64,
    /// Redirects a second.
    #[serde(serialize_with = "finite")]
    pub redirects: f64,
    /// Refusals a second.
    #[serde(serialize_with = "finite")]
    pub refusals: f64,
}

/// Copies of objects that are made before visitors ask for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyStatus {
    /// Those that origins wanted to have made here, by what became of them.
    pub taken: BTreeMap<String, u64>,
    /// Bytes that they pushed.
    pub taken_bytes: u64,
    /// Those that we wanted our rescue servers to hold, by what became of them.
    pub sent: BTreeMap<String, u64>,
    /// Bytes that we pushed.
    pub sent_bytes: u64,
}

/// Counters since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lifetime {
    /// Requests whose head was read.
    pub requests: u64,
    /// True bytes sent, heads too.
    pub bytes: u64,
    /// Responses for the site's own names, redirects apart.
    pub own_requests: u64,
    /// Their bytes.
    pub own_bytes: u64,
    /// Responses for rescued origins.
    pub rescue_requests: u64,
    /// Their bytes.
    pub rescue_bytes: u64,
    /// Redirects.
    pub redirects: u64,
    /// Their true bytes, without the overhead of connections.
    pub redirect_bytes: u64,
    /// Requests by our rescue servers, and by others of an origin that ask us as an object's home.
    pub fetches_served: u64,
    /// Turned away for lack of capacity: with 503, or back to the origin.
    pub refused: u64,
    /// Closed without an answer for lack of capacity.
    pub dropped: u64,
    /// Visitors of origins who were turned away because of the limits of help.
    pub withheld: u64,
    /// Closed to make room for a new connection: idle, or of a visitor who was too slow.
    pub evicted: u64,
    /// Refused with 4xx for what they were.
    pub bad_requests: u64,
    /// Cache hits and misses; fetches that we made; requests that waited for another's fetch.
    pub cache_hits: u64,
    /// Requests that were not in the cache.
    pub cache_misses: u64,
    /// Fetches from origins or upstreams.
    pub fetches: u64,
    /// Requests that shared another's fetch.
    pub collapsed: u64,
    /// Fetches that failed.
    pub fetch_errors: u64,
    /// Objects of origins whose key is known, by what their signature said.
    #[serde(default)]
    pub signatures: BTreeMap<String, u64>,
    /// Requests to other rescue servers as the homes of objects.
    pub home_asks: u64,
    /// Of these, those that a home answered.
    pub home_answers: u64,
    /// How often the origin, or the next home, was asked for an object that has its home elsewhere,
    /// by reason.
    pub home_exceptions: BTreeMap<String, u64>,
    /// Visitors of origins whom we sent back, by reason.
    pub sent_back: BTreeMap<String, u64>,
    /// Requests of visitors whom a rescue server sent back, by what their word was worth.
    pub comebacks: BTreeMap<String, u64>,
    /// Visits that were not redirected only because nobody may keep the page.
    #[serde(default)]
    pub kept_visits: u64,
    /// Copies of objects that were made before visitors asked.
    pub copies: CopyStatus,
    /// Rescue messages refused, by whatever cause.
    pub rescue_messages_refused: u64,
    /// Access-log lines lost: the writer could not keep up, or they were not handed over.
    pub log_lines_lost: u64,
    /// Of these, lines of those whom we help that there was no room for.
    #[serde(default)]
    pub log_lines_left_out: u64,
    /// Access-log lines that rescue servers handed over for our site.
    pub log_lines_taken_over: u64,
    /// Lines that rescue servers handed over and that were not log lines.
    pub log_lines_refused: u64,
    /// Visitors' redirects that went to a rescue server which proved dead within the same rescue:
    /// what was lost at most.
    pub redirects_at_risk: u64,
    /// Renewals of hot objects before their end.
    pub early_renewals: u64,
    /// Purges carried out, our own and those of origins that we rescue.
    pub purges: u64,
    /// Objects that they removed or made old.
    pub purged_objects: u64,
    /// Purges of ours at a rescue server that it has confirmed.
    pub purges_confirmed: u64,
    /// Those that it has not confirmed in time.
    pub purges_unconfirmed: u64,
}

/// The other side of a rescue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// Its own name and port.
    pub site: String,
    /// The alias in use.
    pub alias: String,
    /// Unix seconds at which the rescue began.
    pub since: f64,
    /// D_redi, bytes a second.
    pub rate: u64,
    /// d_redi(S_r) or d_resc(S_o), bytes a second.
    pub used: u64,
    /// Requests since the rescue began.
    pub requests: u64,
    /// Bytes since the rescue began.
    pub bytes: u64,
    /// `live`, `orphaned` (the origin has died, and permits us to go on) or `ending`.
    pub phase: String,
    /// Unix seconds at which the permit of an origin that has died ends; 0 while it lives.
    pub orphaned_until: f64,
}

/// How it stands with the registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegistryStatus {
    /// Address, empty when none is set.
    pub address: String,
    /// Whether the last exchange went well.
    pub connected: bool,
    /// Why the registry does not list this site, in a sentence; empty where it does, or was not
    /// asked to.
    pub refusal: String,
    /// What went wrong last, in a sentence.
    pub last_error: String,
    /// Why the last look for registries failed, in a sentence: those that were known stay.
    pub lookup_error: String,
    /// All that are known, the preferred one first; the address above is the one that is asked.
    pub all: Vec<RegistryPlace>,
}

/// One of several registries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegistryPlace {
    /// Its address.
    pub address: String,
    /// `asked`, `ready` (not needed now) or `away`.
    pub state: String,
    /// Why it is away, in a sentence: what the newest attempt came to.
    pub cause: String,
    /// Unix seconds of that attempt; 0 where it is not away.
    #[serde(serialize_with = "finite")]
    pub tried_at: f64,
}

/// One URL and how often it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HotUrl {
    /// Host and path.
    pub url: String,
    /// Requests a second in the last interval.
    #[serde(serialize_with = "finite")]
    pub rate: f64,
    /// `copied` or `redirected`; empty where nothing has been done about it.
    pub heat: String,
    /// Rescue servers that hold a copy.
    pub holders: Vec<String>,
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Unix seconds.
    pub at: f64,
    /// A sentence.
    pub text: String,
}

/// Latency of the last control intervals, seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Median.
    #[serde(serialize_with = "finite")]
    pub p50: f64,
    /// 99th percentile.
    #[serde(serialize_with = "finite")]
    pub p99: f64,
}

/// JSON has no infinity, and a reader expects a number.
fn finite<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(crate::words::finite(*number))
}

impl Status {
    /// The JSON of `GET /status.json`: every field, and `sentence`, the state in plain words.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Told<'a> {
            sentence: String,
            #[serde(flatten)]
            status: &'a Status,
        }
        let told = Told {
            sentence: crate::words::sentence(self),
            status: self,
        };
        // Structs of numbers and texts always have a JSON form.
        serde_json::to_string(&told).unwrap_or_default()
    }
}
