//! The task that keeps the connection to the registry, and keeps this site registered.

use std::time::Duration;

use levee_observe::RegistryStatus;
use levee_vocab::Random;
use levee_wire::registry::{Reply, Request};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::exchange::Exchange;
use super::{DirectoryError, RegistryClientSettings};

/// A request on its way to the registry.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Reply, DirectoryError>>,
}

pub(super) struct Keeper {
    settings: RegistryClientSettings,
    status: watch::Sender<RegistryStatus>,
    random: Random,
    exchange: Option<Exchange>,
    /// What this site offers, as it was said last.
    offer: Option<Request>,
    /// Whether the registry knows the offer, as far as we know.
    offered: Offered,
    /// Why the registry does not take the offer, while that is so.
    refusal: Option<String>,
    /// The next pause after a failure. It is short again when a connection gave a second answer.
    delay: Duration,
    /// Until then the registry is taken for away.
    rests_until: Option<Instant>,
    /// Until then a refused offer is not made again by ourselves.
    offers_from: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    Yes,
    No,
}

/// Whether the registry says anything at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contact {
    Answers,
    Away,
}

impl Keeper {
    pub(super) fn new(
        settings: RegistryClientSettings,
        status: watch::Sender<RegistryStatus>,
    ) -> Self {
        Self {
            random: Random::from_seed(settings.seed),
            delay: settings.retry_delay_min,
            settings,
            status,
            exchange: None,
            offer: None,
            offered: Offered::No,
            refusal: None,
            rests_until: None,
            offers_from: None,
        }
    }

    /// Runs until nobody can ask any more.
    pub(super) async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        loop {
            let retry = self.retry_at();
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.take(ask).await,
                    None => return,
                },
                () = lapse(&mut self.exchange) => self.lose(),
                () = sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => {
                    self.offer_again().await;
                }
            }
        }
    }

    /// When to try again by ourselves: when there is an offer that the registry does not know.
    fn retry_at(&self) -> Option<Instant> {
        let is_due = self.offer.is_some() && self.offered == Offered::No;
        let at = self.rests_until.max(self.offers_from);
        is_due.then(|| at.unwrap_or_else(Instant::now))
    }

    async fn take(&mut self, ask: Ask) {
        if ask.answer.is_closed() {
            return;
        }
        match &ask.request {
            Request::Register(_) => {
                self.offer = Some(ask.request.clone());
                self.offered = Offered::No;
            }
            Request::Deregister(_) => {
                self.offer = None;
                self.refusal = None;
            }
            Request::Search(_) | Request::Query(_) | Request::Unknown(_) => {}
        }
        let result = self.carry_out(&ask.request).await;
        // Who has given up waiting does not want to know.
        let _ = ask.answer.send(result);
    }

    async fn offer_again(&mut self) {
        if let Some(offer) = self.offer.clone() {
            self.rests_until = None;
            // What went wrong is told by the status.
            let _ = self.carry_out(&offer).await;
        }
    }

    async fn carry_out(&mut self, request: &Request) -> Result<Reply, DirectoryError> {
        let registry = self.settings.registry;
        if let Some(left) = self.rest_left() {
            return Err(DirectoryError::Resting { registry, left });
        }
        let wait = self.settings.exchange_wait;
        let result = match timeout(wait, self.converse(request)).await {
            Ok(result) => result,
            Err(_) => Err(DirectoryError::TimedOut { registry, wait }),
        };
        match &result {
            Ok(_) => self.note_success(request),
            Err(error) => self.note_failure(error, request),
        }
        result
    }

    /// One exchange; on a fresh connection if the kept one turns out to be dead.
    async fn converse(&mut self, request: &Request) -> Result<Reply, DirectoryError> {
        if let Some(mut exchange) = self.exchange.take() {
            match exchange.ask(request).await {
                Err(DirectoryError::Closed { .. }) => self.offered = Offered::No,
                result => {
                    // A refusal is an answer like any other; after anything else the connection
                    // cannot be trusted.
                    let is_sound = matches!(result, Ok(_) | Err(DirectoryError::Refused { .. }));
                    self.exchange = is_sound.then_some(exchange);
                    // While an offer is being refused, its pauses go on growing.
                    if result.is_ok() && self.refusal.is_none() {
                        self.delay = self.settings.retry_delay_min;
                    }
                    return result;
                }
            }
        }
        let registry = self.settings.registry;
        let opened = Exchange::open(&self.settings).await;
        let mut exchange =
            opened.map_err(|source| DirectoryError::Unreachable { registry, source })?;
        let result = exchange.ask(request).await;
        let is_sound = matches!(result, Ok(_) | Err(DirectoryError::Refused { .. }));
        self.exchange = is_sound.then_some(exchange);
        result
    }

    fn note_success(&mut self, request: &Request) {
        self.rests_until = None;
        if matches!(request, Request::Register(_)) {
            self.offered = Offered::Yes;
            self.refusal = None;
            self.offers_from = None;
        }
        let was_connected = self.status.send_replace(RegistryStatus {
            address: self.settings.registry.to_string(),
            connected: true,
            last_error: self.refusal.clone().unwrap_or_default(),
        });
        if !was_connected.connected {
            info!(registry = %self.settings.registry, "registry answers");
        }
    }

    fn note_failure(&mut self, error: &DirectoryError, request: &Request) {
        let is_refusal = matches!(error, DirectoryError::Refused { .. });
        if !is_refusal {
            self.exchange = None;
            self.offered = Offered::No;
            self.rests_until = Some(self.pause());
        } else if matches!(request, Request::Register(_)) {
            // Who is not taken may still look for others.
            self.refusal = Some(error.to_string());
            self.offers_from = Some(self.pause());
        }
        let contact = match is_refusal {
            true => Contact::Answers,
            false => Contact::Away,
        };
        self.tell_failure(contact, error.to_string());
    }

    /// The registry closed a connection that nobody was using: it may have been restarted. One
    /// that answers and closes each time must not be asked all the time, so there is a pause; what
    /// others ask meanwhile is asked.
    fn lose(&mut self) {
        self.exchange = None;
        self.offered = Offered::No;
        self.offers_from = Some(self.pause());
        let registry = self.settings.registry;
        self.tell_failure(
            Contact::Away,
            DirectoryError::Closed { registry }.to_string(),
        );
    }

    fn tell_failure(&self, contact: Contact, last_error: String) {
        let before = self.status.send_replace(RegistryStatus {
            address: self.settings.registry.to_string(),
            connected: contact == Contact::Answers,
            last_error: last_error.clone(),
        });
        // Once for each time that it goes wrong, not for each attempt.
        if before.last_error.is_empty() {
            warn!("{last_error}");
        }
    }

    /// The end of a pause that begins now. The next one will be twice as long; of each a random
    /// part is taken, so that the sites of a community do not all come back in the same moment.
    fn pause(&mut self) -> Instant {
        let pause = self.delay.mul_f64(0.5 + 0.5 * self.random.fraction());
        self.delay = (self.delay * 2).min(self.settings.retry_delay_max);
        Instant::now() + pause
    }

    fn rest_left(&self) -> Option<Duration> {
        let left = self.rests_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Waits until the kept connection is of no more use; for ever where there is none.
async fn lapse(exchange: &mut Option<Exchange>) {
    match exchange {
        Some(exchange) => exchange.lapse().await,
        None => std::future::pending().await,
    }
}
