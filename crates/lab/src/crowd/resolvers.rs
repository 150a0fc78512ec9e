//! Caching resolvers, as visitors have them: each asks the name server, and remembers the answer
//! for as long as its TTL says.
//!
//! A crowd does not ask a name server each time: its providers' resolvers do, once for all their
//! customers. So what is put into DNS reaches visitors late, and what is taken out leaves late.
//! Questions go to one server over UDP. Answers are taken in turn, as resolvers rotate them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::net::UdpSocket;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// All resolvers of a crowd.
#[derive(Debug)]
pub struct Resolvers {
    server: SocketAddr,
    name: String,
    caches: Vec<Mutex<Cache>>,
}

/// The resolver of one visitor.
#[derive(Clone, Debug)]
pub struct Resolver {
    all: Arc<Resolvers>,
    number: usize,
}

#[derive(Debug, Default)]
struct Cache {
    addresses: Vec<IpAddr>,
    /// Until when they hold; none before the first answer.
    until: Option<Instant>,
    given: usize,
}

/// A question is asked again after this time, as resolvers do.
const WAIT: Duration = Duration::from_secs(1);
/// So often.
const TRIES: u32 = 3;
/// No answer here is longer (RFC 6891).
const ANSWER_MAX: usize = 1232;

impl Resolvers {
    /// So many resolvers that know nothing yet. They ask `server` for `name`, and for nothing else.
    pub fn new(server: SocketAddr, name: &str, count: usize) -> Self {
        let caches = (0..count.max(1)).map(|_| Mutex::default());
        Self {
            server,
            name: name.to_owned(),
            caches: caches.collect(),
        }
    }

    /// The resolver of the visitor with this number.
    pub fn of(self: &Arc<Self>, visitor: usize) -> Resolver {
        Resolver {
            all: Arc::clone(self),
            number: visitor % self.caches.len(),
        }
    }
}

impl Resolver {
    /// Whether it is asked for `host` at all.
    pub fn knows(&self, host: &str) -> bool {
        self.all.name == host
    }

    /// The addresses of the name, beginning with another one for each visitor; none where the name
    /// server says nothing.
    ///
    /// Cancel safety: dropped half-way, nothing is remembered.
    pub async fn addresses(&self) -> Vec<IpAddr> {
        // Held while it asks: the customers of one resolver wait for one question.
        let mut cache = self.all.caches[self.number].lock().await;
        if cache.until.is_none_or(|until| Instant::now() >= until) {
            let Some((addresses, ttl)) = self.all.ask().await else {
                return Vec::new();
            };
            cache.addresses = addresses;
            cache.until = Some(Instant::now() + ttl);
            // Who asks first gets another one from each resolver.
            cache.given = self.number;
        }
        cache.given = cache.given.wrapping_add(1);
        let mut addresses = cache.addresses.clone();
        let count = addresses.len().max(1);
        addresses.rotate_left(cache.given % count);
        addresses
    }
}

impl Resolvers {
    async fn ask(&self) -> Option<(Vec<IpAddr>, Duration)> {
        for _ in 0..TRIES {
            if let Ok(Some(answer)) = timeout(WAIT, self.exchange()).await {
                return Some(answer);
            }
        }
        None
    }

    async fn exchange(&self) -> Option<(Vec<IpAddr>, Duration)> {
        let any: SocketAddr = match self.server {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any).await.ok()?;
        socket.connect(self.server).await.ok()?;
        let mut question = Message::query();
        let name = Name::from_ascii(format!("{}.", self.name)).ok()?;
        question.add_query(Query::query(name, RecordType::A));
        socket.send(&question.to_vec().ok()?).await.ok()?;
        let mut answer = [0; ANSWER_MAX];
        let length = socket.recv(&mut answer).await.ok()?;
        let answer = Message::from_vec(&answer[..length]).ok()?;
        if answer.metadata.id != question.metadata.id {
            return None;
        }
        let ttl = answer.answers.iter().map(|record| record.ttl).min()?;
        let addresses = answer.answers.iter().filter_map(|record| {
            if let RData::A(address) = &record.data {
                return Some(IpAddr::V4(address.0));
            }
            None
        });
        Some((addresses.collect(), Duration::from_secs(u64::from(ttl))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::ResponseCode;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::A;

    /// A name server that answers each question with these addresses, and counts.
    async fn server(addresses: &'static [[u8; 4]], ttl: u32) -> (SocketAddr, Arc<Mutex<u32>>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::<Mutex<u32>>::default();
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut bytes = [0; ANSWER_MAX];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
                let question = Message::from_vec(&bytes[..length]).unwrap();
                let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
                answer.metadata.response_code = ResponseCode::NoError;
                let name = question.queries[0].name().clone();
                for address in addresses {
                    let data = RData::A(A((*address).into()));
                    answer.add_answer(Record::from_rdata(name.clone(), ttl, data));
                }
                *count.lock().await += 1;
                let answer = answer.to_vec().unwrap();
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        (address, asked)
    }

    #[tokio::test]
    async fn customers_of_a_resolver_share_its_answer_until_it_is_old() {
        let (address, asked) = server(&[[10, 0, 0, 1], [10, 0, 0, 2]], 60).await;
        let resolvers = Arc::new(Resolvers::new(address, "www.example", 2));
        let mut seen = Vec::new();
        for visitor in [0, 2, 4, 6] {
            let addresses = resolvers.of(visitor).addresses().await;
            assert_eq!(addresses.len(), 2);
            seen.push(addresses[0]);
        }
        seen.sort();
        let of = |last: u8| IpAddr::from([10, 0, 0, last]);
        assert_eq!(seen, [of(1), of(1), of(2), of(2)]);
        assert_eq!(*asked.lock().await, 1);
        assert!(!resolvers.of(1).addresses().await.is_empty());
        assert_eq!(*asked.lock().await, 2);
        assert!(resolvers.of(0).knows("www.example") && !resolvers.of(0).knows("vh1.test"));
    }

    #[tokio::test]
    async fn an_answer_without_a_lifetime_is_asked_for_again() {
        let (address, asked) = server(&[[10, 0, 0, 1]], 0).await;
        let resolvers = Arc::new(Resolvers::new(address, "www.example", 1));
        for _ in 0..3 {
            assert!(!resolvers.of(0).addresses().await.is_empty());
        }
        assert_eq!(*asked.lock().await, 3);
    }
}
