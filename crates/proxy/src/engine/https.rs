//! Sending visitors who come by HTTP to HTTPS, where the operator wants that.
//!
//! Not sent on are those who cannot follow: our rescue servers, which speak HTTP to their origin,
//! and whoever checks a domain before it gets its certificate (ACME, RFC 8555 section 8.3). Nor
//! is anybody for whose name there is no certificate yet, nor are visitors of aliases: their origin
//! has sent them as they came.

use super::Core;
use super::challenge::is_challenge;
use super::serve::Visit;
use crate::answer::{Answer, Body, Kind};
use crate::connection::{Connection, Introduction};
use crate::redirect::write_to_https;
use crate::request::{LowerName, Request, Scheme};
use crate::settings::Cleartext;
use crate::transport::Privacy;

impl Core {
    /// The port that this visitor of our own site is sent to; none where it is served.
    pub(super) fn https_port(&self, request: &Request<'_, '_>, kind: Kind) -> Option<u16> {
        let Cleartext::Redirected { port } = self.settings.cleartext else {
            return None;
        };
        let may_follow = kind == Kind::Own
            && request.fields.came_by == Scheme::Http
            && request.target.starts_with('/')
            && !is_challenge(request);
        (may_follow && self.has_certificate_for(request.host)).then_some(port)
    }

    /// Notes that `request` came by HTTPS, or is to be answered as if it had.
    pub(super) fn note_scheme(&self, connection: &Connection, request: &mut Request<'_, '_>) {
        if connection.privacy == Privacy::Encrypted || self.stands_for_https(connection, request) {
            request.scheme = Scheme::Https;
            request.fields.came_by = Scheme::Https;
        }
    }

    /// Whether a request by HTTP is for what visitors by HTTPS get: the fetch of a rescue server,
    /// or a look of our own, at a site that sends everybody to HTTPS. What an application says by
    /// HTTP (that one should come by HTTPS) would be of no use to anybody.
    fn stands_for_https(&self, connection: &Connection, request: &Request<'_, '_>) -> bool {
        let Cleartext::Redirected { .. } = self.settings.cleartext else {
            return false;
        };
        let is_inside = connection.introduction == Introduction::Ourselves
            || (request.fields.fetch_key.is_some() && self.fetch_link(request).is_some());
        is_inside && self.has_certificate_for(request.host)
    }

    /// Whether there is a certificate for `host`; or for the site itself, where that name is not
    /// ours. Before there is, nobody is sent to a warning of his browser.
    fn has_certificate_for(&self, host: &str) -> bool {
        let Some(offer) = &self.tls else {
            return false;
        };
        let name = LowerName::of(host);
        match (self.sites.find(name.as_str()), self.sites.sites().first()) {
            (None, Some(site)) => offer.covers(site.name.host.as_str()),
            (Some(_), _) | (None, None) => offer.covers(name.as_str()),
        }
    }

    /// The redirect: 308 keeps the method and the body of a form.
    pub(super) fn redirect_to_https(
        &mut self,
        request: &Request<'_, '_>,
        visit: &Visit,
        site: usize,
        port: u16,
    ) -> Answer {
        let mut head = self.pool.take();
        let own = self.sites.sites().get(site);
        let own = own.map_or("", |site| site.name.host.as_str());
        // A name that is not ours has no certificate of ours either.
        let host = match self.sites.find(request.host) {
            Some(_) => request.host,
            None => own,
        };
        let date = self.date.line();
        write_to_https((host, port), request.target, date, visit.closing, &mut head);
        Answer::new(head, Body::Empty, visit.kind, 308)
    }
}
