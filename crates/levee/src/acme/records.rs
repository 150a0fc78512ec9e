//! Records in DNS by which authorities see that a name is ours.
//!
//! ```text
//!   follow CNAMEs ──▶ write down ──▶ put in ──▶ wait until all name servers of the zone know it
//!                                                                                   │
//!                             cross off ◀── take out ◀── the authority looks ◀──────┘
//! ```
//!
//! A record is written down before it is put in, so a server that is killed in the middle of an
//! order finds at its next start what it may have left behind. Who else has records at the same
//! name (another client, another server of the site) keeps them. What cannot be taken out, because
//! the name server is away, stays written down and is tried again.

use std::sync::Arc;
use std::time::Duration;

use levee_dns::{DomainName, Kind, Record, Value, Zone, wait_until_shown};
use levee_net::Shared;
use tokio::time::{Instant, timeout, timeout_at};

use super::delegation::{first_place, place_of, zone_of};
use super::error::AcmeError;
use super::name::CertificateName;
use super::store::{CertificateStore, ShownRecord, StoreError};
use crate::state::off_thread;

/// Zones that we may change, by their names.
pub type KnownZones = Vec<(DomainName, Arc<dyn Zone>)>;

/// See the head of this file.
pub struct Records {
    zones: KnownZones,
    list: Arc<List>,
}

/// What is written down, and where.
struct List {
    store: CertificateStore,
    ours: Shared<Vec<ShownRecord>>,
    /// Held by whoever makes a change: no older list is ever written after a newer one.
    changing: Shared<()>,
}

/// Why a record is still in DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftBehind {
    pub name: DomainName,
    /// Where the authority looked for it; empty where that was not written down.
    pub asked_at: String,
    pub cause: String,
}

/// How long others may remember a record: not until the next one is asked for.
const RECORD_TTL: Duration = Duration::from_secs(30);
/// How long a server that stops waits until its records are out of DNS.
const FAREWELL_MAX: Duration = Duration::from_secs(3);
/// How long it is waited for the zone's other name servers. Those that are told of changes have
/// them within seconds; those that look by themselves may need hours, which no order lasts.
const COPIES_MAX: Duration = Duration::from_secs(60);

impl Records {
    /// Records in these zones, beside what was put into them before a crash. Blocks.
    ///
    /// # Errors
    /// When what was written down cannot be read.
    pub fn open(zones: KnownZones, store: CertificateStore) -> Result<Self, StoreError> {
        let list = List {
            ours: Shared::new(store.records()?),
            store,
            changing: Shared::new(()),
        };
        let list = Arc::new(list);
        Ok(Self { zones, list })
    }

    /// Puts in the record that shows that `name` is ours, and waits until all name servers of its
    /// zone know it, or a minute is over.
    ///
    /// # Errors
    /// When there is no zone for it, or the zone does not take it.
    ///
    /// Cancel safety: what was put in is written down.
    pub(super) async fn show(&self, name: &CertificateName, text: String) -> Result<(), AcmeError> {
        let (place, zone) = place_of(name, &self.zones).await?;
        self.write_down(ShownRecord {
            name: place.to_string(),
            text: text.clone(),
            asked_at: first_place(name)?.to_string(),
        })
        .await?;
        let value = Value::Text(text);
        let refused = |error| AcmeError::Record {
            name: place.clone(),
            error,
        };
        let record = Record {
            name: place.clone(),
            value: value.clone(),
            ttl: RECORD_TTL,
        };
        zone.add(record).await.map_err(refused)?;
        let there = zone.read(&place, Kind::Text).await.map_err(refused)?;
        if !there.contains(&value) {
            return Err(AcmeError::RecordNotShown(place));
        }
        wait_for_copies(zone, &place, &value).await;
        Ok(())
    }

    /// Takes out everything that is written down. One that stays is told.
    ///
    /// Cancel safety: what is not yet crossed off is taken out by the next call.
    pub(super) async fn take_back(&self) -> Option<LeftBehind> {
        let mut left = None;
        for record in self.list.ours.with(|ours| ours.clone()) {
            let Ok(name) = record.name.parse::<DomainName>() else {
                continue;
            };
            let gone = self.take_out(&name, &record).await;
            let asked_at = record.asked_at;
            left = left.or(gone.err().map(|cause| LeftBehind {
                name,
                asked_at,
                cause,
            }));
        }
        left
    }

    /// Takes out everything when the server stops, but waits for no name server that is away.
    ///
    /// Cancel safety: what is still there goes at the next start.
    pub async fn finish(&self) {
        let left = timeout(FAREWELL_MAX, self.take_back()).await;
        let cause = match left {
            Ok(None) => return,
            Ok(Some(left)) => left.cause,
            Err(_) => format!("not done within {} s", FAREWELL_MAX.as_secs()),
        };
        tracing::warn!(%cause, "a record for the authority is still in DNS: it goes at the next start");
    }

    async fn take_out(&self, name: &DomainName, record: &ShownRecord) -> Result<(), String> {
        let zone = zone_of(name, &self.zones).ok_or("no zone of [dns] holds it any more")?;
        let gone = zone.remove(name.clone(), Value::Text(record.text.clone()));
        gone.await.map_err(|error| error.to_string())?;
        let record = record.clone();
        let crossed = self.change(move |ours| ours.retain(|one| *one != record));
        crossed.await.map_err(|error| error.to_string())
    }

    async fn write_down(&self, record: ShownRecord) -> Result<(), StoreError> {
        self.change(|ours| {
            if !ours.contains(&record) {
                ours.push(record);
            }
        })
        .await
    }

    /// Writes the list down with this change, on a thread that may wait for the disk.
    ///
    /// Cancel safety: dropped half-way, the change is made all the same.
    async fn change(
        &self,
        edit: impl FnOnce(&mut Vec<ShownRecord>) + Send + 'static,
    ) -> Result<(), StoreError> {
        let list = Arc::clone(&self.list);
        off_thread(move || list.change(edit)).await
    }
}

impl List {
    /// Blocks for two disk flushes, and for the changes before this one.
    fn change(&self, edit: impl FnOnce(&mut Vec<ShownRecord>)) -> Result<(), StoreError> {
        self.changing.with(|()| {
            let mut next = self.ours.with(|ours| ours.clone());
            edit(&mut next);
            self.store.keep_records(&next)?;
            self.ours.replace(next);
            Ok(())
        })
    }
}

/// Waits until all name servers of the zone know the record, but not for ever.
async fn wait_for_copies(zone: &dyn Zone, place: &DomainName, value: &Value) {
    // Looking for them counts: each name may be waited for.
    let until = Instant::now() + COPIES_MAX;
    let late = || format!("not found within {} s", COPIES_MAX.as_secs());
    let found = timeout_at(until, zone.copies()).await;
    let found = found.map_or_else(
        |_| Err(late()),
        |found| found.map_err(|error| error.to_string()),
    );
    let servers = match found {
        Ok(servers) => servers,
        Err(error) => {
            tracing::warn!(name = %place, %error, "the zone's other name servers are not known");
            return;
        }
    };
    let left = until.saturating_duration_since(Instant::now());
    let laggards = wait_until_shown(servers, (place, value), left).await;
    for laggard in laggards {
        tracing::warn!(
            name = %place,
            "a name server of the zone may not know the record for the authority: {laggard}"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use levee_dns::{Change, Doing};
    use tokio::net::TcpListener;

    use super::*;
    use crate::state::slow_file::{SlowFile, Waited};

    fn record(text: &str) -> ShownRecord {
        ShownRecord {
            name: "_acme-challenge.a.example".into(),
            text: text.into(),
            asked_at: "_acme-challenge.a.example".into(),
        }
    }

    #[tokio::test]
    async fn a_slow_disk_holds_up_the_record_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = CertificateStore::open(folder.path()).unwrap();
        let records = Records::open(vec![], store.clone()).unwrap();
        records.write_down(record("first")).await.unwrap();
        let place = folder.path().join("certificates/records-in-dns.json.new");
        let slow = SlowFile::at(&place);
        let others = async { slow.release() };
        let (written, waited) = tokio::join!(records.write_down(record("lost")), others);
        assert_eq!(waited, Waited::Alone);
        let error = written.unwrap_err().to_string();
        assert!(error.contains("records-in-dns.json"), "{error}");
        // What could not be written down is not put in, and is not known.
        records.write_down(record("second")).await.unwrap();
        assert_eq!(store.records().unwrap(), ["first", "second"].map(record));
    }

    /// A zone whose name servers are found after a while, and are silent.
    #[derive(Debug)]
    struct Slow {
        wait: Duration,
        server: SocketAddr,
    }

    impl Zone for Slow {
        fn change(&self, _: Change) -> Doing<'_, ()> {
            Box::pin(async { Ok(()) })
        }

        fn read<'a>(&'a self, _: &'a DomainName, _: Kind) -> Doing<'a, Vec<Value>> {
            Box::pin(async { Ok(vec![]) })
        }

        fn copies(&self) -> Doing<'_, Vec<SocketAddr>> {
            Box::pin(async {
                tokio::time::sleep(self.wait).await;
                Ok(vec![self.server])
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn looking_for_the_name_servers_counts_as_waiting_for_them() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = silent.local_addr().unwrap();
        let place = "_acme-challenge.a.example".parse().unwrap();
        for wait in [COPIES_MAX - Duration::from_secs(2), 2 * COPIES_MAX] {
            let began = Instant::now();
            let zone = Slow { wait, server };
            wait_for_copies(&zone, &place, &Value::Text("proof".into())).await;
            // By the clock of the test, which jumps to whatever is waited for.
            let waited = began.elapsed().as_secs();
            assert_eq!(waited, COPIES_MAX.as_secs());
        }
    }
}
