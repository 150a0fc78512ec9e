//! The sockets of a name server: UDP for questions, TCP for long answers, updates and transfers.
//!
//! Connections by TCP have a limited number of places (`places`): when all are taken, the one that
//! has been idle for longest makes way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_net::Shared;
use levee_vocab::Network;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::own_zone::{Carrier, OwnZone, TCP_WAIT, is_update};
use super::places::{Arrival, Places, Work};
use crate::exchange::{read_message, write_message};

/// Longest question by UDP: updates with many records come by TCP.
const QUESTION_BYTES_MAX: usize = 4096;
/// Updates by UDP at once; of more, those who send them hear nothing, and try again.
const UPDATES_MAX: usize = 16;
/// Pause after a socket failed, so that trying again does not burn time.
const PAUSE: Duration = Duration::from_millis(100);

impl OwnZone {
    /// Serves the zone, and tells its secondaries of each change, until the tasks are aborted.
    /// Needs a tokio runtime.
    pub fn serve(&self, udp: UdpSocket, tcp: TcpListener) -> Vec<JoinHandle<()>> {
        vec![
            tokio::spawn(self.clone().serve_udp(udp)),
            tokio::spawn(self.clone().serve_tcp(tcp)),
            tokio::spawn(self.clone().notify()),
        ]
    }

    /// Questions are answered one after the other, and updates beside them: each of these waits for
    /// the disk, and for the updates before it.
    async fn serve_udp(self, socket: UdpSocket) {
        let socket = Arc::new(socket);
        let mut updates = JoinSet::new();
        let mut buffer = [0; QUESTION_BYTES_MAX];
        loop {
            let Ok((length, asker)) = socket.recv_from(&mut buffer).await else {
                sleep(PAUSE).await;
                continue;
            };
            // No asker has port 0: whoever writes it wants an answer to go somewhere else.
            if asker.port() == 0 {
                continue;
            }
            let message = &buffer[..length];
            if !is_update(message) {
                answer(
                    &socket,
                    asker,
                    self.reply(Carrier::Udp, asker.ip(), message),
                )
                .await;
                continue;
            }
            while updates.try_join_next().is_some() {}
            if updates.len() < UPDATES_MAX {
                let (zone, socket) = (self.clone(), Arc::clone(&socket));
                let message = message.to_vec();
                updates.spawn(async move {
                    let reply = zone.reply_later(Carrier::Udp, asker.ip(), &message);
                    answer(&socket, asker, reply.await).await;
                });
            }
        }
    }

    async fn serve_tcp(self, listener: TcpListener) {
        let open = Open::default();
        loop {
            let Ok((stream, asker)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Some(place) = self.place(&open, asker) else {
                continue;
            };
            let zone = self.clone();
            tokio::spawn(async move { zone.serve_connection(stream, asker, place).await });
        }
    }

    fn place(&self, open: &Open, asker: SocketAddr) -> Option<Place> {
        let (holder, lost) = oneshot::channel();
        let network = Network::of(asker.ip());
        let number = match open.with(|places| places.take(network, holder)) {
            Arrival::Free(number) => number,
            Arrival::InPlace(number) => {
                self.count(|counts| counts.made_way += 1);
                number
            }
            Arrival::Full => {
                self.count(|counts| counts.turned_away += 1);
                return None;
            }
        };
        Some(Place {
            open: Arc::clone(open),
            number,
            lost,
        })
    }

    /// Until the asker ends it, is silent for too long, does not read, or makes way while nothing
    /// is being done for it.
    async fn serve_connection(&self, mut stream: TcpStream, asker: SocketAddr, mut place: Place) {
        loop {
            // Half a question is none: who sends its bytes one by one is idle.
            let question = tokio::select! {
                question = timeout(TCP_WAIT, read_message(&mut stream)) => question,
                () = place.lost() => return,
            };
            let Ok(Ok(question)) = question else {
                return;
            };
            if !place.is_still_ours(Work::UnderWay) {
                return;
            }
            let answers = self.reply_later(Carrier::Tcp, asker.ip(), &question);
            let answers = answers.await;
            if answers.is_empty() {
                return;
            }
            for answer in answers {
                let written = timeout(TCP_WAIT, write_message(&mut stream, &answer)).await;
                if !matches!(written, Ok(Ok(()))) {
                    return;
                }
            }
            if !place.is_still_ours(Work::None) {
                return;
            }
        }
    }
}

async fn answer(socket: &UdpSocket, asker: SocketAddr, messages: Vec<Vec<u8>>) {
    for message in messages {
        // Whoever cannot be answered asks again.
        let _ = socket.send_to(&message, asker).await;
    }
}

/// Everybody who has a connection.
type Open = Arc<Shared<Places<oneshot::Sender<()>>>>;

/// One connection's place among all; given back when dropped.
struct Place {
    open: Open,
    number: u64,
    /// Ends when the place goes to somebody else.
    lost: oneshot::Receiver<()>,
}

impl Place {
    /// Waits until the place has gone to somebody else. Dropped half-way, nothing is lost.
    async fn lost(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.lost).await;
    }

    /// Says what is being done for the connection from now on; false where its place is lost.
    fn is_still_ours(&self, work: Work) -> bool {
        self.open.with(|places| places.note(self.number, work))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.with(|places| places.give_back(self.number));
    }
}

#[cfg(test)]
mod tests;
