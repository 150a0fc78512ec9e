//! One certificate for one name: account, order, check, certificate.
//!
//! What must not be lost is written down before the authority is told: the account before anything
//! is ordered with it, the key of the certificate before the order is finalized. A process that is
//! killed in between goes on with the same order, and a full disk is noticed before the authority
//! has done any work for us.

use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeStatus,
    Error, ExternalAccountKey, Identifier, NewAccount, NewOrder, Order, OrderStatus, Problem,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::authority::Authority;
use super::challenge::{Boards, Shown, Way};
use super::error::AcmeError;
use super::name::CertificateName;
use super::nonce::{is_bad_nonce, with_fresh_nonce};
use super::store::{CertificateStore, PendingOrder, StoreError};
use crate::settings::AcmeSettings;
use crate::state::off_thread;

/// What every order needs.
pub(super) struct Client<'a> {
    pub settings: &'a AcmeSettings,
    pub store: &'a CertificateStore,
    pub boards: &'a Boards,
    pub authority: &'a Authority,
    /// The certificate that the next one replaces, where the authority wants to know.
    pub replaces: Option<CertificateIdentifier<'static>>,
}

/// Longest that an order may take from its first message to its last.
const ORDER_MAX: Duration = Duration::from_secs(300);

/// How the authority is asked whether it is done: soon at first, as it is mostly.
const ASKING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));

impl Client<'_> {
    /// Gets a certificate for `name`, shows by `way` that it is ours, and keeps it in the store.
    ///
    /// # Errors
    /// Why there is none.
    ///
    /// Cancel safety: dropped half-way, the order goes on at the next call.
    pub async fn obtain(&self, name: &CertificateName, way: Way) -> Result<(), AcmeError> {
        let work = async {
            let account = self.account().await?;
            let (mut order, pending) = self.order(&account, name).await?;
            let done = self.finish(&mut order, &pending, (name, way)).await;
            if let Err(AcmeError::CheckFailed { .. } | AcmeError::Refused { .. }) = &done {
                // It is over: the next attempt needs another one.
                self.store.forget_order(name);
            }
            done
        };
        let late = |_| AcmeError::TooSlow(ORDER_MAX);
        let done = tokio::time::timeout(ORDER_MAX, work).await.map_err(late)?;
        if let Err(AcmeError::Refused { kind, .. }) = &done
            && kind == "accountDoesNotExist"
        {
            // Authorities for tests forget us; the next attempt introduces us again.
            self.store.forget_account(&self.settings.directory);
        }
        done
    }

    pub(super) fn told(&self, error: &Error) -> AcmeError {
        AcmeError::of(error, &self.settings.directory)
    }

    /// The account that was kept, or a new one.
    pub(super) async fn account(&self) -> Result<Account, AcmeError> {
        let directory = &self.settings.directory;
        let builder = || Account::builder_with_http(Box::new(self.authority.clone()));
        if let Some(text) = self.store.account(directory)? {
            let damaged = |error: serde_json::Error| AcmeError::DamagedAccount(error.to_string());
            let kept: AccountCredentials = serde_json::from_slice(&text).map_err(damaged)?;
            let account = builder().from_credentials(kept).await;
            return account.map_err(|error| self.told(&error));
        }
        let contact: Vec<&str> = self.settings.contact.iter().map(String::as_str).collect();
        let wanted = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.settings.external.as_ref();
        let external = external.map(|known| ExternalAccountKey::new(known.id.clone(), &known.key));
        let create = || builder().create(&wanted, directory.clone(), external.as_ref());
        let created = with_fresh_nonce!(create());
        let (account, credentials) = created.map_err(|error| self.told(&error))?;
        // Four texts always have a JSON form.
        let text = serde_json::to_string(&credentials).unwrap_or_default();
        let place = directory.clone();
        self.write(move |store| store.keep_account(&place, &text))
            .await?;
        tracing::info!(%directory, "registered with the certificate authority");
        Ok(account)
    }

    /// The order for `name` that is under way, or a new one.
    async fn order(
        &self,
        account: &Account,
        name: &CertificateName,
    ) -> Result<(Order, PendingOrder), AcmeError> {
        let directory = &self.settings.directory;
        // One that was never placed has no URL.
        let pending = self.store.order(name, directory);
        if let Some(pending) = pending.filter(|pending| !pending.url.is_empty()) {
            match with_fresh_nonce!(account.order(pending.url.clone())) {
                Ok(mut order) => {
                    if order.state().status != OrderStatus::Invalid {
                        tracing::info!(%name, "going on with the order for a certificate");
                        return Ok((order, pending));
                    }
                }
                // Nobody knows it any more.
                Err(Error::Api(problem)) if !is_bad_nonce(&problem) => {}
                Err(error) => return Err(self.told(&error)),
            }
            self.store.forget_order(name);
        }
        let key = KeyPair::generate().map_err(|error| unusable(&error))?;
        let mut pending = PendingOrder {
            directory: directory.clone(),
            url: String::new(),
            key: key.serialize_pem(),
        };
        // Where there is no room, the authority need not be troubled.
        self.note(name, &pending).await?;
        let identifiers = [Identifier::Dns(name.to_string())];
        let order = self.place(account, &identifiers).await;
        let order = order.map_err(|error| self.told(&error))?;
        pending.url = order.url().to_owned();
        self.note(name, &pending).await?;
        Ok((order, pending))
    }

    /// Places the order, as one that replaces a certificate where there is one.
    async fn place(&self, account: &Account, names: &[Identifier]) -> Result<Order, Error> {
        if let Some(replaced) = &self.replaces {
            let order = NewOrder::new(names).replaces(replaced.clone());
            let placed = with_fresh_nonce!(account.new_order(&order));
            // It has been replaced already, the authority has forgotten it, or knows nothing of
            // replacing: then as usual.
            //= RFC 9773 section 5
            let is_final = match &placed {
                Err(Error::Api(problem)) => !is_about_replacing(problem),
                other => other.is_ok(),
            };
            if is_final {
                return placed;
            }
        }
        let order = NewOrder::new(names);
        with_fresh_nonce!(account.new_order(&order))
    }

    async fn finish(
        &self,
        order: &mut Order,
        pending: &PendingOrder,
        (name, way): (&CertificateName, Way),
    ) -> Result<(), AcmeError> {
        let key = KeyPair::from_pem(&pending.key).map_err(|error| unusable(&error))?;
        if order.state().status == OrderStatus::Pending {
            self.prove(order, (name, way)).await?;
        }
        if order.state().status == OrderStatus::Ready {
            let request = signing_request(name, &key).map_err(|error| unusable(&error))?;
            let finalized = with_fresh_nonce!(order.finalize_csr(&request));
            finalized.map_err(|error| self.told(&error))?;
        }
        let chain = with_fresh_nonce!(order.poll_certificate(&ASKING));
        let chain = chain.map_err(|error| self.told(&error))?;
        let (kept, key) = (name.clone(), pending.key.clone());
        self.write(move |store| store.keep(&kept, (&key, &chain)))
            .await?;
        self.store.forget_order(name);
        Ok(())
    }

    async fn note(&self, name: &CertificateName, order: &PendingOrder) -> Result<(), StoreError> {
        let (name, order) = (name.clone(), order.clone());
        self.write(move |store| store.note_order(&name, &order))
            .await
    }

    /// Writes into the store, on a thread that may wait for the disk.
    ///
    /// Cancel safety: dropped half-way, it is written all the same.
    async fn write(
        &self,
        work: impl FnOnce(&CertificateStore) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let store = self.store.clone();
        off_thread(move || work(&store)).await
    }

    /// Shows that the name is ours, until the authority has looked.
    async fn prove(
        &self,
        order: &mut Order,
        (name, way): (&CertificateName, Way),
    ) -> Result<(), AcmeError> {
        let fetched = with_fresh_nonce!(fetch_authorizations(order));
        fetched.map_err(|error| self.told(&error))?;
        let (mut shown, mut refused) = (Vec::new(), None);
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.told(&error))?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let challenge = authorization.challenge(way.kind());
            let mut challenge = challenge.ok_or(AcmeError::NotOffered(way))?;
            shown.push(Shown::show(self.boards, way, name, &challenge).await?);
            // Of an order that is gone on with, the authority may be looking already, and may have
            // seen enough by the time that it is told.
            if challenge.status == ChallengeStatus::Pending
                && let Err(error) = with_fresh_nonce!(challenge.set_ready())
            {
                refused = Some(error);
            }
        }
        if let Some(error) = refused
            && self.is_waiting(order).await?
        {
            return Err(self.told(&error));
        }
        match with_fresh_nonce!(order.poll_ready(&ASKING)) {
            Ok(OrderStatus::Invalid) => Err(self.why(order, way).await),
            Ok(_) => Ok(()),
            Err(Error::Api(problem)) if !is_bad_nonce(&problem) => {
                Err(AcmeError::check(way, &problem))
            }
            Err(error) => Err(self.told(&error)),
        }
    }

    /// Whether the authority still wants to be shown something.
    async fn is_waiting(&self, order: &mut Order) -> Result<bool, AcmeError> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.told(&error))?;
            let refreshed = with_fresh_nonce!(async { authorization.refresh().await.map(drop) });
            refreshed.map_err(|error| self.told(&error))?;
            if authorization.status == AuthorizationStatus::Pending {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Why the order has failed: its challenges say it.
    async fn why(&self, order: &mut Order, way: Way) -> AcmeError {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let refreshed = with_fresh_nonce!(async { authorization.refresh().await.map(drop) });
            if let Err(error) = refreshed {
                return self.told(&error);
            }
            let mut problems = authorization.challenges.iter();
            if let Some(problem) = problems.find_map(|challenge| challenge.error.as_ref()) {
                return AcmeError::check(way, problem);
            }
        }
        AcmeError::Refused {
            kind: "invalid".into(),
            detail: "the order has failed, and nobody says why".into(),
        }
    }
}

/// Has the library fetch what it does not know yet of the names in `order`, and keep it.
async fn fetch_authorizations(order: &mut Order) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

fn is_about_replacing(problem: &Problem) -> bool {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.ends_with(":alreadyReplaced") || kind.ends_with(":malformed")
}

fn signing_request(name: &CertificateName, key: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut params = CertificateParams::new(vec![name.to_string()])?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(key)?.der().to_vec())
}

fn unusable(error: &rcgen::Error) -> AcmeError {
    AcmeError::Certificate(error.to_string())
}
