//! What was found: the objects of a page, each once, in its order, and no more than the bound.

use std::collections::BTreeSet;

use crate::limits::OBJECTS_MAX;

/// An object that a browser loads with a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// Host, and the port where it is not the scheme's own: what goes into the Host header.
    pub authority: String,
    /// Path and query, as a browser sends them.
    pub target: String,
    /// What the page wants it for.
    pub object_use: Use,
}

/// What a page wants an object for. The order is that in which a browser needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A style sheet. It names further objects.
    Style,
    /// A script.
    Script,
    /// A font.
    Font,
    /// An image, also of a style sheet, of an icon or of a video before it plays.
    Image,
    /// A page inside of the page. It has objects of its own.
    Frame,
    /// Sound or video. Browsers ask for parts of it.
    Media,
    /// Anything else that is loaded: a manifest, data of a script.
    Other,
}

/// The objects of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Each once, in the order of the page.
    pub objects: Vec<Object>,
    /// Whether these are all.
    pub extent: Extent,
}

/// Whether a list has all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    Whole,
    /// As many as are kept of one page.
    Cut,
}

impl Object {
    /// Host and path, as hot spots are named: without the query.
    pub fn resource(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        format!("{}{path}", self.authority)
    }
}

/// Collects objects.
#[derive(Debug)]
pub struct Collector {
    found: Found,
    known: BTreeSet<String>,
}

impl Collector {
    pub const fn new() -> Self {
        Self {
            found: Found {
                objects: Vec::new(),
                extent: Extent::Whole,
            },
            known: BTreeSet::new(),
        }
    }

    /// Whether there is no room for more, so that looking is in vain.
    pub fn is_full(&self) -> bool {
        self.found.extent == Extent::Cut
    }

    pub fn add(&mut self, object: Object) {
        let name = format!("{}{}", object.authority, object.target);
        if self.known.contains(&name) {
            return;
        }
        if self.found.objects.len() == OBJECTS_MAX {
            self.found.extent = Extent::Cut;
            return;
        }
        self.known.insert(name);
        self.found.objects.push(object);
    }

    pub fn into_found(self) -> Found {
        self.found
    }
}
