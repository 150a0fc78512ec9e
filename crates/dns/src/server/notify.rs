//! Tells the secondaries that the zone has changed (NOTIFY, RFC 1996), so that they fetch it at
//! once and not at their next look.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, OpCode};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::own_zone::OwnZone;

/// How long a secondary may take to confirm, the first time; twice as long each further time.
const WAIT: Duration = Duration::from_millis(500);
/// How often one is told. Whoever was away then looks by itself, as the SOA says.
const ATTEMPTS: u32 = 4;

impl OwnZone {
    /// Tells all secondaries at the start and after each change; changes that come meanwhile are
    /// told together.
    pub(super) async fn notify(self) {
        let mut serials = self.serials();
        if self.secondaries().is_empty() {
            return;
        }
        loop {
            serials.borrow_and_update();
            let mut tasks = JoinSet::new();
            for secondary in self.secondaries().iter().copied() {
                tasks.spawn(tell(secondary, self.notification()));
            }
            // A newer change is told at once, whoever has not confirmed this one.
            tokio::select! {
                changed = serials.changed() => if changed.is_err() { return },
                () = async { while tasks.join_next().await.is_some() {} } => {
                    if serials.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

async fn tell(secondary: SocketAddr, message: Message) {
    let (Ok(bytes), id) = (message.to_vec(), message.metadata.id) else {
        return;
    };
    let any: SocketAddr = match secondary {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let Ok(socket) = UdpSocket::bind(any).await else {
        return;
    };
    if socket.connect(secondary).await.is_err() {
        return;
    }
    for attempt in 0..ATTEMPTS {
        // A secondary that is away refuses at once; it is told again all the same.
        let _ = socket.send(&bytes).await;
        let confirmed = timeout(WAIT * 2_u32.pow(attempt), is_confirmed(&socket, id));
        if confirmed.await == Ok(true) {
            return;
        }
    }
}

async fn is_confirmed(socket: &UdpSocket, id: u16) -> bool {
    let mut buffer = [0; 512];
    loop {
        let Ok(length) = socket.recv(&mut buffer).await else {
            // Refused: waiting on is as good as trying again at once.
            std::future::pending::<()>().await;
            return false;
        };
        let answer = Message::from_vec(&buffer[..length]);
        let is_it = |answer: &Message| {
            answer.metadata.id == id && answer.metadata.op_code == OpCode::Notify
        };
        if answer.as_ref().is_ok_and(is_it) {
            return true;
        }
    }
}
