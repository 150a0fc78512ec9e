//! Of the sources of a font that a sheet names together, a browser takes the first that it can
//! read. All of today's read WOFF2, so the others would be copied for nobody.

use crate::found::Object;

/// Sources of one font, until the end of its block.
#[derive(Debug, Default)]
pub struct Fonts {
    sources: Vec<Object>,
}

/// Most sources of one font. Pages that care for the oldest browsers name five.
const SOURCES_MAX: usize = 8;

/// Endings of files, the best first. What only browsers of long ago read is not among them.
const ENDINGS: &[&str] = &[".woff2", ".woff", ""];
const UNREAD: &[&str] = &[".eot", ".svg"];

impl Fonts {
    pub fn add(&mut self, source: Object) {
        if self.sources.len() < SOURCES_MAX {
            self.sources.push(source);
        }
    }

    /// The sources that a browser would take.
    pub fn end(&mut self) -> impl Iterator<Item = Object> + use<> {
        let sources = std::mem::take(&mut self.sources);
        let best = sources.iter().map(rank).min().unwrap_or_default();
        sources
            .into_iter()
            .filter(move |source| best < ENDINGS.len() && rank(source) == best)
    }
}

fn rank(source: &Object) -> usize {
    let path = source.target.split('?').next().unwrap_or_default();
    let has = |ending: &&str| path.to_ascii_lowercase().ends_with(ending);
    match UNREAD.iter().any(&has) {
        true => ENDINGS.len(),
        false => ENDINGS.iter().position(has).unwrap_or_default(),
    }
}
