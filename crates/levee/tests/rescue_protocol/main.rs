//! Rescue links over real sockets: the paper's examples as typed into netcat, every kind of
//! misbehaviour, and the limits (R7).
#![allow(clippy::unwrap_used)]

mod calls;
mod examples;
mod misbehaviour;
mod places;
mod purges;
mod stage;

use levee_control::{Output, Reason, ShutdownCause};
use levee_vocab::{ByteRate, LinkId};

const SOS: &str = "1 SOS www.origin.com 1.2.3.4 8080 600";
const OUT: LinkId = LinkId::Outbound(1);

fn rate(kilobytes: u64) -> ByteRate {
    ByteRate::from_kilobytes(kilobytes)
}

fn reject(link: LinkId) -> Output {
    let origin = "www.origin.com".parse().unwrap();
    let why = "for the test";
    let reason = Reason::SosRejected { origin, why };
    Output::RejectSos { link, reason }
}

fn shut_down(link: LinkId) -> Output {
    let cause = ShutdownCause::CompleteRelease;
    Output::ShutDown { link, cause }
}
