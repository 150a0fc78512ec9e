//! What became of a purge: here, and at each of our rescue servers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use levee_control::{Confirmation, PurgeOutcome};
use levee_vocab::{Purge, PurgeKind};
use serde::{Deserialize, Serialize};

/// The answer to whoever purges, as JSON or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// What was to go: a path, `keys a b`, or `everything`.
    pub purged: String,
    /// Whether objects were made old instead of removed.
    pub soft: bool,
    /// Objects that were in our own cache.
    pub objects: u64,
    /// Rescue servers that have confirmed.
    pub confirmed: usize,
    /// Rescue servers that have not.
    pub unconfirmed: usize,
    /// Each rescue server.
    pub rescue_servers: Vec<ServerReport>,
}

/// What became of it at one rescue server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its name and port.
    pub site: String,
    /// Whether it shows none of the objects as fresh any more.
    pub confirmed: bool,
    /// Objects that it had; none where it has not confirmed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub objects: Option<u64>,
    /// Why it has not confirmed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
}

impl PurgeReport {
    /// A purge that found so many objects here, and what the rescue servers said.
    pub fn new(purge: &Purge, objects: u64, servers: &[Confirmation]) -> Self {
        let rescue_servers: Vec<ServerReport> = servers.iter().map(told).collect();
        let confirmed = rescue_servers.iter().filter(|server| server.confirmed);
        let confirmed = confirmed.count();
        Self {
            purged: purge.scope.to_string(),
            soft: purge.kind == PurgeKind::Soft,
            objects,
            confirmed,
            unconfirmed: rescue_servers.len() - confirmed,
            rescue_servers,
        }
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// # Errors
    /// A sentence where a rescue server has not confirmed.
    pub fn confirmed_by_all(&self) -> Result<(), String> {
        match self.unconfirmed {
            0 => Ok(()),
            1 => Err("one rescue server has not confirmed".to_owned()),
            many => Err(format!("{many} rescue servers have not confirmed")),
        }
    }
}

/// What rescue servers said to all purges since the start.
#[derive(Debug, Default)]
pub struct PurgeAnswers {
    confirmed: AtomicU64,
    unconfirmed: AtomicU64,
}

impl PurgeAnswers {
    /// Counts what they said to one purge.
    pub fn note(&self, report: &PurgeReport) {
        let add = |to: &AtomicU64, count: usize| to.fetch_add(count as u64, Ordering::Relaxed);
        add(&self.confirmed, report.confirmed);
        add(&self.unconfirmed, report.unconfirmed);
    }

    /// Purges at one rescue server that it has confirmed.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Those that it has not confirmed in time.
    pub fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
    }
}

fn told(confirmation: &Confirmation) -> ServerReport {
    let (objects, why) = match confirmation.outcome {
        PurgeOutcome::Confirmed { objects } => (Some(objects), None),
        PurgeOutcome::Refused => (None, Some("it does not know how to purge")),
        PurgeOutcome::Silent => (None, Some("no answer within 2 s; it may still come")),
        PurgeOutcome::Lost => (None, Some("its link was lost, and with it the rescue")),
    };
    ServerReport {
        site: confirmation.site.to_string(),
        confirmed: objects.is_some(),
        objects,
        why: why.map(str::to_owned),
    }
}

/// For people, one line for each server.
impl fmt::Display for PurgeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.soft {
            true => "made old",
            false => "removed",
        };
        writeln!(f, "{}: {} {done} here", self.purged, Count(self.objects))?;
        for server in &self.rescue_servers {
            match (server.objects, &server.why) {
                (Some(objects), _) => {
                    writeln!(f, "{}: confirmed, {} {done}", server.site, Count(objects))?;
                }
                (None, why) => {
                    let why = why.as_deref().unwrap_or_default();
                    writeln!(f, "{}: not confirmed: {why}", server.site)?;
                }
            }
        }
        Ok(())
    }
}

struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 object"),
            many => write!(f, "{many} objects"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use levee_vocab::WebAddress;

    #[test]
    fn a_report_names_who_has_confirmed_and_who_has_not() {
        let purge = Purge::tags("news sport", PurgeKind::Hard).unwrap();
        let confirmation = |site: &str, outcome| Confirmation {
            site: WebAddress {
                host: site.parse().unwrap(),
                port: 80,
            },
            outcome,
        };
        let servers = [
            confirmation("a.example", PurgeOutcome::Confirmed { objects: 1 }),
            confirmation("b.example", PurgeOutcome::Silent),
        ];
        let report = PurgeReport::new(&purge, 3, &servers);
        assert_eq!(
            report.to_string(),
            "keys news sport: 3 objects removed here\n\
             a.example: confirmed, 1 object removed\n\
             b.example: not confirmed: no answer within 2 s; it may still come\n"
        );
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["unconfirmed"], 1);
        assert_eq!(json["rescue_servers"][0]["objects"], 1);
        assert_eq!(json["rescue_servers"][1]["confirmed"], false);
        assert!(report.confirmed_by_all().is_err());
        let read: PurgeReport = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(read, report);
    }
}
