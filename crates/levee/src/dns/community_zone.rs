//! `levee dns`: the name server of a community's alias domain, whose members change their part.

use std::path::Path;
use std::pin::pin;

use levee_dns::{DomainName, Grant, Keeps, OwnZone, OwnZoneSettings, TsigKey};

use tokio::signal::unix::{SignalKind, signal};

use super::own_server::{NameSockets, NewZone, read_by, read_zone, remember};
use crate::command::NameServerOrder;
use crate::serve::told_to_stop;
use crate::state::{StateFolder, off_thread};

/// How the files begin that have what updates put in.
pub(super) const UPDATES_FILE: &str = "dns-updates-";

/// Serves until SIGTERM or SIGINT. SIGHUP has the zone file and the keys read again.
///
/// # Errors
/// A sentence for the operator: a taken port, a file that cannot be used.
pub async fn run(order: &NameServerOrder) -> Result<(), String> {
    let zone: DomainName = order.zone.clone();
    let state = order.state.as_deref().map(StateFolder::open).transpose();
    let state = state.map_err(|error| error.to_string())?;
    let file = format!("{UPDATES_FILE}{zone}");
    let memory = state.map(|state| remember(state, file, Keeps::Updates));
    let grants = grants_of(order)?;
    if grants.is_empty() {
        tracing::info!("no keys are given, so nobody can change this zone");
    }
    let settings = OwnZoneSettings {
        zone: zone.clone(),
        file: read_zone(&order.zone_file)?,
        memory: memory.transpose()?,
        grants,
        secondaries: order.secondary.clone(),
        seed: getrandom::u64().unwrap_or(0x5EED),
    };
    let own = read_by(&order.zone_file, settings)?;
    let sockets = NameSockets::bind(order.listen)?;
    let address = sockets.address()?;
    let tasks = sockets.serve(&own)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    println!("levee dns: ready on {address}, zone {zone}");
    let mut stop = pin!(told_to_stop());
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = hang_up.recv() => match reload(&own, order).await {
                Ok(done) => tracing::info!("reloaded{done}"),
                Err(error) => tracing::error!("not reloaded: {error}"),
            },
        }
    }
    for task in &tasks {
        task.abort();
    }
    Ok(())
}

/// As [`read_again`], on a thread that may wait for the disk.
///
/// Cancel safety: dropped half-way, it is done all the same.
async fn reload(own: &OwnZone, order: &NameServerOrder) -> Result<String, String> {
    let (own, order) = (own.clone(), order.clone());
    off_thread(move || read_again(&own, &order)).await
}

/// Gives what has changed of the zone, behind a semicolon.
fn read_again(own: &OwnZone, order: &NameServerOrder) -> Result<String, String> {
    let new = NewZone::read(own, &order.zone_file, grants_of(order)?)?;
    let changed = new.serve()?;
    Ok(changed.map(|zone| format!("; {zone}")).unwrap_or_default())
}

fn grants_of(order: &NameServerOrder) -> Result<Vec<Grant>, String> {
    match &order.keys {
        Some(path) => read_grants(path, &order.zone),
        None => Ok(vec![]),
    }
}

/// Keys, one a line: the key, and the names that it may change, without which it may change all.
fn read_grants(path: &Path, zone: &DomainName) -> Result<Vec<Grant>, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the keys in {name}: {error}"))?;
    let mut grants = vec![];
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let told = |what: String| format!("{name} line {}: {what}", index + 1);
        let key: TsigKey = key.parse().map_err(|error| told(format!("{error}")))?;
        let scope = match words.next() {
            None => zone.clone(),
            Some(scope) => scope.parse().map_err(|error| told(format!("{error}")))?,
        };
        if !zone.contains(&scope) {
            return Err(told(format!("`{scope}` does not lie in zone `{zone}`")));
        }
        if words.next().is_some() {
            return Err(told("a line has a key and one name".into()));
        }
        grants.push(Grant { key, scope });
    }
    Ok(grants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::slow_file::{SlowFile, Waited};

    #[tokio::test]
    async fn a_slow_disk_holds_up_the_reload_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let zone: DomainName = "aliases.example.net".parse().unwrap();
        let zone_file = folder.path().join("zone");
        let text =
            "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\nns IN A 192.0.2.1\n";
        std::fs::write(&zone_file, text).unwrap();
        let state = StateFolder::open(folder.path()).unwrap();
        let settings = OwnZoneSettings {
            zone: zone.clone(),
            file: text.into(),
            memory: Some(remember(state, "updates".into(), Keeps::Updates).unwrap()),
            grants: vec![],
            secondaries: vec![],
            seed: 1,
        };
        let own = read_by(&zone_file, settings).unwrap();
        let order = NameServerOrder {
            listen: ([127, 0, 0, 1], 0).into(),
            zone,
            zone_file: zone_file.clone(),
            keys: None,
            secondary: vec![],
            state: None,
        };
        std::fs::write(&zone_file, format!("{text}new IN A 192.0.2.2\n")).unwrap();
        let slow = SlowFile::at(&folder.path().join("updates.new"));
        let others = async { slow.release() };
        let (told, waited) = tokio::join!(reload(&own, &order), others);
        assert_eq!(waited, Waited::Alone);
        assert!(told.unwrap_err().contains("the old zone stays"));
        let told = reload(&own, &order).await.unwrap();
        assert!(told.contains("has serial"), "{told}");
    }

    fn grants(text: &str) -> Result<Vec<Grant>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, text).unwrap();
        read_grants(&path, &"aliases.example.net".parse().unwrap())
    }

    #[test]
    fn each_key_has_its_names() {
        let text = "# members\n\nalice:hmac-sha256:c2VjcmV0 alice.aliases.example.net\n\
                    all:hmac-sha256:c2VjcmV0\n";
        let scopes: Vec<String> = grants(text)
            .unwrap()
            .iter()
            .map(|grant| grant.scope.to_string())
            .collect();
        assert_eq!(scopes, ["alice.aliases.example.net", "aliases.example.net"]);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, told) in [
            ("x", "line 1: a key is"),
            (
                "\na:hmac-sha256:c2VjcmV0 www.example.org",
                "line 2: `www.example.org`",
            ),
            ("a:hmac-sha256:c2VjcmV0 aliases.example.net x", "one name"),
        ] {
            let error = grants(text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
