//! Loads that no packaged load generator makes: connections that stay, readers that are slow, and
//! a TLS handshake for every request.
//!
//! `cargo xtask bench peers` starts them against servers of its own on this machine; they refuse
//! any other address, and each is bounded in number and time. What they saw is one line of
//! `name=value` on standard output.

mod answer;
mod idle;
mod slow;
mod tls;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What `levee-lab load` is told.
#[derive(Clone, Debug, Args)]
pub struct LoadArguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Clone, Debug, Subcommand)]
enum Kind {
    /// Connections that ask once and then stay, until the end of standard input.
    Idle {
        #[command(flatten)]
        asked: Asked,
        /// How many.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
        connections: u32,
    },
    /// Readers that take a large answer in small sips, until the end of standard input.
    Slow {
        #[command(flatten)]
        asked: Asked,
        /// How many.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        connections: u32,
    },
    /// A new TLS connection for every request.
    Tls {
        #[command(flatten)]
        asked: Asked,
        /// Whether a connection goes on with the secrets of one before it.
        #[arg(long, value_enum, default_value_t = Handshakes::Full)]
        handshakes: Handshakes,
        /// How long.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
}

/// What is asked of whom.
#[derive(Clone, Debug, Args)]
struct Asked {
    /// The server, on this machine.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    address: SocketAddr,
    /// The Host, and the name of its certificate.
    #[arg(long, value_name = "NAME", default_value = "www.example.org")]
    host: String,
    /// The path.
    #[arg(long, default_value = "/10k")]
    path: String,
}

/// Kinds of TLS handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Handshakes {
    /// Certificate and signature every time.
    Full,
    /// Tickets of earlier connections are used.
    Resumed,
}

/// What a load saw. Printed as one line.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    figures: Vec<(&'static str, u64)>,
}

/// Makes the load and prints what it saw.
pub fn run(arguments: &LoadArguments) -> ExitCode {
    let seen = match &arguments.kind {
        Kind::Idle { asked, connections } => idle::run(asked, *connections),
        Kind::Slow { asked, connections } => slow::run(asked, *connections),
        Kind::Tls {
            asked,
            handshakes,
            seconds,
        } => tls::run(asked, *handshakes, *seconds),
    };
    match seen {
        Ok(seen) => {
            println!("{seen}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("levee-lab: the load failed: {error}");
            ExitCode::FAILURE
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self
            .figures
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        f.write_str(&words.join(" "))
    }
}

impl Asked {
    /// A request with the header lines of a browser.
    fn request(&self, connection: &str) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n\
             Connection: {connection}\r\n\r\n",
            self.path, self.host
        )
    }
}

/// Says that the load is on, and keeps it on until whoever started it closes our input.
fn announce(what: &Seen) -> io::Result<()> {
    println!("ready {what}");
    io::stdout().flush()
}

/// Blocks until the end of standard input.
fn wait_for_the_end() -> io::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

/// A load generator that could be pointed at others would be a weapon.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!("{address} is not on this machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_be_loaded() {
        assert!(loopback("127.0.0.1:80").is_ok());
        assert!(loopback("[::1]:80").is_ok());
        let refusal = loopback("192.0.2.1:80").unwrap_err();
        assert!(refusal.contains("not on this machine"), "{refusal}");
    }

    #[test]
    fn what_was_seen_is_one_line() {
        let seen = Seen {
            figures: vec![("requests", 7), ("errors", 0)],
        };
        assert_eq!(seen.to_string(), "requests=7 errors=0");
    }
}
