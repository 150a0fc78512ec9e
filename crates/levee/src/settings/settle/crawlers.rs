//! The table `[crawlers]`: who is one, and what they get.

use levee_control::CrawlerNames;
use levee_proxy::{Behaviour, CrawlerRules};
use levee_vocab::AddressBlock;

use super::values::Values;

/// The table `[crawlers]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlerSettings {
    /// How they are told from readers.
    pub recognition: Recognition,
    /// Most of D_out that they get, 0 to 1.
    pub share: f64,
    /// Words of the User-Agent of further crawlers.
    pub names: Vec<String>,
    /// Words of the User-Agent of crawlers that are treated as readers.
    pub allowed_names: Vec<String>,
    /// Addresses of visitors who are readers, whatever they do.
    pub allowed: Vec<AddressBlock>,
}

/// How crawlers are told from readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// By what they say, and by what they do.
    All,
    /// By what they say.
    Names,
    /// Not at all.
    Off,
}

pub(super) fn crawlers(values: &Values<'_>) -> CrawlerSettings {
    CrawlerSettings {
        recognition: match values.text("crawlers.recognition").as_str() {
            "names" => Recognition::Names,
            "off" => Recognition::Off,
            _ => Recognition::All,
        },
        share: values.share("crawlers.share"),
        names: values.words("crawlers.names"),
        allowed_names: values.words("crawlers.allowed_names"),
        allowed: values.blocks("crawlers.allowed"),
    }
}

impl CrawlerSettings {
    /// What the cores go by, where of `places` requests at the upstreams each core has its part;
    /// none where everybody is a reader.
    pub fn rules(&self, places: usize, cores: usize) -> Option<CrawlerRules> {
        let by_behaviour = match self.recognition {
            Recognition::All => Behaviour::Watched,
            Recognition::Names => Behaviour::Ignored,
            Recognition::Off => return None,
        };
        let fetches = places as f64 * self.share / cores.max(1) as f64;
        Some(CrawlerRules {
            names: CrawlerNames::new(&self.names, &self.allowed_names),
            by_behaviour,
            allowed: self.allowed.clone(),
            fetches_max: (fetches as usize).max(1),
        })
    }
}
