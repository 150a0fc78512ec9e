//! The sockets of a name server: UDP for questions, TCP for long answers, updates and transfers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_net::Shared;
use levee_vocab::Network;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::own_zone::{Carrier, OwnZone, TCP_WAIT, is_update};
use crate::exchange::{read_message, write_message};

/// Longest question by UDP: updates with many records come by TCP.
const QUESTION_BYTES_MAX: usize = 4096;
/// Connections at once; more are closed.
const CONNECTIONS_MAX: usize = 256;
/// Of these, those of one address; of IPv6, one network (/64).
const CONNECTIONS_PER_ADDRESS_MAX: usize = 16;
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
        let open = Arc::new(Shared::new(Vec::new()));
        loop {
            let Ok((stream, asker)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Some(place) = Place::take(&open, asker) else {
                continue;
            };
            let zone = self.clone();
            tokio::spawn(async move {
                zone.serve_connection(stream, asker).await;
                drop(place);
            });
        }
    }

    /// Until the asker ends it, is silent for too long, or does not read.
    async fn serve_connection(&self, mut stream: TcpStream, asker: SocketAddr) {
        while let Ok(Ok(question)) = timeout(TCP_WAIT, read_message(&mut stream)).await {
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
type Open = Arc<Shared<Vec<Network>>>;

/// One connection's place among all; given back when dropped.
struct Place {
    open: Open,
    network: Network,
}

impl Place {
    fn take(open: &Open, asker: SocketAddr) -> Option<Self> {
        let network = Network::of(asker.ip());
        let taken = open.with(|all| {
            let same = all.iter().filter(|one| **one == network).count();
            let has_room = all.len() < CONNECTIONS_MAX && same < CONNECTIONS_PER_ADDRESS_MAX;
            if has_room {
                all.push(network);
            }
            has_room
        });
        taken.then(|| Self {
            open: Arc::clone(open),
            network,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.with(|all| {
            if let Some(index) = all.iter().position(|one| *one == self.network) {
                all.swap_remove(index);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_has_no_more_connections_than_one_address() {
        let open = Open::default();
        let connect = |network: usize, host: usize| {
            let address = format!("[2001:db8:0:{network}::{host}]:53");
            Place::take(&open, address.parse().unwrap())
        };
        let most = CONNECTIONS_PER_ADDRESS_MAX;
        let mut places: Vec<_> = (1..=most).map(|host| connect(1, host)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(connect(1, most + 1).is_none());
        assert!(connect(2, 1).is_some());
        places.pop();
        assert!(connect(1, most + 1).is_some());
    }
}
