//! What User-Agents say of themselves, remembered: to look for words in one costs more than the
//! rest of a hit's decisions, and most visitors use one of a few programs.
//!
//! By hash alone. Whoever makes up two with the same hash has one judged as the other: he could as
//! well have sent the other.

use std::sync::Arc;

use levee_control::Named;

use super::CrawlerRules;

/// Places; a power of two. Programs that share one are judged in turn.
const PLACES: usize = 256;

/// See the file header.
#[derive(Debug)]
pub(super) struct Memo {
    /// By which the names were judged.
    rules: Option<Arc<CrawlerRules>>,
    places: Box<[Option<(u64, Named)>]>,
}

impl Memo {
    /// What `agent`, which has this hash, says of itself.
    pub fn judge(&mut self, rules: &Arc<CrawlerRules>, hash: u64, agent: &[u8]) -> Named {
        let knows = self.rules.as_ref();
        if !knows.is_some_and(|known| Arc::ptr_eq(known, rules)) {
            self.places.fill(None);
            self.rules = Some(Arc::clone(rules));
        }
        let place = &mut self.places[hash as usize & (PLACES - 1)];
        match *place {
            Some((known, named)) if known == hash => named,
            Some(_) | None => {
                let named = rules.names.judge(agent);
                *place = Some((hash, named));
                named
            }
        }
    }
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            rules: None,
            places: vec![None; PLACES].into(),
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
    fn an_agent_is_judged_once_and_again_when_the_rules_change() {
        let mut memo = Memo::default();
        let (before, after) = (rules(&[]), rules(&["curl".to_owned()]));
        assert_eq!(memo.judge(&before, 7, b"curl/8"), Named::Nobody);
        // By hash alone.
        assert_eq!(memo.judge(&before, 7, b"GPTBot"), Named::Nobody);
        assert_eq!(memo.judge(&after, 7, b"curl/8"), Named::Crawler);
        assert_eq!(memo.judge(&after, 8, b""), Named::Nobody);
    }

    #[test]
    fn two_agents_of_one_place_take_turns() {
        let mut memo = Memo::default();
        let rules = rules(&[]);
        for _ in 0..2 {
            assert_eq!(memo.judge(&rules, 1, b"GPTBot"), Named::Crawler);
            assert_eq!(memo.judge(&rules, 1 + 256, b"Firefox"), Named::Nobody);
        }
    }
}
