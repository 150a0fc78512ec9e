//! The upstreams of a site: where they are, which one gets a request, and how that is remembered.
//!
//! Every decision is `levee_control::UpstreamGroup`'s; here it gets a lock, a clock and addresses.
//! The group lives as long as the server: a reload changes its list, and what stays in the list
//! keeps its connections and what is known of it.
//!
//! A request claims an upstream ([`Upstreams::claim`]) and lets go of it by dropping the
//! [`Claim`], whatever became of it; so no request is ever counted for longer than it lasts.

mod endpoint;
mod health;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use levee_control::{
    Choice, NoChoice, RetryGrant, Sign, Tier, UpstreamGroup, UpstreamId, UpstreamRules,
    UpstreamView,
};
use levee_wire::ProxyVersion;
use tokio::sync::Notify;

pub use endpoint::{Endpoint, EndpointError};
pub use health::{CheckSettings, watch_upstreams};

use crate::fetch::Clock;
use crate::flight::{FetchError, lock};

/// What an operator may set about the upstreams of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// Where they are, and when each is used.
    pub list: Vec<(Endpoint, Tier)>,
    /// Limits of choosing and ejecting.
    pub rules: UpstreamRules,
    /// How they are checked.
    pub check: CheckSettings,
    /// What an answer with a status of 500 to 599 says of its upstream.
    pub server_errors: ServerErrors,
    /// How they are told who a visitor is, before anything else on a connection. Each connection
    /// then serves one request, because it is one visitor's.
    pub proxy_protocol: Option<ProxyVersion>,
}

/// What an answer with a status of 500 to 599 says of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerErrors {
    /// Nothing: one page may be broken and all others well.
    Tolerated,
    /// That it is failing.
    Failures,
}

impl UpstreamSettings {
    /// The defaults, for upstreams at these addresses.
    pub fn at(addresses: &[SocketAddr]) -> Self {
        let primary = |&address| (Endpoint::Address(address), Tier::Primary);
        Self {
            list: addresses.iter().map(primary).collect(),
            rules: UpstreamRules::default(),
            check: CheckSettings::default(),
            server_errors: ServerErrors::Tolerated,
            proxy_protocol: None,
        }
    }
}

/// See the head of this file.
pub struct Upstreams {
    clock: Clock,
    state: Mutex<State>,
    /// The list was changed, or an upstream is to be checked soon.
    changed: Notify,
    /// A request ended where others may wait.
    room: Notify,
}

struct State {
    group: UpstreamGroup,
    members: BTreeMap<UpstreamId, Arc<Member>>,
    settings: UpstreamSettings,
}

/// One upstream.
#[derive(Debug)]
pub(crate) struct Member {
    pub endpoint: Endpoint,
    /// Where it is now. Empty while its name leads nowhere.
    addresses: Mutex<Arc<[SocketAddr]>>,
}

/// An upstream that a request uses. Dropped, it is free for another.
pub(crate) struct Claim {
    upstreams: Arc<Upstreams>,
    choice: Choice,
    pub member: Arc<Member>,
    /// How the upstream is told who the visitor is.
    pub proxy_protocol: Option<ProxyVersion>,
    /// What the request showed of its upstream so far.
    sign: Option<Sign>,
}

impl Upstreams {
    /// A group of these upstreams. `clock` is the fetches' own. Names lead nowhere until
    /// [`watch_upstreams`] has looked them up.
    pub fn new(settings: UpstreamSettings, clock: Clock) -> Arc<Self> {
        let upstreams = Self {
            state: Mutex::new(State {
                group: UpstreamGroup::new(settings.rules),
                members: BTreeMap::new(),
                settings: settings.clone(),
            }),
            clock,
            changed: Notify::new(),
            room: Notify::new(),
        };
        upstreams.change(settings);
        Arc::new(upstreams)
    }

    /// From now on these are the upstreams. Those that stay keep what is known of them. Gives those
    /// that were taken from the list, for [`crate::Fetcher::close_idle`].
    pub fn change(&self, settings: UpstreamSettings) -> Vec<Endpoint> {
        let name = |(endpoint, tier): &(Endpoint, Tier)| (endpoint.to_string(), *tier);
        let names: Vec<_> = settings.list.iter().map(name).collect();
        let mut state = lock(&self.state);
        let ids = state.group.change((self.clock)(), settings.rules, &names);
        let mut before = std::mem::take(&mut state.members);
        for (id, (endpoint, _)) in ids.into_iter().zip(&settings.list) {
            let known = before.remove(&id);
            let member = known.unwrap_or_else(|| Arc::new(Member::new(endpoint.clone())));
            state.members.insert(id, member);
        }
        state.settings = settings;
        drop(state);
        self.changed.notify_one();
        self.room.notify_waiters();
        let gone = before.values();
        gone.map(|member| member.endpoint.clone()).collect()
    }

    /// All of them, in the order of the settings.
    pub fn view(&self) -> Vec<UpstreamView> {
        lock(&self.state).group.view()
    }

    /// Whether they are told who each visitor is by the PROXY protocol.
    pub(crate) fn are_told_visitors(&self) -> bool {
        lock(&self.state).settings.proxy_protocol.is_some()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.state).members.len()
    }

    /// An upstream for a request that was tried at `tried` before; none where all that could be
    /// tried have been. Waits while all have as many requests as they may.
    ///
    /// Cancel safety: dropped half-way, nothing was claimed.
    pub(crate) async fn claim(self: &Arc<Self>, tried: &[UpstreamId]) -> Option<Claim> {
        loop {
            let room = self.room.notified();
            match self.choose(tried) {
                Ok(claim) => return Some(claim),
                Err(NoChoice::Exhausted) => return None,
                // Whoever ends a request wakes one who waits, also one who was about to.
                Err(NoChoice::Full) => room.await,
            }
        }
    }

    fn choose(self: &Arc<Self>, tried: &[UpstreamId]) -> Result<Claim, NoChoice> {
        let mut state = lock(&self.state);
        let choice = state.group.choose(tried)?;
        let member = state.members.get(&choice.id);
        let member = Arc::clone(member.expect("the group and the map change together"));
        Ok(Claim {
            upstreams: Arc::clone(self),
            choice,
            member,
            proxy_protocol: state.settings.proxy_protocol,
            sign: None,
        })
    }

    /// Whether a request that was sent, and may be sent twice, may go to another upstream.
    pub(crate) fn grant_retry(&self) -> RetryGrant {
        lock(&self.state).group.grant_retry()
    }
}

impl Member {
    fn new(endpoint: Endpoint) -> Self {
        let addresses: Arc<[SocketAddr]> = match &endpoint {
            Endpoint::Address(address) => Arc::new([*address]),
            Endpoint::Name(..) | Endpoint::Unix(_) => Arc::new([]),
        };
        Self {
            endpoint,
            addresses: Mutex::new(addresses),
        }
    }

    /// Where it is, best first.
    pub fn addresses(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&lock(&self.addresses))
    }

    fn set_addresses(&self, addresses: Arc<[SocketAddr]>) {
        *lock(&self.addresses) = addresses;
    }
}

impl Claim {
    /// Which upstream.
    pub fn id(&self) -> UpstreamId {
        self.choice.id
    }

    /// Whether the upstream is no longer in the list.
    pub fn is_obsolete(&self) -> bool {
        !lock(&self.upstreams.state)
            .members
            .contains_key(&self.choice.id)
    }

    /// It answered with this status. What its body shows may still say otherwise.
    pub fn answered(&mut self, status: http::StatusCode) {
        let tolerance = lock(&self.upstreams.state).settings.server_errors;
        self.sign = match tolerance {
            ServerErrors::Failures if status.is_server_error() => Some(Sign::Failure),
            ServerErrors::Failures | ServerErrors::Tolerated => Some(Sign::Success),
        };
    }

    /// The request failed.
    pub fn failed(&mut self, error: FetchError) {
        use crate::flight::Fault;
        match error.fault() {
            Fault::Source => self.sign = Some(Sign::Failure),
            Fault::Visitor | Fault::Ours => {}
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let upstreams = &self.upstreams;
        let now = (upstreams.clock)();
        let mut state = lock(&upstreams.state);
        if let Some(sign) = self.sign {
            state.group.told(now, self.choice, sign);
            if sign == Sign::Failure {
                upstreams.changed.notify_one();
            }
        }
        state.group.released(self.choice);
        drop(state);
        upstreams.room.notify_one();
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("member", &self.member.endpoint)
            .field("sign", &self.sign)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.view()).finish()
    }
}
