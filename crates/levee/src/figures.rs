//! From what the Brain thinks and the cores counted to the one `Status` that every page shows.
//!
//! Only arithmetic: differences into rates, monotonic time into Unix seconds, types into text.

mod help;
mod hot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use levee_control::{
    BrainView, CallView, Candidate, EndingView, OriginPhase, OriginRoute, Parameters, PhaseName,
    RescueView, Thresholds, Tier, UpstreamView,
};
use levee_net::Clock;
use levee_observe::{
    AliasNamesStatus, CallStatus, CertificateTrouble, CopyStatus, CrawlerStatus, Decision,
    DrillStatus, Http2Status, KeptAlias, Latency, Level, Lifetime, LinkStatus, Peer, Rates,
    RegistryStatus, Status, TlsStatus, UpstreamStatus,
};
use levee_proxy::{Comebacks, CrawlerSample, FetchCounters, Fetcher, Sample, SentBack};
use levee_trust::Role;
use levee_vocab::{AliasHttps, ByteRate, LinkId, Timestamp};

use crate::integrity::IntegrityOffice;
use crate::replicator::CopyCounts;
use crate::sampler::Sampler;

/// What does not change while the server runs, and where the rest is asked for.
pub struct Figures {
    /// Name and port of the site.
    pub site: String,
    /// The cache.
    pub fetcher: Fetcher,
    /// The site's upstreams.
    pub upstreams: std::sync::Arc<levee_proxy::Upstreams>,
    /// Certificates in force, where visitors may come by HTTPS.
    pub https: Option<std::sync::Arc<crate::https::Https>>,
    /// How it stands with certificates that are ordered.
    pub ordered: std::sync::Arc<levee_net::Shared<Vec<levee_observe::CertificateStatus>>>,
    /// The access log, for what it lost and took over.
    pub log: levee_observe::AccessLog,
    /// Lines that rescue servers handed over: taken and refused.
    pub handed_over: std::sync::Arc<crate::log_take_over::Counts>,
    /// What rescue servers said to purges.
    pub purge_answers: std::sync::Arc<crate::purge_report::PurgeAnswers>,
    /// What became of copies that we had made.
    pub copies: std::sync::Arc<CopyCounts>,
    /// The site's name in DNS, where it is kept.
    pub dns: Option<std::sync::Arc<crate::dns::Dns>>,
    /// Who signs, permits and expels; none where the site stands alone.
    pub integrity: Option<Arc<IntegrityOffice>>,
    /// Whom we trust.
    pub trust: std::sync::Arc<crate::trust::Trust>,
    /// When the process started.
    pub started: Timestamp,
}

/// How aliases are found, with the domain in which they lie.
fn alias_names(surroundings: &Surroundings<'_>) -> Option<AliasNamesStatus> {
    let mut names = surroundings.alias_names.clone()?;
    names.domain = surroundings.parameters.alias_domain.to_string();
    Some(names)
}

/// What the figures need beside the Brain and the counters.
pub struct Surroundings<'a> {
    /// Settings in force.
    pub parameters: &'a Parameters,
    /// Whether B is configured.
    pub configured_link: bool,
    /// How it stands with the registry.
    pub registry: RegistryStatus,
    /// How aliases are found in DNS; none where there is no community.
    pub alias_names: Option<AliasNamesStatus>,
    /// Rescue messages refused.
    pub rescue_messages_refused: u64,
    /// Why the state folder could not be written the last time; empty where it could.
    pub state_trouble: String,
}

impl Figures {
    /// The status after a control interval.
    pub fn status(
        &self,
        view: &BrainView,
        sampler: &Sampler,
        surroundings: &Surroundings<'_>,
    ) -> Status {
        let now = Clock.now();
        let calendar = Calendar::at(now);
        let parameters = surroundings.parameters;
        let candidates = self.candidates(view);
        let peers = |views: &[RescueView]| {
            views
                .iter()
                .map(|view| peer(view, sampler, &calendar))
                .collect::<Vec<_>>()
        };
        let level = |&(resource, level): &(levee_vocab::Resource, f64)| Level {
            resource: resource.to_string(),
            level,
        };
        Status {
            site: self.site.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now: calendar.unix(now),
            uptime: now.since(self.started).as_secs_f64(),
            state: view.state.to_string(),
            ready: view.phase != PhaseName::Drained,
            lost_cores: sampler.total().lost_cores,
            link: self.link(sampler, surroundings),
            levels: view.levels.iter().map(level).collect(),
            thresholds: shares(&parameters.thresholds),
            redirect_threshold: view.redirect_threshold,
            calm_intervals: view.calm_intervals,
            rates: rates(sampler),
            lifetime: self.lifetime(sampler, surroundings),
            rescue_servers: peers(&view.rescue_servers),
            origins: origins(view, sampler, &calendar),
            kept_aliases: kept_aliases(&sampler.plan().hosts.origins),
            candidates: offers(&candidates),
            candidates_https: with_https(&candidates),
            call: call(view.call),
            registry: surroundings.registry.clone(),
            hot: hot::urls(view, sampler),
            hot_resources: hot::counts(view),
            decisions: decisions(view, &calendar),
            latency: latency(sampler),
            tls: self.tls(sampler),
            certificates: self.ordered.with(|all| all.clone()),
            certificate_troubles: self.certificate_troubles(),
            http2: http2(sampler),
            crawlers: crawlers(sampler),
            cache_bytes: self.fetcher.cache_bytes(),
            connections: sampler.connections(),
            waiting: sampler.total().waiting,
            upstreams: self.upstreams.view().iter().map(upstream).collect(),
            drill: drill(view, &calendar),
            integrity: self.integrity.as_ref().map(|office| office.status()),
            dns: self.dns.as_ref().map(|dns| dns.status()),
            help: self.help(view, surroundings, &calendar),
            trust: self.trust.status(Role::Site),
            alias_names: alias_names(surroundings),
            mesh: None,
        }
    }

    fn tls(&self, sampler: &Sampler) -> Option<TlsStatus> {
        let https = self.https.as_ref()?;
        let handshakes = sampler.total().handshakes;
        Some(TlsStatus {
            handshakes_full: handshakes.full,
            handshakes_resumed: handshakes.resumed,
            handshakes_failed: handshakes.failed,
            handshakes_tls12: handshakes.tls12,
            handshakes_tls13: handshakes.tls13,
            certificate_expires: https.first_expiry(),
        })
    }

    /// Who could be asked, best first: neither who helps already, nor who is no member, which the
    /// Brain learns with its next search.
    fn candidates(&self, view: &BrainView) -> Vec<Candidate> {
        let helps = |one: &Candidate| {
            let mut helpers = view.rescue_servers.iter();
            helpers.any(|helper| helper.peer.host == one.site.host)
        };
        let asked = view.candidates.iter().filter(|one| !helps(one));
        asked
            .filter(|one| self.trust.may_be_asked(&one.site.host))
            .cloned()
            .collect()
    }

    fn certificate_troubles(&self) -> Vec<CertificateTrouble> {
        let https = self.https.iter();
        https
            .flat_map(|https| https.troubles(SystemTime::now()))
            .collect()
    }

    fn link(&self, sampler: &Sampler, surroundings: &Surroundings<'_>) -> LinkStatus {
        let carried = sampler.total().link.unwrap_or_default();
        LinkStatus {
            capacity: surroundings.parameters.link.as_bytes(),
            configured: surroundings.configured_link,
            usable: surroundings.parameters.usable_rate().as_bytes(),
            carried: carried.carried,
            peak: carried.peak,
            backlog: carried.backlog,
        }
    }

    fn lifetime(&self, sampler: &Sampler, surroundings: &Surroundings<'_>) -> Lifetime {
        let total = sampler.total();
        let counters = self.fetcher.counters();
        let fetch_errors = counters.errors_total();
        let FetchCounters {
            hits,
            stale_hits,
            misses,
            collapsed,
            fetches,
            early_renewals,
            purges,
            purged,
            home_asks,
            home_answers,
            home_exceptions,
            signatures,
            copies,
            copy_bytes,
            ..
        } = counters;
        Lifetime {
            requests: total.requests,
            bytes: total.bytes,
            own_requests: total.own_requests,
            own_bytes: total.own_bytes,
            rescue_requests: total.rescue_requests,
            rescue_bytes: total.rescue_bytes,
            redirects: total.redirects,
            redirect_bytes: total.redirect_bytes,
            fetches_served: total.fetches_served,
            refused: total.refused,
            dropped: total.dropped,
            withheld: total.withheld,
            evicted: total.evicted,
            bad_requests: total.bad_requests,
            cache_hits: hits + stale_hits,
            cache_misses: misses,
            fetches,
            collapsed,
            fetch_errors,
            home_asks,
            home_answers,
            sent_back: sent_back(total),
            comebacks: comebacks(total),
            kept_visits: total.kept_visits,
            home_exceptions: told(home_exceptions),
            signatures: told(signatures),
            copies: self.copies(copies, copy_bytes),
            rescue_messages_refused: surroundings.rescue_messages_refused,
            log_lines_lost: self.log.lost() + total.log_lines_lost,
            log_lines_left_out: self.log.hand_over().left_out(),
            log_lines_taken_over: self.handed_over.taken(),
            log_lines_refused: self.handed_over.refused(),
            redirects_at_risk: sampler.redirects_at_risk(),
            early_renewals,
            purges,
            purged_objects: purged,
            purges_confirmed: self.purge_answers.confirmed(),
            purges_unconfirmed: self.purge_answers.unconfirmed(),
        }
    }
}

fn sent_back(total: &Sample) -> BTreeMap<String, u64> {
    let SentBack {
        missing,
        busy,
        over,
    } = total.sent_back;
    by_label([("missing", missing), ("busy", busy), ("over", over)])
}

fn comebacks(total: &Sample) -> BTreeMap<String, u64> {
    let Comebacks {
        believed,
        doubtful,
        unsigned,
        returned,
    } = total.comebacks;
    by_label([
        ("believed", believed),
        ("doubtful", doubtful),
        ("unsigned", unsigned),
        ("returned", returned),
    ])
}

fn by_label<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts
        .map(|(label, count)| (label.to_owned(), count))
        .collect()
}

impl Figures {
    /// Copies that were made here, and those that we had made.
    fn copies(&self, taken: BTreeMap<&'static str, u64>, taken_bytes: u64) -> CopyStatus {
        let sent = self.copies.read();
        CopyStatus {
            taken: told(taken),
            taken_bytes,
            sent: told(sent.by_end()),
            sent_bytes: sent.bytes,
        }
    }
}

/// Counts by their names.
fn told(counts: BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn http2(sampler: &Sampler) -> Http2Status {
    let total = sampler.total();
    Http2Status {
        connections: total.http2_accepted,
        requests: total.http2_requests,
        streams: total.http2_streams,
    }
}

fn drill(view: &BrainView, calendar: &Calendar) -> Option<DrillStatus> {
    let drill = view.drill.as_ref()?;
    Some(DrillStatus {
        site: drill.site.to_string(),
        own: view.phase == PhaseName::Drilling,
        ends: calendar.unix(drill.ends),
    })
}

fn call(view: CallView) -> CallStatus {
    let (state, resting) = match view {
        CallView::NotCalled => ("", 0),
        CallView::Asking => ("asking", 0),
        CallView::NobodyLeft { resting } => ("nobody_left", resting as u64),
    };
    CallStatus {
        state: state.to_owned(),
        resting,
    }
}

/// What they offer, best first.
fn offers(candidates: &[Candidate]) -> Vec<(String, u64)> {
    let offer = |one: &Candidate| (one.site.to_string(), one.free.as_bytes());
    candidates.iter().map(offer).collect()
}

/// Whether the aliases of these answer by HTTPS, of those that say so.
fn with_https(candidates: &[Candidate]) -> BTreeMap<String, bool> {
    let said = candidates.iter().filter_map(|candidate| {
        let site = candidate.site.to_string();
        match candidate.https {
            AliasHttps::Unknown => None,
            AliasHttps::No => Some((site, false)),
            AliasHttps::Yes => Some((site, true)),
        }
    });
    said.collect()
}

fn crawlers(sampler: &Sampler) -> CrawlerStatus {
    let CrawlerSample {
        by_name,
        by_behaviour,
        own_bytes,
        rescue_bytes,
        put_off,
        closed,
        blocks,
        connections: _,
    } = sampler.total().crawlers;
    let crawl = sampler.plan().crawl;
    CrawlerStatus {
        by_name,
        by_behaviour,
        bytes: own_bytes + rescue_bytes,
        put_off,
        closed,
        rate: crawl.map_or(0, |crawl| crawl.pages.as_bytes()),
        blocks,
    }
}

fn rates(sampler: &Sampler) -> Rates {
    let load = sampler.load();
    let seconds = sampler.elapsed().as_secs_f64().max(1e-3);
    let a_second = |count: u64| count as f64 / seconds;
    let bytes = |count: u64| a_second(count) as u64;
    let redirects = load.redirects.values();
    let (mut cost, mut files, mut redirected) = (0, 0, 0);
    for traffic in redirects {
        cost += traffic.bytes;
        files += traffic.file_bytes;
        redirected += traffic.requests;
    }
    Rates {
        out: bytes(load.bytes_out()),
        own: bytes(load.own.bytes),
        rescue: bytes(load.rescue.values().map(|traffic| traffic.bytes).sum()),
        redirect: bytes(cost),
        redirected_files: bytes(files),
        requests: a_second(
            sampler
                .total()
                .requests
                .saturating_sub(sampler.before().requests),
        ),
        redirects: a_second(redirected),
        refusals: a_second(load.refused),
    }
}

fn upstream(view: &UpstreamView) -> UpstreamStatus {
    UpstreamStatus {
        name: view.name.clone(),
        backup: view.tier == Tier::Backup,
        up: view.ejected_until.is_none(),
        outstanding: u64::from(view.outstanding),
        requests: view.requests,
        failures: view.failures,
        ejections: view.ejections,
    }
}

/// Those that we help, and those whose last visitors we serve.
fn origins(view: &BrainView, sampler: &Sampler, calendar: &Calendar) -> Vec<Peer> {
    let helped = view.origins.iter();
    let helped = helped.map(|one| peer(one, sampler, calendar));
    let ended = view.ending.iter();
    let ended = ended.map(|one| ending(one, sampler, calendar));
    helped.chain(ended).collect()
}

fn peer(view: &RescueView, sampler: &Sampler, calendar: &Calendar) -> Peer {
    let served = sampler.since_rescue_began(view.link);
    Peer {
        site: view.peer.to_string(),
        alias: view.alias.to_string(),
        since: calendar.unix(view.since),
        rate: view.rate.as_bytes(),
        used: view.used.as_bytes(),
        requests: served.requests,
        bytes: match view.link {
            LinkId::Outbound(_) => served.file_bytes,
            LinkId::Inbound(_) => served.bytes,
        },
        phase: match view.orphaned_until {
            None => "live".to_owned(),
            Some(_) => "orphaned".to_owned(),
        },
        orphaned_until: view
            .orphaned_until
            .map_or(0.0, |until| calendar.unix(until)),
    }
}

/// An origin whose rescue is over, and whose last visitors are still served: what they get counts
/// on.
fn ending(view: &EndingView, sampler: &Sampler, calendar: &Calendar) -> Peer {
    let served = sampler.since_rescue_began(view.link);
    let load = sampler.load();
    let last = load.rescue.get(&view.link).copied().unwrap_or_default();
    Peer {
        site: view.peer.to_string(),
        alias: view.alias.to_string(),
        since: calendar.unix(view.since),
        used: ByteRate::of(last.bytes, load.elapsed).as_bytes(),
        requests: served.requests,
        bytes: served.bytes,
        phase: "ending".to_owned(),
        ..Peer::default()
    }
}

/// Aliases under which nobody is served any more: they lead back to their origins.
fn kept_aliases(origins: &[Arc<OriginRoute>]) -> Vec<KeptAlias> {
    let is_kept = |origin: &&Arc<OriginRoute>| match origin.phase {
        OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => true,
        OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => false,
    };
    let kept = origins.iter().filter(is_kept).map(|origin| KeptAlias {
        alias: origin.alias.to_string(),
        site: origin.origin.to_string(),
    });
    kept.collect()
}

fn decisions(view: &BrainView, calendar: &Calendar) -> Vec<Decision> {
    let told = |entry: &levee_control::Entry| Decision {
        at: calendar.unix(entry.at),
        text: entry.reason.to_string(),
    };
    // The page shows the newest first; more than fifty nobody reads.
    view.decisions.iter().rev().take(50).map(told).collect()
}

fn shares(thresholds: &Thresholds) -> [f64; 4] {
    let Thresholds {
        low,
        alert,
        high,
        cutoff,
    } = *thresholds;
    [low, alert, high, cutoff]
}

fn latency(sampler: &Sampler) -> Latency {
    let counts = sampler.total().latency.since(&sampler.before().latency);
    let seconds = |share| counts.quantile(share).unwrap_or_default().as_secs_f64();
    Latency {
        p50: seconds(0.5),
        p99: seconds(0.99),
    }
}

/// Monotonic time as a calendar knows it, fixed anew each interval so that a clock that was set
/// right shows the right time at once.
struct Calendar {
    now: Timestamp,
    unix: Duration,
}

impl Calendar {
    fn at(now: Timestamp) -> Self {
        // Before 1970 the clock is wrong, and so is every date shown.
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self { now, unix }
    }

    fn unix(&self, at: Timestamp) -> f64 {
        self.unix.as_secs_f64() + at.as_seconds() - self.now.as_seconds()
    }
}
