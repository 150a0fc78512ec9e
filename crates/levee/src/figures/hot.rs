//! Hot URLs: how often each was asked for in the last interval, and what has been done about it.

use levee_control::{BrainView, Heat, HotView, ResourceView};
use levee_observe::HotUrl;
use levee_vocab::LinkId;

use crate::sampler::Sampler;

/// More hot URLs nobody reads.
const HOT_URLS: usize = 20;

/// Those that were asked for, most first; then those that are copied all the same.
pub(super) fn urls(view: &BrainView, sampler: &Sampler) -> Vec<HotUrl> {
    let seconds = sampler.elapsed().as_secs_f64().max(1e-3);
    // What rescue servers bring us is no page that anybody wants to see.
    let is_page = |resource: &&ResourceView| {
        let path = resource.url.split_once('/').map_or("", |(_, path)| path);
        resource.recent > 0 && !path.starts_with(".levee/")
    };
    let asked: Vec<&ResourceView> = sampler.resources().iter().filter(is_page).collect();
    let is_quiet = |hot: &&HotView| !asked.iter().any(|one| one.url == hot.url);
    let quiet = view.hot.iter().filter(is_quiet);
    let rates = asked
        .iter()
        .map(|one| (&one.url, one.recent as f64 / seconds));
    let rates = rates.chain(quiet.map(|hot| (&hot.url, 0.0)));
    let told = |(url, rate): (&String, f64)| {
        let hot = view.hot.iter().find(|hot| hot.url == *url);
        HotUrl {
            url: url.clone(),
            rate,
            heat: hot.map_or("", |hot| hot.heat.name()).to_owned(),
            holders: hot.map_or(Vec::new(), |hot| names(view, &hot.holders)),
        }
    };
    rates.take(HOT_URLS).map(told).collect()
}

/// Resources that are copied, and those of them whose visitors are redirected.
pub(super) fn counts(view: &BrainView) -> [u64; 2] {
    let redirected = view.hot.iter().filter(|hot| hot.heat == Heat::Redirected);
    [view.hot.len() as u64, redirected.count() as u64]
}

fn names(view: &BrainView, links: &[LinkId]) -> Vec<String> {
    let servers = view.rescue_servers.iter();
    let holders = servers.filter(|server| links.contains(&server.link));
    holders.map(|server| server.peer.to_string()).collect()
}
