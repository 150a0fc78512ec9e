//! What the tests of rescue links play on: a switchboard, a hand that plays its Brain, and netcat.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use levee::rescue_link::{
    AddressBook, LinkSettings, Obeyed, OriginPurge, RescueLinks, Surroundings,
};
use levee::settings::TrustSettings;
use levee::trust::Trust;
use levee_control::{Candidate, Input, Output, RescueCall};
use levee_registry::PrivateAddresses;
use levee_vocab::{ByteRate, HostName, LinkId, WebAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::OUT;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn web(host: &str) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port: 8080 }
}

pub fn settings() -> LinkSettings {
    let mut settings = LinkSettings::new(
        "www.rescue.com".parse().unwrap(),
        "5.6.7.8".parse().unwrap(),
    );
    settings.private_addresses = PrivateAddresses::Permitted;
    settings.session.sos_wait = PATIENCE;
    settings.session.decision_wait = PATIENCE;
    settings.call_wait = PATIENCE;
    settings
}

pub fn accept(link: LinkId) -> Output {
    Output::AcceptSos {
        link,
        alias: web("www-vh1.rescue.com"),
        rate: ByteRate::from_kilobytes(100),
    }
}

pub fn rescue_call() -> RescueCall {
    let (origin, address) = (web("www.origin.com"), "1.2.3.4".parse().unwrap());
    RescueCall {
        ttl: Some(Duration::from_secs(60)),
        beats: true,
        ..RescueCall::new(origin, address, Duration::from_secs(600))
    }
}

pub fn call(link: LinkId, rescue: SocketAddr) -> Output {
    let candidate = Candidate {
        site: web("www.rescue.com"),
        rescue,
        free: ByteRate::from_kilobytes(500),
        https: levee_vocab::AliasHttps::Unknown,
    };
    Output::CallForHelp {
        link,
        candidate,
        call: rescue_call(),
    }
}

struct Known(BTreeMap<HostName, IpAddr>);

impl AddressBook for Known {
    fn address_of<'a>(
        &'a self,
        site: &'a HostName,
    ) -> Pin<Box<dyn Future<Output = Option<IpAddr>> + Send + 'a>> {
        Box::pin(async { self.0.get(site).copied() })
    }

    /// No name leads anywhere but a bystander's.
    fn leads_to<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send + 'a>> {
        let is_bystander = name.trim_end_matches('.') == "www.bystander.com";
        Box::pin(async move {
            is_bystander
                .then(|| [9, 9, 9, 9].into())
                .into_iter()
                .collect()
        })
    }
}

/// A server's rescue links; the test is its Brain.
pub struct Stage {
    pub links: RescueLinks,
    pub address: SocketAddr,
    events: mpsc::Receiver<Input>,
    charged: Arc<AtomicU64>,
    pub purged: Arc<Mutex<Vec<(String, String)>>>,
}

impl Stage {
    /// Its registry knows `www.origin.com` at 1.2.3.4, and `www.rescue.com` at 5.6.7.8.
    pub async fn set(settings: LinkSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let origin = (
            "www.origin.com".parse().unwrap(),
            "1.2.3.4".parse().unwrap(),
        );
        let rescue = (
            "www.rescue.com".parse().unwrap(),
            "5.6.7.8".parse().unwrap(),
        );
        let book = Arc::new(Known(BTreeMap::from([origin, rescue])));
        let (sender, events) = mpsc::channel(64);
        let charged = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&charged);
        let charge = Arc::new(move |bytes| {
            counter.fetch_add(bytes, Ordering::Relaxed);
        });
        let purged = Arc::new(Mutex::new(Vec::new()));
        let inbox = Arc::clone(&purged);
        let origin_purge: OriginPurge = Arc::new(move |origin, purge| {
            let mut inbox = inbox.lock().unwrap();
            inbox.push((origin.to_string(), purge.scope.to_string()));
            inbox.len() as u64
        });
        let community = Surroundings {
            address_book: book,
            trust: Arc::new(Trust::open(&TrustSettings::default(), None).unwrap()),
        };
        let links = RescueLinks::start(
            Some(listener),
            settings,
            community,
            charge,
            origin_purge,
            sender,
        );
        Self {
            links,
            address,
            events,
            charged,
            purged,
        }
    }

    pub async fn netcat(&self) -> Netcat {
        Netcat::over(TcpStream::connect(self.address).await.unwrap())
    }

    /// Netcat with an SOS that was accepted.
    pub async fn greeted(&mut self) -> (Netcat, LinkId) {
        let mut netcat = self.netcat().await;
        netcat
            .types("1 SOS www.origin.com 1.2.3.4 8080 600\n")
            .await;
        let link = self.next_call().await.0;
        self.obeys(accept(link));
        netcat
            .reads("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
            .await;
        (netcat, link)
    }

    pub fn obeys(&self, output: Output) {
        assert_eq!(self.links.obey(&output), Obeyed::Passed);
    }

    pub async fn next(&mut self) -> Input {
        let event = timeout(PATIENCE, self.events.recv()).await;
        event.expect("an event").expect("a switchboard")
    }

    pub async fn hears(&mut self, expected: Input) {
        assert_eq!(self.next().await, expected);
    }

    pub async fn next_call(&mut self) -> (LinkId, RescueCall) {
        let event = self.next().await;
        let Input::SosReceived { link, call } = event.clone() else {
            panic!("{event:?}");
        };
        (link, call)
    }

    pub fn is_quiet(&mut self) -> bool {
        self.events.try_recv().is_err()
    }

    /// Waits until links were refused so often for this cause.
    pub async fn has_refused(&self, cause: &'static str, times: u64) {
        let counted = async {
            while !self.links.refusals().counts().contains(&(cause, times)) {
                tokio::task::yield_now().await;
            }
        };
        let counted = timeout(PATIENCE, counted).await;
        counted.unwrap_or_else(|_| panic!("{cause}: {:?}", self.links.refusals().counts()));
    }

    /// Waits until that is known of the alias that was offered at [`OUT`].
    pub async fn knows_that_it_leads_to(&self, addresses: &[&str]) {
        let places = self.links.alias_places();
        let addresses = addresses.iter().map(|one| one.parse().unwrap());
        let addresses: Vec<IpAddr> = addresses.collect();
        let known = async {
            while places.of(OUT) != addresses {
                tokio::task::yield_now().await;
            }
        };
        let known = timeout(PATIENCE, known).await;
        known.unwrap_or_else(|_| panic!("{:?}", places.of(OUT)));
    }

    pub fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }
}

/// A person with netcat.
pub struct Netcat {
    stream: TcpStream,
}

impl Netcat {
    pub const fn over(stream: TcpStream) -> Self {
        Self { stream }
    }

    pub async fn types(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Types what the other side may refuse half-way.
    pub async fn types_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub async fn finishes_typing(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let byte = timeout(PATIENCE, self.stream.read_u8()).await;
            line.push(byte.expect("a line").expect("a line before the end"));
        }
        String::from_utf8(line).unwrap()
    }

    pub async fn reads(&mut self, line: &str) {
        assert_eq!(self.line().await, line);
    }

    /// The other side closes, perhaps after more lines, perhaps by a reset.
    pub async fn reads_the_end(&mut self) {
        let mut rest = [0; 1024];
        while let Ok(count) = timeout(PATIENCE, self.stream.read(&mut rest))
            .await
            .expect("an end")
        {
            if count == 0 {
                break;
            }
        }
    }
}
