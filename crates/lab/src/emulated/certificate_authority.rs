//! pebble on an emulated host: a certificate authority that speaks ACME, as Let's Encrypt does.
//!
//! It looks at sites as a real one: it asks the name server for their addresses, and their ports 80
//! and 443 for what they should show. Its own certificate is from a local authority.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::json;
use tokio::runtime;

use super::LabError;
use super::network::Host;
use super::program::{Call, Program};
use crate::crowd::authorities::Authorities;
use crate::crowd::client::{Following, Habit, Trail, Visitor};
use crate::crowd::meter::Traffic;
use crate::crowd::names::Names;
use crate::crowd::url::{Scheme, Url};

const PORT: u16 = 14_000;
const MANAGEMENT_PORT: u16 = 15_000;
/// Far longer than pebble takes to start, also beside a compiler.
const READY_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// A running authority. Dropped, it is ended.
#[derive(Debug)]
pub struct CertificateAuthority {
    _program: Program,
    directory: String,
    /// Who vouches for the authority itself.
    voucher: PathBuf,
    /// File with the root of its certificates.
    pub root: PathBuf,
}

/// What the authority shows of itself: PEM files for the addresses of its host.
#[derive(Clone, Debug)]
pub struct Face {
    /// Its certificate.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// Root of the local authority that signed it.
    pub voucher: PathBuf,
}

impl CertificateAuthority {
    /// Starts it on `host` with files in `folder`; it finds sites by `names`. Waits until it
    /// answers.
    pub fn start(
        host: &Host,
        folder: &Path,
        face: Face,
        names: SocketAddr,
    ) -> Result<Self, LabError> {
        fs::create_dir_all(folder).map_err(LabError::machine("make an authority's folder"))?;
        let settings = json!({"pebble": {
            "listenAddress": format!("{}:{PORT}", host.address),
            "managementListenAddress": format!("{}:{MANAGEMENT_PORT}", host.watched_at),
            "certificate": face.certificate,
            "privateKey": face.key,
            "httpPort": 80,
            "tlsPort": 443,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        fs::write(folder.join("pebble.json"), settings.to_string())
            .map_err(LabError::machine("write an authority's settings"))?;
        let names = names.to_string();
        let call = Call {
            program: "pebble",
            package: "pebble",
            arguments: &["-config", "pebble.json", "-dnsserver", &names],
            // It checks at once, and each time.
            environment: &[("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_AUTHZREUSE", "0")],
        };
        let authority = Self {
            _program: Program::start(host, folder, call)?,
            directory: format!("https://{}:{PORT}/dir", host.address),
            voucher: face.voucher,
            root: folder.join("root.pem"),
        };
        let root = authority.wait(host)?;
        fs::write(&authority.root, root).map_err(LabError::machine("write a root"))?;
        Ok(authority)
    }

    /// What a site is told to get its certificates from it, as a table of its settings.
    pub fn settings(&self) -> String {
        format!(
            "[acme]\nagree = true\ndirectory = \"{}\"\nroot = \"{}\"\n",
            self.directory,
            self.voucher.display()
        )
    }

    /// The root of its certificates, as soon as it tells.
    fn wait(&self, host: &Host) -> Result<Bytes, LabError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let authorities = Authorities::read(std::slice::from_ref(&self.voucher))
            .map_err(LabError::machine("read a root"))?;
        let known = [("authority".to_owned(), host.watched_at.into())];
        let traffic = Traffic::since(Instant::now());
        let visitor = Visitor::new(traffic, "levee-lab".to_owned(), Habit::OneRequestEach)
            .among(Names::Hosts(known.into()), Following::Follows)
            .believing(Some(authorities));
        let url = Url {
            scheme: Scheme::Https,
            host: host.watched_at.to_string(),
            port: MANAGEMENT_PORT,
            target: "/roots/0".to_owned(),
        };
        let end = Instant::now() + READY_WITHIN;
        while Instant::now() < end {
            let mut trail = Trail::default();
            let asking = visitor.fetch(&Method::GET, &url, &mut trail);
            if let Ok(root) = runtime.block_on(asking) {
                return Ok(root.body);
            }
            std::thread::sleep(LOOK);
        }
        Err(LabError::Awaited("the certificate authority"))
    }
}
