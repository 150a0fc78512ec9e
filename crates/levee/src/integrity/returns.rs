//! Whether an origin that had died answers again.
//!
//! While we show what we have of a dead origin, it is asked for its front page now and then. Any
//! answer that is no error of a server in front of it means that it is back: its visitors are sent
//! there again. An origin whose link broke while it lives is found out in the same way, at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Input, OriginPhase, RoutePlan};
use levee_vocab::{LinkId, WebAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::rescue_link::LinkCharge;

/// Between two looks: a visitor who holds the origin's name waits no longer for us to notice.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// An origin that takes longer is no help to its visitors yet.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// What a look costs the link: a head, and the packets of a connection.
const LOOK_BYTES: u64 = 500;

/// Looks until nobody can hear of it any more.
///
/// Cancel safety: it may be dropped at any point.
pub async fn watch_orphans(
    mut plans: watch::Receiver<Arc<RoutePlan>>,
    charge: LinkCharge,
    events: mpsc::Sender<Input>,
) {
    loop {
        let orphans = orphans(&plans.borrow_and_update());
        if orphans.is_empty() {
            if plans.changed().await.is_err() {
                return;
            }
            continue;
        }
        for (link, origin, address) in orphans {
            charge(LOOK_BYTES);
            let is_back = timeout(ANSWER_MAX, answers(&origin, address)).await;
            let returned = Input::OriginReturned { link };
            if is_back.unwrap_or(false) && events.send(returned).await.is_err() {
                return;
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

fn orphans(plan: &RoutePlan) -> Vec<(LinkId, WebAddress, SocketAddr)> {
    let origins = plan.hosts.origins.iter();
    let orphans = origins.filter(|origin| match origin.phase {
        OriginPhase::Orphaned { .. } => true,
        OriginPhase::Live
        | OriginPhase::Ending { .. }
        | OriginPhase::Restored { .. }
        | OriginPhase::Expired { .. } => false,
    });
    orphans
        .map(|origin| (origin.link, origin.origin.clone(), origin.address))
        .collect()
}

/// Whether somebody answers as a web server that works.
async fn answers(origin: &WebAddress, address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return false;
    };
    let request = format!("HEAD / HTTP/1.1\r\nHost: {origin}\r\nConnection: close\r\n\r\n");
    if stream.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let mut start = [0; 12];
    if stream.read_exact(&mut start).await.is_err() {
        return false;
    }
    let status = start.strip_prefix(b"HTTP/1.1 ");
    status.is_some_and(|status| matches!(status.first(), Some(b'1'..=b'4')))
}
