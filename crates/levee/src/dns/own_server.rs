//! A name server of our own: its files, its sockets, its tasks. For a site (`dns.listen`) and for a
//! community's domain (`levee dns`).

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use levee_dns::{
    DomainName, Grant, Keeps, Memory, OwnZone, OwnZoneSettings, Renewal, ZoneFile, ZoneFileError,
};
use levee_net::ListenerError;
use tokio::task::JoinHandle;

use super::read_key;
use crate::settings::OwnServer;
use crate::state::StateFolder;

/// The sockets of a name server.
#[derive(Debug)]
pub struct NameSockets {
    udp: UdpSocket,
    tcp: TcpListener,
}

impl NameSockets {
    /// Binds both at `listen`.
    ///
    /// # Errors
    /// A sentence with the way out.
    pub fn bind(listen: SocketAddr) -> Result<Self, String> {
        let told = |cause| format!("{} (for the name server)", ListenerError::at(listen, cause));
        let tcp = TcpListener::bind(listen).map_err(told)?;
        let address = tcp.local_addr().map_err(told)?;
        let udp = UdpSocket::bind(address).map_err(told)?;
        tcp.set_nonblocking(true).map_err(told)?;
        udp.set_nonblocking(true).map_err(told)?;
        Ok(Self { udp, tcp })
    }

    /// Where they are bound.
    ///
    /// # Errors
    /// As the operating system.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.tcp.local_addr().map_err(|error| error.to_string())
    }

    /// Serves `zone` at them. Needs a tokio runtime.
    ///
    /// # Errors
    /// As the operating system.
    pub fn serve(self, zone: &OwnZone) -> Result<Vec<JoinHandle<()>>, String> {
        let told = |error: std::io::Error| error.to_string();
        let udp = tokio::net::UdpSocket::from_std(self.udp).map_err(told)?;
        let tcp = tokio::net::TcpListener::from_std(self.tcp).map_err(told)?;
        Ok(zone.serve(udp, tcp))
    }
}

/// The site's zone, as the settings have it.
///
/// # Errors
/// A sentence that names the file.
pub fn open_zone(
    (zone, own): (DomainName, &OwnServer),
    state: Option<StateFolder>,
    seed: u64,
) -> Result<OwnZone, String> {
    // What is put in belongs to the rescues of this process; its keeper puts it in again.
    let memory = state.map(|state| remember(state, serial_file(&zone), Keeps::Serial));
    let settings = OwnZoneSettings {
        grants: grants(&zone, own)?,
        zone,
        file: read_zone(&own.zone_file)?,
        memory: memory.transpose()?,
        secondaries: own.secondaries.clone(),
        seed,
    };
    read_by(&own.zone_file, settings)
}

/// How the files of serials begin.
pub(super) const SERIAL_FILE: &str = "dns-serial-";

/// The serial of a site's zone, in the state folder.
pub(super) fn serial_file(zone: &DomainName) -> String {
    format!("{SERIAL_FILE}{zone}")
}

/// Whether the serial that a site's zone had can be read.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn check_serial(zone: &DomainName, state: &StateFolder) -> Result<(), String> {
    let memory = remember(state.clone(), serial_file(zone), Keeps::Serial)?;
    memory.check().map_err(|error| error.to_string())
}

fn grants(zone: &DomainName, own: &OwnServer) -> Result<Vec<Grant>, String> {
    let Some(path) = &own.key else {
        return Ok(vec![]);
    };
    let scope = zone.clone();
    let key = read_key(path)?;
    Ok(vec![Grant { key, scope }])
}

/// A zone file and its keys, read again and not in force yet.
pub struct NewZone {
    zone: OwnZone,
    file: ZoneFile,
    grants: Vec<Grant>,
}

impl NewZone {
    /// Reads the file in `path` again, for `zone`, which `grants` may change.
    ///
    /// # Errors
    /// A sentence that names the file and the line; the zone is as it was.
    pub fn read(zone: &OwnZone, path: &Path, grants: Vec<Grant>) -> Result<Self, String> {
        let read = zone.read_file(&read_zone(path)?);
        let file = read.map_err(|error| {
            format!(
                "zone file {}: {error}; the old zone stays, mend the file and reload",
                path.display()
            )
        })?;
        let zone = zone.clone();
        Ok(Self { zone, file, grants })
    }

    /// The same for the zone of a site.
    ///
    /// # Errors
    /// As [`NewZone::read`].
    pub fn of_site(zone: &OwnZone, own: &OwnServer) -> Result<Self, String> {
        Self::read(zone, &own.zone_file, grants(zone.zone(), own)?)
    }

    /// Puts it in force; gives a sentence where anything changed.
    ///
    /// # Errors
    /// A sentence; the zone is as it was.
    pub fn serve(self) -> Result<Option<String>, String> {
        let zone = self.zone.zone();
        let renewed = self.zone.renew(self.file, self.grants);
        match renewed.map_err(|error| format!("zone {zone}: {error}; the old zone stays"))? {
            Renewal::Unchanged => Ok(None),
            Renewal::Changed { serial } => Ok(Some(format!("zone {zone} has serial {serial}"))),
        }
    }
}

/// The zone of `settings`, whose file is `path`.
///
/// # Errors
/// A sentence that names the file.
pub fn read_by(path: &Path, settings: OwnZoneSettings) -> Result<OwnZone, String> {
    OwnZone::new(settings).map_err(|error| match &error {
        // It names its own file.
        ZoneFileError::Kept { .. } => error.to_string(),
        ZoneFileError::Text { .. }
        | ZoneFileError::NotSaved(_)
        | ZoneFileError::Foreign { .. }
        | ZoneFileError::Soa { .. }
        | ZoneFileError::NameServer { .. }
        | ZoneFileError::OtherName { .. } => format!("zone file {}: {error}", path.display()),
    })
}

/// The text of a zone file.
///
/// # Errors
/// A sentence that names it.
pub fn read_zone(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read zone file {}: {error}", path.display()))
}

/// What a zone had in `file` of the state folder, and has there from now on.
///
/// # Errors
/// A sentence, where it cannot be read.
pub fn remember(state: StateFolder, file: String, keeps: Keeps) -> Result<Memory, String> {
    let text = state.read(&file).map_err(|error| error.to_string())?;
    let place = state.path().join(&file).display().to_string();
    let save = move |text: &str| {
        let written = match keeps {
            // It is in force all the same.
            Keeps::Serial => state.keep(&file, text),
            Keeps::Updates => state.replace(&file, text),
        };
        written.map_err(|error| {
            tracing::error!(%error, "what a zone is to remember cannot be written down");
            error.to_string()
        })
    };
    Ok(Memory {
        place,
        text: text.unwrap_or_default(),
        save: std::sync::Arc::new(save),
        keeps,
    })
}
