//! The task that keeps the connection to the registry, and keeps this site registered.

use std::net::SocketAddr;
use std::time::Duration;

use levee_observe::{RegistryPlace, RegistryStatus};
use levee_vocab::Random;
use levee_wire::registry::{Reply, Request};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::away::{AwayRegistries, AwayTable, Contact, Probed};
use super::exchange::Exchange;
use super::{DirectoryError, NONE_YET, RegistryClientSettings};

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
    /// The registry that is asked; none before one is known.
    used: Option<SocketAddr>,
    exchange: Option<Exchange>,
    /// What this site offers, as it was said last.
    offer: Option<Request>,
    /// Whether the registry knows the offer, as far as we know.
    offered: Offered,
    /// Why the registry does not take the offer, while that is so.
    refusal: Option<String>,
    /// Nothing has gone wrong last but that there is no member list yet.
    is_at_its_beginning: bool,
    /// The next pause after a failure. It is short again when a connection gave a second answer.
    delay: Duration,
    away: AwayRegistries,
    table: AwayTable,
    /// Until then a refused offer is not made again by ourselves.
    offers_from: Option<Instant>,
    /// Until then no offer is made at all: we have said too much.
    held_back_to: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    Yes,
    No,
}

impl Keeper {
    pub(super) fn new(
        settings: RegistryClientSettings,
        status: watch::Sender<RegistryStatus>,
        table: AwayTable,
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
            is_at_its_beginning: false,
            used: None,
            away: AwayRegistries::new(table.clone()),
            table,
            offers_from: None,
            held_back_to: None,
        }
    }

    /// Runs until nobody can ask any more.
    pub(super) async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        loop {
            let retry = self.retry_at();
            let probe = self.probe_at();
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.take(ask).await,
                    None => return,
                },
                () = lapse(&mut self.exchange) => self.lose(),
                Ok(()) = self.settings.registries.changed() => self.tell_places(),
                // A witness tells as well who is away.
                () = self.table.changed() => self.tell_places(),
                () = sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => {
                    self.offer_again().await;
                }
                () = sleep_until(probe.unwrap_or_else(Instant::now)), if probe.is_some() => {
                    self.away.probe(&self.places(), &self.settings);
                }
                probed = self.away.probed() => self.note_probe(probed),
            }
        }
    }

    /// When to ask one that is away whether it is back. Not while one is sought for the offer,
    /// which asks them all.
    fn probe_at(&self) -> Option<Instant> {
        let is_settled = self.offer.is_none() || self.status.borrow().connected;
        is_settled.then(|| self.away.next_probe(&self.places()))?
    }

    fn note_probe(&mut self, (registry, result): Probed) {
        match result {
            Ok(()) => {
                if self.away.is_back(registry) {
                    info!(%registry, "registry answers");
                }
                let is_connected = self.status.borrow().connected;
                if !is_connected {
                    self.turn_to(registry);
                    self.tell(Contact::Answers, self.refusal.clone().unwrap_or_default());
                }
            }
            Err(error) => {
                let pauses = (self.settings.retry_delay_max, &mut self.random);
                self.away.still_away(registry, error.to_string(), pauses);
            }
        }
        self.tell_places();
    }

    /// When to try again by ourselves: when there is an offer that the registry does not know.
    fn retry_at(&self) -> Option<Instant> {
        let is_due = self.offer.is_some() && self.offered == Offered::No;
        let now = Instant::now();
        let places = self.places();
        let ready = places
            .iter()
            .map(|place| self.away.ready_at(*place).unwrap_or(now));
        // While none is known, the finder is still looking.
        let ready = ready.min().unwrap_or(now + self.settings.retry_delay_max);
        is_due.then(|| self.offers_from.map_or(ready, |from| ready.max(from)))
    }

    fn places(&self) -> Vec<SocketAddr> {
        self.settings.registries.borrow().registries.clone()
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
            Request::Search(_)
            | Request::Query(_)
            | Request::Accuse(_)
            | Request::Accusations
            | Request::Unknown(_) => {}
        }
        let is_offer = matches!(ask.request, Request::Register(_));
        let result = match self.held_back().filter(|_| is_offer) {
            Some(held_back) => Err(held_back),
            None => self.carry_out(&ask.request).await,
        };
        // Who has given up waiting does not want to know.
        let _ = ask.answer.send(result);
    }

    /// Why no offer is made now, where we have said too much. The newest is made when that is over.
    fn held_back(&self) -> Option<DirectoryError> {
        let until = self.held_back_to?;
        let left = until.saturating_duration_since(Instant::now());
        let registry = self.used.filter(|_| !left.is_zero())?;
        Some(DirectoryError::HeldBack { registry, left })
    }

    async fn offer_again(&mut self) {
        if let Some(offer) = self.offer.clone() {
            // What went wrong is told by the status.
            let _ = self.carry_out(&offer).await;
        }
    }

    /// Asks the registry that was asked last, and when it is away the next one, until one answers.
    async fn carry_out(&mut self, request: &Request) -> Result<Reply, DirectoryError> {
        let mut places = self.places();
        let first = places.iter().position(|place| Some(*place) == self.used);
        places.rotate_left(first.unwrap_or(0));
        let mut wait = self.settings.exchange_wait;
        if places.len() > 1 {
            wait /= 2;
        }
        let mut failure = None;
        for registry in places {
            if let Some(left) = self.away.rest_left(registry) {
                failure.get_or_insert(DirectoryError::Resting { registry, left });
                continue;
            }
            self.turn_to(registry);
            let result = match timeout(wait, self.converse(registry, request)).await {
                Ok(result) => result,
                Err(_) => Err(DirectoryError::TimedOut { registry, wait }),
            };
            match result {
                Ok(reply) => {
                    self.note_success(registry, request);
                    return Ok(reply);
                }
                Err(error) => {
                    self.note_failure(registry, &error, request);
                    if matches!(error, DirectoryError::Refused { .. }) {
                        return Err(error);
                    }
                    failure = Some(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| self.none_known()))
    }

    fn none_known(&self) -> DirectoryError {
        let why = self.settings.registries.borrow().trouble.clone();
        let error = DirectoryError::NoneKnown { why };
        self.tell(Contact::Away, error.to_string());
        error
    }

    fn turn_to(&mut self, registry: SocketAddr) {
        if self.used.replace(registry) != Some(registry) {
            self.exchange = None;
            self.held_back_to = None;
            self.offered = Offered::No;
        }
    }

    /// One exchange; on a fresh connection if the kept one turns out to be dead.
    async fn converse(
        &mut self,
        registry: SocketAddr,
        request: &Request,
    ) -> Result<Reply, DirectoryError> {
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
        let opened = Exchange::open(&self.settings, registry).await;
        let mut exchange =
            opened.map_err(|source| DirectoryError::Unreachable { registry, source })?;
        let result = exchange.ask(request).await;
        let is_sound = matches!(result, Ok(_) | Err(DirectoryError::Refused { .. }));
        self.exchange = is_sound.then_some(exchange);
        result
    }

    fn note_success(&mut self, registry: SocketAddr, request: &Request) {
        self.away.forget(registry);
        if matches!(request, Request::Register(_)) {
            self.offered = Offered::Yes;
            self.refusal = None;
            self.offers_from = None;
            self.held_back_to = None;
        }
        let was_connected = self.status.borrow().connected;
        self.tell(Contact::Answers, self.refusal.clone().unwrap_or_default());
        if !was_connected {
            info!(%registry, "registry answers");
        }
    }

    fn note_failure(&mut self, registry: SocketAddr, error: &DirectoryError, request: &Request) {
        let is_refusal = matches!(error, DirectoryError::Refused { .. });
        if !is_refusal {
            self.exchange = None;
            self.offered = Offered::No;
            let until = self.pause();
            let pauses = (until, self.settings.retry_delay_min);
            self.away.note(registry, pauses, error.to_string());
        } else if let Request::Register(entry) = request {
            // Who is not taken may still look for others.
            self.refusal = Some(error.to_string());
            let mut until = self.pause();
            self.held_back_to = None;
            if error.is_for_saying_too_much() {
                // What was registered before must not end meanwhile.
                until = until.min(Instant::now() + entry.lifetime / 3);
                self.held_back_to = Some(until);
            }
            self.offers_from = Some(until);
        }
        let contact = match is_refusal {
            true => Contact::Answers,
            false => Contact::Away,
        };
        let is_new = self.note(contact, error.to_string());
        let is_beginning = error.is_for_want_of_a_list();
        if is_new && is_beginning {
            // How each first start begins; where it lasts, whoever looks for lists says so.
            info!("{error}");
        } else if !is_beginning && (is_new || self.is_at_its_beginning) {
            warn!("{error}");
        }
        self.is_at_its_beginning = is_beginning;
    }

    /// The registry closed a connection that nobody was using: it may have been restarted. One
    /// that answers and closes each time must not be asked all the time, so there is a pause; what
    /// others ask meanwhile is asked.
    fn lose(&mut self) {
        self.exchange = None;
        self.offered = Offered::No;
        self.offers_from = Some(self.pause());
        if let Some(registry) = self.used {
            let error = DirectoryError::Closed { registry };
            self.tell(Contact::Away, error.to_string());
        }
    }

    fn tell(&self, contact: Contact, last_error: String) {
        if self.note(contact, last_error.clone()) {
            warn!("{last_error}");
        }
    }

    /// Puts it into the status. Gives whether there is something new to tell: once for each time
    /// that it goes wrong, not for each attempt.
    fn note(&self, contact: Contact, last_error: String) -> bool {
        let used = self.used.map(|used| used.to_string());
        let before = self.status.send_replace(RegistryStatus {
            address: used.unwrap_or_else(|| NONE_YET.to_owned()),
            connected: contact == Contact::Answers,
            refusal: self.refusal.clone().unwrap_or_default(),
            last_error: last_error.clone(),
            lookup_error: self.lookup_error(),
            all: self.all(),
        });
        before.last_error.is_empty() && !last_error.is_empty()
    }

    /// DNS may name others at any time.
    fn tell_places(&self) {
        let (all, lookup_error) = (self.all(), self.lookup_error());
        self.status.send_modify(|status| {
            status.all = all;
            status.lookup_error = lookup_error;
        });
    }

    fn lookup_error(&self) -> String {
        self.settings.registries.borrow().trouble.clone()
    }

    fn all(&self) -> Vec<RegistryPlace> {
        let all = self.places().into_iter().map(|place| {
            let is_asked = self.used == Some(place);
            self.away
                .place(place, if is_asked { "asked" } else { "ready" })
        });
        all.collect()
    }

    /// The end of a pause that begins now. The next one will be twice as long; of each a random
    /// part is taken, so that the sites of a community do not all come back in the same moment.
    fn pause(&mut self) -> Instant {
        let pause = self.delay.mul_f64(0.5 + 0.5 * self.random.fraction());
        self.delay = (self.delay * 2).min(self.settings.retry_delay_max);
        Instant::now() + pause
    }
}

/// Waits until the kept connection is of no more use; for ever where there is none.
async fn lapse(exchange: &mut Option<Exchange>) {
    match exchange {
        Some(exchange) => exchange.lapse().await,
        None => std::future::pending().await,
    }
}
