//! Whom a request is from, and what an upstream hears of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use levee_wire::ProxiedAddresses;

use super::Core;
use crate::connection::Connection;
use crate::connection_fields::ConnectionFields;
use crate::flight::{Place, Purpose, RequestHeaders};
use crate::forwarded::{self, FORWARDED_FIELDS, Hop};
use crate::request::Request;

/// A request's headers as they were sent.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a>(pub &'a [httparse::Header<'a>]);

impl<'a> Sent<'a> {
    /// The values of the field `name`, in order.
    fn values(self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.0.iter();
        let fields = fields.filter(move |field| field.name.eq_ignore_ascii_case(name));
        fields.map(|field| field.value)
    }
}

impl RequestHeaders for Sent<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for header in self.0 {
            if header.name.eq_ignore_ascii_case(name) {
                visit(header.value);
            }
        }
    }
}

impl Core {
    /// The visitor's own address, as far as it can be believed.
    pub(super) fn visitor(&self, connection: &Connection, request: &Request<'_, '_>) -> IpAddr {
        let trusted = self.sites.trusted();
        forwarded::visitor(connection.peer.ip(), trusted, &Sent(request.headers))
    }

    /// The way from the visitor to us.
    pub(super) fn hop<'a>(&'a self, connection: &Connection, request: &Request<'_, 'a>) -> Hop<'a> {
        Hop {
            peer: connection.peer.ip(),
            host: request.authority,
            scheme: request.scheme.as_str(),
            trusted: self.sites.trusted(),
        }
    }

    /// Who the visitor is and where it came to, for an upstream that wants to hear it before each
    /// connection.
    pub(super) fn addresses(
        &self,
        connection: &Connection,
        request: &Request<'_, '_>,
        place: &Place,
    ) -> Option<ProxiedAddresses> {
        match place {
            Place::Upstreams(upstreams) if upstreams.are_told_visitors() => {}
            Place::Upstreams(_) | Place::Address(_) => return None,
        }
        let visitor = self.visitor(connection, request);
        // The port of a visitor behind another proxy is not known.
        let source = match visitor == connection.peer.ip() {
            true => connection.peer,
            false => SocketAddr::new(visitor, 0),
        };
        let ours = connection.socket.descriptor();
        let ours = ours.and_then(|socket| levee_net::local_address(socket).ok());
        let nowhere: IpAddr = match visitor {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let destination = ours.unwrap_or_else(|| (nowhere, 0).into());
        Some(ProxiedAddresses {
            source,
            destination,
        })
    }

    /// The visitor's headers, and who the visitor is. Towards an origin that we rescue the
    /// credentials are left out here already; an application of our own gets them. So are fields of
    /// the visitor's own making: an origin that makes its links by `X-Forwarded-Host` or takes its
    /// path from `X-Original-URL` would write one visitor's wish into the page that all get. What
    /// the visitor's Connection names ends here, before our own fields are added: nobody may have
    /// those taken away, nor have an answer kept under a field that its source never saw.
    pub(super) fn headers(
        &self,
        connection: &Connection,
        request: &Request<'_, '_>,
        purpose: Purpose,
    ) -> Vec<(Bytes, Bytes)> {
        let sent = Sent(request.headers);
        let of_connection = ConnectionFields::of(sent.values("connection"));
        let is_left_out = |name: &str| {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            // We need to know whether trailers are welcome, and whose answer it is.
            if of_connection.contains(name) && !is("te") && !is("host") {
                return true;
            }
            match purpose {
                Purpose::Rescue => {
                    let own_making = name.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x-"));
                    is("cookie") || is("authorization") || is("forwarded") || own_making
                }
                Purpose::Upstream => FORWARDED_FIELDS.iter().any(|field| is(field)),
            }
        };
        let copied = request
            .headers
            .iter()
            .filter(|header| !is_left_out(header.name));
        let mut headers: Vec<(Bytes, Bytes)> = copied
            .map(|header| {
                let name = header.name.to_ascii_lowercase();
                (Bytes::from(name), Bytes::copy_from_slice(header.value))
            })
            .collect();
        if purpose == Purpose::Upstream {
            let hop = self.hop(connection, request);
            headers.extend(hop.fields(&sent));
        }
        headers
    }
}
