//! What User-Agents say of themselves, remembered: to look for words in one costs more than the
//! rest of a hit's decisions, and most visitors use one of a few programs.
//!
//! A User-Agent is known again by its bytes. Its hash only finds the place: anybody can make up
//! one with the hash of another, and must not have its readers taken for crawlers.

use std::sync::Arc;

use levee_control::Named;

use super::CrawlerRules;

/// Places; a power of two. Programs that share one are judged in turn.
const PLACES: usize = 128;
/// Longer ones are judged each time. Browsers' have half of it.
const AGENT_BYTES_MAX: usize = 252;

/// See the file header.
#[derive(Debug)]
pub(super) struct Memo {
    /// By which the names were judged.
    rules: Option<Arc<CrawlerRules>>,
    places: Box<[Place]>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    agent: [u8; AGENT_BYTES_MAX],
    length: u16,
    /// None where the place is free.
    named: Option<Named>,
}

impl Place {
    const FREE: Self = Self {
        agent: [0; AGENT_BYTES_MAX],
        length: 0,
        named: None,
    };
}

impl Memo {
    /// What `agent`, which has this hash, says of itself.
    pub fn judge(&mut self, rules: &Arc<CrawlerRules>, hash: u64, agent: &[u8]) -> Named {
        let knows = self.rules.as_ref();
        if !knows.is_some_and(|known| Arc::ptr_eq(known, rules)) {
            self.places.fill(Place::FREE);
            self.rules = Some(Arc::clone(rules));
        }
        let place = &mut self.places[hash as usize & (PLACES - 1)];
        let known = &place.agent[..usize::from(place.length)];
        if let Some(named) = place.named
            && known == agent
        {
            return named;
        }
        let named = rules.names.judge(agent);
        if let Some(kept) = place.agent.get_mut(..agent.len()) {
            kept.copy_from_slice(agent);
            place.length = agent.len() as u16;
            place.named = Some(named);
        }
        named
    }
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            rules: None,
            places: vec![Place::FREE; PLACES].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use levee_control::CrawlerNames;

    use super::*;
    use crate::crawlers::Behaviour;

    fn rules(listed: &[String]) -> Arc<CrawlerRules> {
        Arc::new(CrawlerRules {
            names: CrawlerNames::new(listed, &[]),
            by_behaviour: Behaviour::Ignored,
            allowed: Vec::new(),
            fetches_max: 1,
        })
    }

    #[test]
    fn an_agent_is_judged_again_when_the_rules_change() {
        let mut memo = Memo::default();
        let (before, after) = (rules(&[]), rules(&["curl".to_owned()]));
        assert_eq!(memo.judge(&before, 7, b"curl/8"), Named::Nobody);
        assert_eq!(memo.judge(&before, 7, b"curl/8"), Named::Nobody);
        assert_eq!(memo.judge(&after, 7, b"curl/8"), Named::Crawler);
        assert_eq!(memo.judge(&after, 8, b""), Named::Nobody);
    }

    #[test]
    fn who_makes_up_the_hash_of_another_is_not_taken_for_him() {
        let mut memo = Memo::default();
        let rules = rules(&[]);
        for _ in 0..2 {
            assert_eq!(memo.judge(&rules, 1, b"GPTBot"), Named::Crawler);
            assert_eq!(memo.judge(&rules, 1, b"Firefox"), Named::Nobody);
        }
    }

    #[test]
    fn a_very_long_agent_is_judged_each_time_and_pushes_nobody_out() {
        let mut memo = Memo::default();
        let rules = rules(&[]);
        let long = [b"Firefox ".repeat(50), b"GPTBot".to_vec()].concat();
        for _ in 0..2 {
            assert_eq!(memo.judge(&rules, 1, b"Firefox"), Named::Nobody);
            assert_eq!(memo.judge(&rules, 1, &long), Named::Crawler);
        }
    }
}
