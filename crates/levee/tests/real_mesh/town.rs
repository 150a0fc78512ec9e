//! A community whose registries are named by a BIND, and sites that ask it as every program does:
//! by `/etc/resolv.conf`.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::named::{Named, SECRET, Stage};
use crate::own_world::run;
use crate::program::Program;
use crate::registries::{Plan, Registry, get, until};

/// The domain that names the registries.
pub const DOMAIN: &str = "community.test";
/// Where every program looks names up; the network is our own.
const DNS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

pub struct Town {
    pub named: Named,
    folder: TempDir,
}

/// A running site.
pub struct Site {
    _program: Program,
    pub admin: SocketAddr,
}

impl Town {
    /// Starts a BIND with these SRV records, `priority weight port host` each, that live two
    /// seconds.
    pub fn with_records(services: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let resolver = folder.path().join("resolv.conf");
        std::fs::write(&resolver, "nameserver 127.0.0.1\n").unwrap();
        let resolver = resolver.to_str().unwrap();
        run(&["mount", "--bind", resolver, "/etc/resolv.conf"]);
        let mut zone = "$TTL 2\n@ IN SOA ns admin 1 60 30 3600 1\n@ IN NS ns\n\
                        ns IN A 127.0.0.1\na IN A 127.0.0.1\nb IN A 127.0.0.1\nc IN A 127.0.0.1\n"
            .to_owned();
        for service in services {
            zone.push_str(&format!("_levee-registry._tcp IN SRV {service}\n"));
        }
        let named = Named::start_as(&Stage {
            name: DOMAIN,
            zone: Some(&zone),
            at: Some(DNS),
            statement: "type primary; update-policy { grant community. zonesub ANY; };",
        });
        std::fs::create_dir(folder.path().join("public")).unwrap();
        std::fs::write(folder.path().join("public/index.html"), "hello").unwrap();
        Self { named, folder }
    }

    /// Changes the SRV records, by lines such as `add SRV 10 0 7071 a`.
    pub fn changes_records(&self, lines: &[&str]) {
        let mut update = Command::new("nsupdate");
        update.args(["-y", &format!("hmac-sha256:community.:{SECRET}")]);
        let mut update = update.stdin(Stdio::piped()).spawn().unwrap();
        let mut text = format!("server 127.0.0.1\nzone {DOMAIN}\n");
        for line in lines {
            let (verb, record) = line.split_once(' ').unwrap();
            let name = format!("_levee-registry._tcp.{DOMAIN}.");
            text.push_str(&format!("update {verb} {name} 2 {record}.{DOMAIN}.\n"));
        }
        text.push_str("send\n");
        let input = update.stdin.take();
        input.unwrap().write_all(text.as_bytes()).unwrap();
        assert!(update.wait().unwrap().success());
    }

    /// Registries on these ports, each with a link to all others.
    pub fn starts_registries(&self, ports: &[u16]) -> Vec<Registry> {
        let listen = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let peers = ports.iter().map(|port| listen(*port).to_string());
        let peers: Vec<String> = peers.collect();
        let start = |port: &u16| {
            Registry::start(&Plan {
                runner: vec![],
                listen: listen(*port),
                admin: listen(port + 1000),
                peers: peers.clone(),
            })
        };
        ports.iter().map(start).collect()
    }

    /// Starts a site with these lines in its `[community]`.
    pub fn starts_site(&self, name: &str, community: &str) -> Site {
        let text = format!(
            "[site]\nname = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
             [link]\nrate = \"1 MB/s\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [state]\nfolder = \"{name}\"\n[rescue]\nregistry_period = \"1 s\"\n\
             [community]\nrescue_listen = \"127.0.0.1:0\"\naddress = \"127.0.0.1\"\n\
             alias_domain = \"aliases.localhost\"\nallow_private = true\n{community}"
        );
        let file = format!("{name}.toml");
        std::fs::write(self.folder.path().join(&file), text).unwrap();
        let program = self.starts(&["serve", "-c", &file]);
        let admin = program.port("admin http://127.0.0.1:");
        Site {
            admin: (Ipv4Addr::LOCALHOST, admin).into(),
            _program: program,
        }
    }

    /// What a command prints, which must succeed.
    pub fn levee(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        command.current_dir(self.folder.path()).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts it in the folder of this town.
    pub fn starts(&self, arguments: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        Program::start(command.current_dir(self.folder.path()).args(arguments))
    }
}

impl Site {
    pub fn status(&self) -> Value {
        serde_json::from_str(&get(self.admin, "/status.json")).unwrap()
    }

    /// The addresses of the registries that it knows, the preferred one first.
    pub fn registries(&self) -> Vec<String> {
        let status = self.status();
        let all = status["registry"]["all"].as_array().unwrap();
        let address = |place: &Value| place["address"].as_str().unwrap().to_owned();
        all.iter().map(address).collect()
    }

    /// Waits until its status is so.
    pub fn reaches(&self, what: &str, mut holds: impl FnMut(&Value) -> bool) {
        let mut last = Value::Null;
        until(what, || {
            last = self.status();
            holds(&last)
        });
    }
}
