//! Between the words of the wire and the words of the Brain. Nothing is decided here.

use std::net::IpAddr;

use levee_control::{Input, LinkLoss, Rejection, RescueCall};
use levee_vocab::{FetchKey, LinkId, Peers};
use levee_wire::rescue::{Offer, Rate, ShutdownWord, Sos, VERSION};
use levee_wire::{Event, FaultKind, Refusal};

use super::Saying;

/// The SOS of a call, with the key that the rescue server shall show, and our port for HTTPS.
pub(super) fn sos(call: RescueCall, key: FetchKey, tls: Option<u16>) -> Sos {
    Sos {
        origin: call.origin,
        address: call.address,
        idle_max: call.idle_max,
        key: Some(key),
        ttl: call.ttl,
        beats: call.beats,
        drill: call.drill,
        name_ttl: call.name_ttl,
        misses: call.misses,
        tls,
        version: VERSION,
        proof: None,
    }
}

/// What an SOS says to the Brain.
pub(super) fn call(sos: Sos) -> RescueCall {
    RescueCall {
        origin: sos.origin,
        address: sos.address,
        idle_max: sos.idle_max,
        key: sos.key,
        ttl: sos.ttl,
        beats: sos.beats,
        drill: sos.drill,
        name_ttl: sos.name_ttl,
        misses: sos.misses,
        tls: sos.tls,
    }
}

/// What the Brain wants said, as an input of the session. `address` is our own, `tls` the port at
/// which aliases answer by HTTPS; without the key of our rescue servers nothing is said of them.
pub(super) fn said(
    saying: Saying,
    (address, tls): (IpAddr, Option<u16>),
    peers_key: Option<FetchKey>,
) -> Option<levee_wire::Input<'static>> {
    Some(match saying {
        Saying::Accept { alias, rate } => levee_wire::Input::SosAccepted(Offer {
            alias,
            address,
            rate,
            // The Brain tells a rate in every interval; the session keeps the promise to itself if
            // the caller did not ask for it.
            beats: true,
            // Kept only if the SOS says that it is one.
            drill: true,
            tls,
        }),
        Saying::Reject => levee_wire::Input::SosRejected,
        Saying::Rate(rate) => levee_wire::Input::RateChanged(rate),
        Saying::Purge(purge) => levee_wire::Input::PurgeDecided(purge),
        Saying::Peers(members) => {
            let key = peers_key?;
            levee_wire::Input::PeersDecided(Peers { key, members })
        }
        Saying::Report(report) => levee_wire::Input::ReportDecided(report),
        Saying::ShutDown => levee_wire::Input::ShutdownDecided,
    })
}

/// What a session tells, as an input of the Brain, where it is for the Brain. `key` is the one that
/// our SOS carried.
pub(super) fn told(link: LinkId, event: Event, key: FetchKey) -> Option<Input> {
    Some(match event {
        Event::SosReceived(sos) => Input::SosReceived {
            link,
            call: call(sos),
        },
        Event::Accepted(offer) => Input::RescueAccepted {
            link,
            alias: offer.alias,
            address: offer.address,
            rate: offer.rate,
            key,
            beats: offer.beats,
            drill: offer.drill,
            tls: offer.tls,
        },
        Event::NotRescued(refusal) => Input::RescueRefused {
            link,
            rejection: rejection(refusal),
        },
        Event::RateReceived(Rate { redirects, carried }) => Input::RateReceived {
            link,
            rate: redirects,
            carried,
        },
        Event::PeersReceived(peers) => Input::PeersReceived { link, peers },
        Event::AnswerReceived => Input::AnswerReceived { link },
        Event::ShutdownReceived(ShutdownWord::Unsaid) => Input::ShutdownReceived { link },
        Event::ShutdownReceived(ShutdownWord::NotAMember) => Input::LinkLost {
            link,
            loss: LinkLoss::NotAMember,
        },
        Event::Lost(kind) => Input::LinkLost {
            link,
            loss: loss(kind),
        },
        // Purges are no matter of rescue control.
        Event::PurgeReceived(_) | Event::PurgeAnswered(_) => return None,
        // What they say is checked first, in `integrity`.
        Event::PermitReceived(_) | Event::ReportReceived(_) => return None,
    })
}

const fn rejection(refusal: Refusal) -> Rejection {
    match refusal {
        Refusal::Refused => Rejection::Refused,
        Refusal::Unreachable => Rejection::Unreachable,
        Refusal::Garbage => Rejection::Garbage,
    }
}

const fn loss(kind: FaultKind) -> LinkLoss {
    match kind {
        FaultKind::Closed => LinkLoss::Closed,
        FaultKind::Silent => LinkLoss::Silent,
        FaultKind::Garbage => LinkLoss::Garbage,
    }
}
