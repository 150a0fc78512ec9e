//! An authority, and members with their keys and the list, in a temporary folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use levee::command::{Community, Desk, Validity};
use levee::community_desk;
use levee::settings::TrustSettings;
use levee::trust::{Channel, CommunityStream, Trust, identity_at};
use levee_trust::{PublicKey, Role};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a busy machine; reached only when something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Stage {
    folder: TempDir,
    authority: PublicKey,
}

impl Stage {
    /// A community without members.
    pub fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let told = desk(&Community::Init {
            name: "mutual-aid.example".parse().unwrap(),
            desk: Desk {
                folder: folder.path().into(),
            },
            validity: Validity { days: 90 },
        });
        let key = told.unwrap().split('"').nth(1).unwrap().parse();
        Self {
            folder,
            authority: key.unwrap(),
        }
    }

    pub fn desk(&self) -> Desk {
        let folder = self.folder.path().into();
        Desk { folder }
    }

    pub fn authority(&self) -> PublicKey {
        self.authority
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// The key of `name`, made when it is asked for first.
    pub fn key(&self, name: &str) -> PublicKey {
        identity_at(&self.path(&format!("{name}.key")))
            .unwrap()
            .key()
    }

    pub fn adds(&self, name: &str, role: Role) {
        let told = desk(&Community::Add {
            name: name.parse().unwrap(),
            key: self.key(name),
            role,
            desk: self.desk(),
        });
        told.unwrap();
    }

    /// `name` with its key and the list as it is now.
    pub fn trust_of(&self, name: &str) -> Arc<Trust> {
        self.key(name);
        self.trust(name, Some(self.path("members.list")))
    }

    /// `name` with its key, and without a list.
    pub fn trust_without_list(&self, name: &str) -> Arc<Trust> {
        self.key(name);
        self.trust(name, None)
    }

    /// `name` as it starts with this state folder.
    pub fn starts(&self, name: &str, members: Option<PathBuf>, state: &Path) -> Arc<Trust> {
        let settings = self.settings(name, members);
        Arc::new(Trust::open(&settings, Some(state)).unwrap())
    }

    fn trust(&self, name: &str, members: Option<PathBuf>) -> Arc<Trust> {
        let settings = self.settings(name, members);
        Arc::new(Trust::open(&settings, None).unwrap())
    }

    fn settings(&self, name: &str, members: Option<PathBuf>) -> TrustSettings {
        TrustSettings {
            identity: Some(self.path(&format!("{name}.key"))),
            authority: Some(self.authority),
            members,
        }
    }
}

pub fn desk(wanted: &Community) -> Result<String, String> {
    community_desk::run(wanted)
}

/// How often something was refused for this cause.
pub fn denied(trust: &Trust, cause: &str) -> u64 {
    let all = trust.denied().all();
    all.iter()
        .find(|(word, _)| *word == cause)
        .map_or(0, |(_, count)| count.count)
}

/// Somebody who types lines into TLS with the key of `trust`.
pub struct Typist(CommunityStream);

impl Typist {
    pub async fn connects(trust: &Trust, channel: Channel, address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self(trust.connect(stream, channel).await.unwrap().0)
    }

    pub async fn types(&mut self, line: &str) {
        self.0
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        self.0.flush().await.unwrap();
    }

    /// The next line; empty at the end.
    pub async fn reads(&mut self) -> String {
        let mut line = Vec::new();
        let reading = async {
            while let Ok(byte) = self.0.read_u8().await {
                if byte == b'\n' {
                    break;
                }
                line.push(byte);
            }
        };
        timeout(PATIENCE, reading).await.expect("a line or the end");
        String::from_utf8(line).unwrap()
    }
}
