//! What a hot page embeds: read from our own cores, so that nothing leaves for it, and looked
//! through as a browser would. Style sheets are followed once, because they name fonts and images.

use http::{Method, header};
use levee_page::{Finder, Object, Place, Use};
use levee_proxy::Errand;

use super::look::Seen;
use super::push::{Errands, target_of};
use super::{CopiedSite, Member};

/// Most objects of one page that are copied with it: that of hotspot-avoidance had over twenty
/// images.
const OBJECTS_MAX: usize = 64;
/// Most style sheets that are read.
const SHEETS_MAX: usize = 8;

impl Errands {
    /// The objects that a browser loads with the page at `url`, in the order in which it needs
    /// them. They are named as hot resources are, but with the query: without it, each would be
    /// another object. None where it is no page, or cannot be read now.
    ///
    /// Cancel safety: as nothing is changed, it may be dropped at any point.
    pub async fn embedded_in(&self, url: &str, member: &Member) -> Vec<String> {
        let Ok(target) = target_of(url) else {
            return Vec::new();
        };
        let mut objects = self.named_by(target, member).await;
        let sheets = objects.iter().filter(|one| one.object_use == Use::Style);
        let sheets: Vec<_> = sheets.take(SHEETS_MAX).cloned().collect();
        for sheet in sheets {
            for object in self.named_by(&sheet.target, member).await {
                if !objects.iter().any(|known| known.target == object.target) {
                    objects.push(object);
                }
            }
        }
        // Of these browsers ask for parts, which copies are not made for.
        objects.retain(|object| object.object_use != Use::Media);
        objects.sort_by_key(|object| object.object_use);
        objects.truncate(OBJECTS_MAX);
        let host = self.site().web.host;
        let named = objects.iter();
        named
            .map(|object| format!("{host}{}", object.target))
            .collect()
    }

    async fn named_by(&self, target: &str, member: &Member) -> Vec<Object> {
        let errand = Errand::Look(member.address.ip());
        match self.read(Method::GET, target, errand, None).await {
            Ok(seen) => self.names_in(target, &seen),
            Err(trouble) => {
                tracing::debug!(target, why = trouble.why, "not looked through");
                Vec::new()
            }
        }
    }

    fn names_in(&self, target: &str, seen: &Seen) -> Vec<Object> {
        let place = self.place(target);
        let Some(mut finder) = place.and_then(|place| Finder::new(seen.content_type(), place))
        else {
            return Vec::new();
        };
        for link in seen.headers.get_all(header::LINK) {
            finder.link(link.to_str().unwrap_or_default());
        }
        finder.write(&seen.body);
        finder.finish().objects
    }

    /// Where a response of ours stands. A page may name itself by either scheme.
    pub(super) fn place(&self, target: &str) -> Option<Place> {
        let CopiedSite {
            web, https, names, ..
        } = self.site();
        // Where a proxy before us speaks HTTPS, it is at the usual port.
        let (port, secure) = (web.port, https.unwrap_or(443));
        let names = names.iter().chain([&web.host]);
        let both = |name| {
            [
                format!("http://{name}:{port}"),
                format!("https://{name}:{secure}"),
            ]
        };
        let own: Vec<_> = names.flat_map(both).collect();
        let own: Vec<_> = own.iter().map(String::as_str).collect();
        Place::new(&format!("http://{web}{target}"), &own).ok()
    }
}
