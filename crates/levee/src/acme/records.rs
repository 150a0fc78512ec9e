//! Records in DNS by which authorities see that a name is ours.
//!
//! ```text
//!   write down ──▶ put in ──▶ read again ──▶ the authority looks ──▶ take out ──▶ cross off
//! ```
//!
//! A record is written down before it is put in, so a server that is killed in the middle of an
//! order finds at its next start what it may have left behind. Who else has records at the same
//! name (another client, another server of the site) keeps them. What cannot be taken out, because
//! the name server is away, stays written down and is tried again.

use std::sync::Arc;
use std::time::Duration;

use levee_dns::{Cause, DomainName, Kind, Record, Value, Zone, ZoneError};
use levee_net::Shared;

use super::error::AcmeError;
use super::name::CertificateName;
use super::store::{CertificateStore, ShownRecord, StoreError};

/// Zones that we may change, by their names.
pub type KnownZones = Vec<(DomainName, Arc<dyn Zone>)>;

/// See the head of this file.
pub struct Records {
    zones: KnownZones,
    store: CertificateStore,
    /// What is written down.
    ours: Shared<Vec<ShownRecord>>,
}

/// Why a record is still in DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftBehind {
    pub name: DomainName,
    pub cause: String,
}

/// How long others may remember a record: not until the next one is asked for.
const RECORD_TTL: Duration = Duration::from_secs(30);

impl Records {
    /// Records in these zones, beside what was put into them before a crash. Blocks.
    ///
    /// # Errors
    /// When what was written down cannot be read.
    pub fn open(zones: KnownZones, store: CertificateStore) -> Result<Self, StoreError> {
        let ours = Shared::new(store.records()?);
        Ok(Self { zones, store, ours })
    }

    /// Puts in the record that shows that `name` is ours. Blocks for two disk flushes.
    ///
    /// # Errors
    /// When there is no zone for it, or the zone does not take it.
    ///
    /// Cancel safety: what was put in is written down.
    pub(super) async fn show(&self, name: &CertificateName, text: String) -> Result<(), AcmeError> {
        let place = place(name)?;
        let missing = || AcmeError::NoZone(name.clone());
        let zone = self.zone_of(&place).ok_or_else(missing)?;
        self.write_down(ShownRecord {
            name: place.to_string(),
            text: text.clone(),
        })?;
        let value = Value::Text(text);
        let refused = |error| refused(place.clone(), error);
        let record = Record {
            name: place.clone(),
            value: value.clone(),
            ttl: RECORD_TTL,
        };
        zone.add(record).await.map_err(refused)?;
        // A name server says nothing where the name is only another name for one elsewhere.
        //= RFC 2136 section 3.4.2.2
        let there = zone.read(&place, Kind::Text).await.map_err(refused)?;
        match there.contains(&value) {
            true => Ok(()),
            false => Err(AcmeError::RecordNotShown(place)),
        }
    }

    /// Takes out everything that is written down. One that stays is told.
    ///
    /// Cancel safety: what is not yet crossed off is taken out by the next call.
    pub(super) async fn take_back(&self) -> Option<LeftBehind> {
        let mut left = None;
        for record in self.ours.with(|ours| ours.clone()) {
            let Ok(name) = record.name.parse::<DomainName>() else {
                continue;
            };
            let gone = self.take_out(&name, &record).await;
            left = left.or(gone.err().map(|cause| LeftBehind { name, cause }));
        }
        left
    }

    async fn take_out(&self, name: &DomainName, record: &ShownRecord) -> Result<(), String> {
        let zone = self
            .zone_of(name)
            .ok_or("no zone of [dns] holds it any more")?;
        let gone = zone.remove(name.clone(), Value::Text(record.text.clone()));
        gone.await.map_err(|error| error.to_string())?;
        let crossed = self.change(|ours| ours.retain(|one| one != record));
        crossed.map_err(|error| error.to_string())
    }

    fn write_down(&self, record: ShownRecord) -> Result<(), StoreError> {
        self.change(|ours| {
            if !ours.contains(&record) {
                ours.push(record);
            }
        })
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<ShownRecord>)) -> Result<(), StoreError> {
        let mut next = self.ours.with(|ours| ours.clone());
        edit(&mut next);
        self.store.keep_records(&next)?;
        self.ours.replace(next);
        Ok(())
    }

    /// The smallest zone that holds `name`.
    fn zone_of(&self, name: &DomainName) -> Option<&dyn Zone> {
        let holding = self.zones.iter().filter(|(zone, _)| zone.contains(name));
        let smallest = holding.max_by_key(|(zone, _)| zone.to_string().len());
        smallest.map(|(_, zone)| &**zone)
    }
}

fn refused(name: DomainName, error: ZoneError) -> AcmeError {
    if let Cause::OtherName { target, .. } = error.cause {
        return AcmeError::RecordElsewhere { name, target };
    }
    AcmeError::Record { name, error }
}

/// Where authorities look.
//= RFC 8555 section 8.4: "The client constructs the validation domain name by prepending the
// label "_acme-challenge" to the domain name being validated, then provisions a TXT record"
pub(super) fn place(name: &CertificateName) -> Result<DomainName, AcmeError> {
    let place = DomainName::from(name.host()).below("_acme-challenge");
    place.map_err(|_| AcmeError::NoZone(name.clone()))
}
