//! Looking after upstreams: checks of those that are due, and addresses of those that have names.
//!
//! One task for each group. Without a path a check is a connection: somebody listens. With one it
//! is a GET that must be answered with a status below 400. When to check and what follows is the
//! group's decision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use levee_control::{Sign, UpstreamId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Endpoint, Member, Upstreams};
use crate::fetch::{Upload, Way, dial};
use crate::flight::lock;

/// How upstreams are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// Path that is asked for; none for a connection alone.
    pub path: Option<String>,
    /// What goes into the Host field.
    pub host: String,
    /// Time for a whole check. 2 s, as for a connection: an upstream that needs longer to say that
    /// it is well is not.
    pub timeout: Duration,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            path: None,
            host: "localhost".to_owned(),
            timeout: Duration::from_secs(2),
        }
    }
}

/// How long the addresses of a name are believed. 30 s, as long as most container networks say.
const ADDRESSES_BELIEVED: Duration = Duration::from_secs(30);
/// How soon a name that led nowhere is looked up again.
const LOOKUP_PAUSE: Duration = Duration::from_secs(1);
/// The longest look-up; resolvers give up after a multiple of 5 s.
const LOOKUP_MAX: Duration = Duration::from_secs(5);
/// What a task sleeps that has nothing to do; a change wakes it.
const LONG: Duration = Duration::from_secs(3600);

/// What one of the small tasks has found out.
enum Found {
    Sign(UpstreamId, Sign),
    Addresses(UpstreamId, Result<(), ()>),
}

/// Checks upstreams and looks up their names, for ever.
///
/// Cancel safety: dropped, running checks are given up and nothing is checked any more.
pub async fn watch_upstreams(upstreams: Arc<Upstreams>) {
    let mut running = JoinSet::new();
    let mut lookups = BTreeMap::new();
    loop {
        let wake = upstreams.begin_what_is_due(&mut running, &mut lookups);
        tokio::select! {
            () = upstreams.changed.notified() => {}
            () = sleep_until(wake) => {}
            Some(found) = running.join_next() => match found {
                Ok(Found::Sign(id, sign)) => upstreams.note_check(id, sign),
                Ok(Found::Addresses(id, found)) => {
                    let pause = found.map_or(LOOKUP_PAUSE, |()| ADDRESSES_BELIEVED);
                    lookups.insert(id, Lookup::Due(Instant::now() + pause));
                }
                Err(error) => tracing::error!(%error, "a check of an upstream died"),
            },
        }
    }
}

/// When a name is to be looked up.
#[derive(Clone, Copy)]
enum Lookup {
    Due(Instant),
    Running,
}

impl Upstreams {
    /// Looks every name up once, so that a server which has just started knows where to go. Waits 5
    /// s at most; a name that leads nowhere is looked up again by [`watch_upstreams`].
    ///
    /// Cancel safety: dropped half-way, the names that were not found yet lead nowhere.
    pub async fn look_up_names(&self) {
        let members: Vec<_> = lock(&self.state).members.values().cloned().collect();
        let mut running = JoinSet::new();
        for member in members {
            running.spawn(async move { look_up(&member).await });
        }
        while running.join_next().await.is_some() {}
    }

    /// Starts what is due; when to come again.
    fn begin_what_is_due(
        &self,
        running: &mut JoinSet<Found>,
        lookups: &mut BTreeMap<UpstreamId, Lookup>,
    ) -> Instant {
        let (now, here) = ((self.clock)(), Instant::now());
        let mut state = lock(&self.state);
        for id in state.group.take_due_checks(now) {
            if let Some(member) = state.members.get(&id) {
                let version = state.settings.proxy_protocol;
                let way = Way::of(member, version.map(|version| version.header(None)));
                let how = state.settings.check.clone();
                running.spawn(async move { Found::Sign(id, check(&way, &how).await) });
            }
        }
        lookups.retain(|id, _| state.members.contains_key(id));
        let mut wake = here + LONG;
        for (&id, member) in &state.members {
            let Endpoint::Name(..) = member.endpoint else {
                continue;
            };
            match *lookups.entry(id).or_insert(Lookup::Due(here)) {
                Lookup::Due(at) if at <= here => {
                    lookups.insert(id, Lookup::Running);
                    let member = Arc::clone(member);
                    running.spawn(async move { Found::Addresses(id, look_up(&member).await) });
                }
                Lookup::Due(at) => wake = wake.min(at),
                Lookup::Running => {}
            }
        }
        match state.group.next_deadline() {
            Some(deadline) => wake.min(here + deadline.since(now)),
            None => wake,
        }
    }

    fn note_check(&self, id: UpstreamId, sign: Sign) {
        let now = (self.clock)();
        lock(&self.state).group.checked(now, id, sign);
        // One that came back has room for those who wait.
        self.room.notify_waiters();
    }
}

async fn check(way: &Way, how: &CheckSettings) -> Sign {
    match timeout(how.timeout, is_well(way, how)).await {
        Ok(Some(())) => Sign::Success,
        Ok(None) | Err(_) => Sign::Failure,
    }
}

async fn is_well(way: &Way, how: &CheckSettings) -> Option<()> {
    let mut sender = dial(way).await.ok()?;
    let Some(path) = &how.path else {
        return Some(());
    };
    let mut request = Request::new(Upload::None);
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    let host = HeaderValue::try_from(&how.host).ok()?;
    request.headers_mut().insert(HOST, host);
    let name = HeaderValue::from_static("levee-health-check");
    request.headers_mut().insert(USER_AGENT, name);
    let response = sender.send_request(request).await.ok()?;
    (response.status().as_u16() < 400).then_some(())
}

/// Where the member's name leads. Where it leads nowhere, the old addresses stay.
async fn look_up(member: &Member) -> Result<(), ()> {
    let Endpoint::Name(host, port) = &member.endpoint else {
        return Ok(());
    };
    let found = timeout(LOOKUP_MAX, tokio::net::lookup_host((host.as_str(), *port))).await;
    let mut addresses: Vec<_> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            tracing::warn!("the upstream {host} cannot be found: {error}");
            return Err(());
        }
        Err(_) => {
            tracing::warn!("the upstream {host} cannot be found: no answer from the resolver");
            return Err(());
        }
    };
    // Resolvers turn the order with each answer; that is no change.
    addresses.sort_unstable();
    addresses.dedup();
    match addresses.is_empty() {
        true => Err(()),
        false => {
            member.set_addresses(addresses.into());
            Ok(())
        }
    }
}
