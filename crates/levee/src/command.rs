//! The command line as a value.

mod community;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};
use levee_control::{DRILL_LENGTH_MAX, DRILL_RATE_MAX};
use levee_dns::DomainName;
use levee_net::ListenAddress;
use levee_trust::PublicKey;
use levee_vocab::{ByteRate, HostName};

pub use self::community::{Community, Desk, Validity};
use crate::settings::{rate_or_nothing, socket, time};

/// A web server and reverse proxy for sites that help each other.
///
/// Levee serves a folder, or stands in front of an application. When more visitors come at once
/// than the site's line can carry, other sites of its community serve some of them.
#[derive(Debug, Parser)]
#[command(
    name = "levee",
    version,
    disable_help_subcommand = true,
    after_help = "Begin with:\n  \
        levee serve ./public         serve a folder at http://localhost:8080\n  \
        levee check levee.toml       tell what is wrong in a settings file\n  \
        levee serve -c levee.toml    serve what it says\n  \
        levee status                 how the running server is\n\n\
        `levee COMMAND --help` tells more of each."
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a site.
    #[command(after_help = "levee serve ./public\nlevee serve -c levee.toml")]
    Serve(Serve),
    /// Run a registry, where the members of a community find each other.
    #[command(
        after_help = "levee registry\nlevee registry --peer a.example.org:7070 --peer \
        b.example.org:7070 --peer c.example.org:7070"
    )]
    Registry(Registry),
    /// Keep the member list of a closed community, and this site's own key.
    #[command(subcommand)]
    Community(Community),
    /// Run a name server for a domain of the community, such as that of its aliases.
    Dns(NameServerOrder),
    /// Check a settings file and tell every mistake in it.
    Check {
        /// The settings file.
        file: PathBuf,
    },
    /// Print what every setting is in the end, and where it came from.
    Explain {
        /// The settings file.
        file: Option<PathBuf>,
        /// Print the reference page of all settings instead.
        #[arg(long, conflicts_with = "file")]
        reference: bool,
    },
    /// Let a running server read its settings again, and tell what came of it.
    Reload {
        /// Which server.
        #[command(flatten)]
        server: Server,
    },
    /// Remove objects from the caches of a running server and of its rescue servers.
    #[command(after_help = "levee purge /news\nlevee purge --key article-7 --key front --soft")]
    Purge {
        /// Which server.
        #[command(flatten)]
        server: Server,
        /// The URL of a page, or its path; all variants of it are meant.
        #[arg(required_unless_present = "key")]
        url: Option<String>,
        /// A word of `Surrogate-Key`: everything that carries it is meant.
        #[arg(long, value_name = "KEY", conflicts_with = "url")]
        key: Vec<String>,
        /// Make them old instead: they are shown while newer ones are fetched.
        #[arg(long)]
        soft: bool,
        /// Print the JSON as it is.
        #[arg(long)]
        json: bool,
    },
    /// Print the state of a running server.
    Status {
        /// Which server.
        #[command(flatten)]
        server: Server,
        /// Print the JSON as it is.
        #[arg(long)]
        json: bool,
    },
    /// Play a site's access log again: would it have survived, with how many neighbours?
    #[command(after_help = "levee replay access.log --link \"10 Mbit/s\"\n\
        levee replay access.log.2.gz access.log.1 access.log -c levee.toml --neighbours \
        \"5 MB/s,500 kB/s\"")]
    Replay(Replay),
    /// Rehearse a rescue with the real community: announced to it, bounded, and ended by anybody.
    #[command(
        after_help = "levee drill --rate 20 --time 60s --path / --path /news\n\
        levee drill stop"
    )]
    Drill(Drill),
    /// Make certificates for tests.
    Certificate {
        /// How.
        #[command(subcommand)]
        action: CertificateAction,
    },
    /// Watch a running server.
    Top {
        /// Which server.
        #[command(flatten)]
        server: Server,
    },
    /// Play experiments with emulated hosts: `list`, `run NAME`, `report`.
    ///
    /// Runs the program `levee-lab`, which knows the rest: `levee lab run --help`.
    #[command(disable_help_flag = true)]
    Lab {
        /// What `levee-lab` is told.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<OsString>,
    },
    /// Print the completions of a shell.
    #[command(after_help = "levee completion bash > /usr/share/bash-completion/completions/levee")]
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, of the commands and of the settings file.
    Manual {
        /// Folder for them.
        folder: PathBuf,
    },
}

/// `levee serve`.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("what").args(["folder", "config"]).required(true).multiple(true),
    override_usage = "levee serve [OPTIONS] <FOLDER>\n       levee serve [OPTIONS] -c <FILE>"
)]
pub struct Serve {
    /// Folder to serve; everything else has sane defaults.
    pub folder: Option<PathBuf>,
    /// Settings file.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address for visitors, or unix:/path, over what the file says.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<ListenAddress>,
    /// Name of the site, over what the file says.
    #[arg(long, value_name = "HOST")]
    pub name: Option<String>,
    /// Address of the admin pages, over what the file says.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin: Option<SocketAddr>,
}

/// `levee replay`.
#[derive(Clone, Debug, Args)]
pub struct Replay {
    /// Access logs in the order of time, combined or JSON, as they are or compressed by gzip; `-`
    /// is standard input.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The link of the site, over what the settings file says.
    #[arg(long, value_name = "RATE", value_parser = link_rate)]
    pub link: Option<ByteRate>,
    /// Settings file of the site, for its link and its thresholds.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Links of its neighbours, in the order in which they join. Without it, up to five like the
    /// site itself.
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = link_rate)]
    pub neighbours: Vec<ByteRate>,
    /// Print the figures as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `levee drill`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Drill {
    /// What to do instead of holding one.
    #[command(subcommand)]
    pub action: Option<DrillAction>,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// Visits a second, 1 to 200.
    #[arg(long, value_name = "VISITS", default_value = "20/s", value_parser = visits)]
    pub rate: u32,
    /// How long, up to 10 min.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = drill_length)]
    pub time: Duration,
    /// A page that is visited; again for more.
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = page_path)]
    pub path: Vec<String>,
    /// Certificates in PEM that are believed instead of this machine's, where visitors come by
    /// HTTPS.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `levee drill stop`.
#[derive(Debug, Subcommand)]
pub enum DrillAction {
    /// End the drill that this server holds, or its part in that of another.
    Stop {
        /// Which server.
        #[command(flatten)]
        server: Server,
    },
}

/// `levee certificate ...`.
#[derive(Debug, Subcommand)]
pub enum CertificateAction {
    /// Certify names by an authority of your own, which is made in the same folder.
    #[command(after_help = "levee certificate local blog.test '*.aliases.test' 127.0.0.1")]
    Local {
        /// Names, wildcards and addresses, all in one certificate.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Where the authority is, and where the certificate goes.
        #[arg(long, value_name = "FOLDER", default_value = "levee-certificates")]
        folder: PathBuf,
    },
}

fn address(text: &str) -> Result<SocketAddr, String> {
    socket(text).map_err(|flaw| format!("this {flaw}"))
}

fn visits(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    match number.parse() {
        Ok(rate @ 1..=DRILL_RATE_MAX) => Ok(rate),
        Ok(_) | Err(_) => Err(format!(
            "give 1 to {DRILL_RATE_MAX} visits a second, e.g. 20/s"
        )),
    }
}

fn drill_length(text: &str) -> Result<Duration, String> {
    let length = time(text)?;
    let is_whole = length.subsec_nanos() == 0 && !length.is_zero();
    match is_whole && length <= DRILL_LENGTH_MAX {
        true => Ok(length),
        false => Err("give 1 s to 10 min, in whole seconds".to_owned()),
    }
}

fn page_path(text: &str) -> Result<String, String> {
    let is_target = text.parse::<http::uri::PathAndQuery>().is_ok();
    match is_target && text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("give a path of this site, e.g. /news".to_owned()),
    }
}

fn link_rate(text: &str) -> Result<ByteRate, String> {
    match rate_or_nothing(text)? {
        ByteRate::ZERO => Err(format!("`{text}` is no rate at all")),
        rate => Ok(rate),
    }
}

/// `levee registry`.
#[derive(Debug, Args)]
pub struct Registry {
    /// Address for the members.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "0.0.0.0:7070",
        value_parser = address
    )]
    pub listen: SocketAddr,
    /// Believe members at private and loopback addresses.
    #[arg(long)]
    pub allow_private: bool,
    /// Public key of the authority: the registry of a closed community takes its members only.
    #[arg(long, value_name = "KEY", requires = "state")]
    pub authority: Option<PublicKey>,
    /// File with the authority's member list, read again when it changes.
    #[arg(long, value_name = "FILE", requires = "authority")]
    pub members: Option<PathBuf>,
    /// Folder for the registry's own key, made at the first start, and for the newest list.
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// Another registry of the same community; again for more. The same list may be given to all:
    /// a registry knows itself.
    #[arg(long, value_name = "HOST:PORT", value_parser = peer)]
    pub peer: Vec<String>,
    /// Address for its operator: `/status.json` says how it stands with its peers.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin: Option<SocketAddr>,
}

fn peer(text: &str) -> Result<String, String> {
    let is_address = text.parse::<SocketAddr>().is_ok();
    let named = text.rsplit_once(':').is_some_and(|(host, port)| {
        host.parse::<HostName>().is_ok() && port.parse().is_ok_and(|port: u16| port > 0)
    });
    match is_address || named {
        true => Ok(text.to_owned()),
        false => Err("give a host and a port, e.g. b.example.org:7070".to_owned()),
    }
}

/// `levee dns`.
#[derive(Clone, Debug, Args)]
pub struct NameServerOrder {
    /// Address to answer at, by UDP and TCP.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "0.0.0.0:53",
        value_parser = address
    )]
    pub listen: SocketAddr,
    /// Name of the zone.
    #[arg(long, value_name = "NAME")]
    pub zone: DomainName,
    /// Zone file, with its SOA and NS records.
    #[arg(long, value_name = "FILE")]
    pub zone_file: PathBuf,
    /// Keys that may change the zone: on each line `name:algorithm:secret`, and the name at and
    /// below which it may.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// A name server that keeps a copy; again for more.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub secondary: Vec<SocketAddr>,
    /// Folder where updates outlive a restart.
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
}

/// Which running server is meant.
#[derive(Debug, Args)]
pub struct Server {
    /// Its admin address.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9100",
        value_parser = address
    )]
    pub admin: SocketAddr,
    /// Its settings file, from which the admin address is read.
    #[arg(short, long, value_name = "FILE", conflicts_with = "admin")]
    pub config: Option<PathBuf>,
}

impl Server {
    /// Where its admin pages are.
    ///
    /// # Errors
    /// A sentence for the operator, where its settings cannot be read.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let Some(path) = &self.config else {
            return Ok(self.admin);
        };
        let settings = crate::settings::load(path);
        let settings = settings.map_err(|complaints| crate::explain::told(path, &complaints))?;
        Ok(settings.admin)
    }
}
