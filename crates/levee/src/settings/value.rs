//! One settings value: its kind, its units, and how a person writes it.
//!
//! `"54 kB/s"`, `"64 MiB"`, `"2 days"`, `"75 %"`: sizes, rates, times and shares carry their unit,
//! so that nobody has to remember whether a bare number was seconds or milliseconds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use levee_net::ListenAddress;
use levee_proxy::Endpoint;
use levee_vocab::{AddressBlock, ByteRate, HostName};

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A list of any texts.
    Words,
    /// A host name.
    Host,
    /// A list of host names.
    Hosts,
    /// An IP address.
    Address,
    /// An IP address and port.
    Socket,
    /// A list of places to listen.
    Listens,
    /// A list of places where upstreams listen.
    Endpoints,
    /// A list of addresses and blocks of them.
    Blocks,
    /// A file or folder, seen from the settings file's folder.
    Path,
    /// `off`, `stdout`, or a file as with [`Kind::Path`].
    Output,
    /// Bytes a second.
    Rate,
    /// Bytes.
    Size,
    /// A duration.
    Time,
    /// A share, written `75 %`.
    Share,
    /// A whole number in this range.
    Count(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Text`] or [`Kind::Choice`].
    Text(String),
    /// Of [`Kind::Words`].
    Words(Vec<String>),
    /// Of [`Kind::Host`] or [`Kind::Hosts`].
    Hosts(Vec<HostName>),
    /// Of [`Kind::Address`].
    Address(IpAddr),
    /// Of [`Kind::Socket`].
    Socket(SocketAddr),
    /// Of [`Kind::Listens`].
    Listens(Vec<ListenAddress>),
    /// Of [`Kind::Endpoints`].
    Endpoints(Vec<Endpoint>),
    /// Of [`Kind::Blocks`].
    Blocks(Vec<AddressBlock>),
    /// Of [`Kind::Path`], or a file of [`Kind::Output`].
    Path(PathBuf),
    /// Of [`Kind::Rate`].
    Rate(ByteRate),
    /// Of [`Kind::Size`] or [`Kind::Count`].
    Number(u64),
    /// Of [`Kind::Time`].
    Time(Duration),
    /// Of [`Kind::Share`]; 0.75 is 75 %.
    Share(f64),
    /// Of [`Kind::Flag`].
    Flag(bool),
}

impl Value {
    /// Adds the parts of another list of the same kind.
    pub(super) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Hosts(all), Self::Hosts(more)) => all.extend(more),
            (Self::Words(all), Self::Words(more)) => all.extend(more),
            (Self::Listens(all), Self::Listens(more)) => all.extend(more),
            (Self::Blocks(all), Self::Blocks(more)) => all.extend(more),
            (Self::Endpoints(all), Self::Endpoints(more)) => all.extend(more),
            (all, more) => unreachable!("a list has parts of one kind, not {all:?} and {more:?}"),
        }
    }
}

impl Kind {
    /// Reads one text as this kind. Errors say what was expected, with an example.
    pub fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text => Ok(Value::Text(text.into())),
            Self::Words => Ok(Value::Words(vec![text.into()])),
            Self::Host | Self::Hosts => {
                let host = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
                Ok(Value::Hosts(vec![host]))
            }
            Self::Address => {
                let address = text
                    .parse()
                    .map_err(|_| format!("`{text}` is not an IP address"))?;
                Ok(Value::Address(address))
            }
            Self::Socket => {
                let socket = socket(text).map_err(|error| format!("`{text}` {error}"))?;
                Ok(Value::Socket(socket))
            }
            Self::Listens => match text.parse() {
                Ok(address) => Ok(Value::Listens(vec![address])),
                Err(error) => Err(format!("`{text}` {error}")),
            },
            Self::Endpoints => endpoint(text).map(|endpoint| Value::Endpoints(vec![endpoint])),
            Self::Blocks => {
                let blocks = text.split(',').map(|block| block.trim().parse());
                let blocks: Result<Vec<AddressBlock>, _> = blocks.collect();
                blocks
                    .map(Value::Blocks)
                    .map_err(|error| format!("`{text}` is {error}"))
            }
            Self::Path => Ok(Value::Path(text.into())),
            Self::Output if ["off", "stdout"].contains(&text) => Ok(Value::Text(text.into())),
            Self::Output => Ok(Value::Path(text.into())),
            Self::Rate => rate(text).map(Value::Rate),
            Self::Size => size(text).map(Value::Number),
            Self::Time => time(text).map(Value::Time),
            Self::Share => share(text).map(Value::Share),
            Self::Count(least, most) => count(text, least, most).map(Value::Number),
            Self::Choice(words) => choice(text, words).map(Value::Text),
            Self::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(format!("`{text}` is neither true nor false")),
            },
        }
    }

    /// Whether a list may be given.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Self::Words | Self::Hosts | Self::Listens | Self::Blocks | Self::Endpoints
        )
    }

    /// Whether a bare number can be meant: the others are told their unit, or that they are no
    /// number.
    pub const fn is_number(self) -> bool {
        match self {
            Self::Count(..) | Self::Rate | Self::Size | Self::Time | Self::Share => true,
            Self::Text
            | Self::Words
            | Self::Host
            | Self::Hosts
            | Self::Address
            | Self::Socket
            | Self::Listens
            | Self::Blocks
            | Self::Endpoints
            | Self::Path
            | Self::Output
            | Self::Choice(_)
            | Self::Flag => false,
        }
    }

    /// A list without parts.
    pub(super) const fn empty_list(self) -> Value {
        match self {
            Self::Words => Value::Words(Vec::new()),
            Self::Listens => Value::Listens(Vec::new()),
            Self::Endpoints => Value::Endpoints(Vec::new()),
            Self::Blocks => Value::Blocks(Vec::new()),
            Self::Text
            | Self::Host
            | Self::Hosts
            | Self::Address
            | Self::Socket
            | Self::Path
            | Self::Output
            | Self::Rate
            | Self::Size
            | Self::Time
            | Self::Share
            | Self::Count(..)
            | Self::Choice(_)
            | Self::Flag => Value::Hosts(Vec::new()),
        }
    }

    /// What the reference page calls it.
    pub fn name(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Words => "list of texts".into(),
            Self::Host => "host name".into(),
            Self::Hosts => "list of host names".into(),
            Self::Address => "IP address".into(),
            Self::Socket => "address:port".into(),
            Self::Listens => "list of address:port or unix:/path".into(),
            Self::Endpoints => "list of http://host:port or unix:/path".into(),
            Self::Blocks => "list of addresses or blocks".into(),
            Self::Path => "path".into(),
            Self::Output => "off, stdout, or path".into(),
            Self::Rate => "rate (kB/s, MB/s, kbit/s, Mbit/s)".into(),
            Self::Size => "size (kB, MB, KiB, MiB, GiB)".into(),
            Self::Time => "time (ms, s, min, h, days)".into(),
            Self::Share => "share (%)".into(),
            Self::Count(least, most) => format!("number, {least} to {most}"),
            Self::Choice(words) => words.join(" or "),
            Self::Flag => "true or false".into(),
        }
    }
}

/// An address with its port, as a command line or a settings file writes it. The one name that
/// needs no asking is `localhost`: here it is 127.0.0.1, where servers listen for their own
/// machine.
///
/// # Errors
/// What `text` is not, to be said behind it.
pub fn socket(text: &str) -> Result<SocketAddr, &'static str> {
    let local = || {
        let port = text.strip_prefix("localhost:")?.parse().ok()?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let given = text.parse().ok().or_else(local);
    given.ok_or("is not an address and port such as `127.0.0.1:8080` or `localhost:8080`")
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    text.parse().map_err(|error| {
        format!("`{text}` {error}, unlike `http://127.0.0.1:3000` and `unix:/run/app.sock`")
    })
}

/// Splits `54 kB/s` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// Multiplies a number by its unit's factor; the result must be a whole, finite amount.
fn scaled(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let (number, unit) = split(text).ok_or_else(|| expected(text, units, example))?;
    let factor = units
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    match factor {
        Some((_, factor)) if number * factor < 1e18 => Ok(number * factor),
        Some(_) | None => Err(expected(text, units, example)),
    }
}

fn expected(text: &str, units: &[(&str, f64)], example: &str) -> String {
    let names: Vec<_> = units
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.is_empty())
        .collect();
    format!(
        "`{text}` needs a number and one of the units {}, e.g. \"{example}\"",
        names.join(", ")
    )
}

fn rate(text: &str) -> Result<ByteRate, String> {
    let rate = rate_or_nothing(text)?;
    if rate == ByteRate::ZERO {
        return Err(format!(
            "`{text}` is no rate at all; leave the setting out to have it measured"
        ));
    }
    Ok(rate)
}

/// A rate as a command line or a settings file writes it, which may be zero.
pub fn rate_or_nothing(text: &str) -> Result<ByteRate, String> {
    let units = [
        ("kB/s", 1e3),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("kbit/s", 125.0),
        ("Mbit/s", 125e3),
        ("Gbit/s", 125e6),
    ];
    let bytes = scaled(text, &units, "54 kB/s")? as u64;
    Ok(ByteRate::from_bytes(bytes))
}

fn size(text: &str) -> Result<u64, String> {
    let kibi = 1024.0;
    let units = [
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", kibi),
        ("MiB", kibi * kibi),
        ("GiB", kibi * kibi * kibi),
    ];
    Ok(scaled(text, &units, "64 MiB")? as u64)
}

/// A time as a command line or a settings file writes it.
pub fn time(text: &str) -> Result<Duration, String> {
    let units = [
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
        ("days", 86400.0),
        ("day", 86400.0),
        ("d", 86400.0),
    ];
    let seconds = scaled(text, &units, "10 s")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| expected(text, &units, "10 s"))
}

fn share(text: &str) -> Result<f64, String> {
    Ok(scaled(text, &[("%", 1.0)], "75 %")? / 100.0)
}

fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(format!(
            "`{text}` is not a whole number from {least} to {most}"
        )),
    }
}

fn choice(text: &str, words: &[&str]) -> Result<String, String> {
    if words.contains(&text) {
        return Ok(text.into());
    }
    Err(format!("`{text}` is none of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_units() {
        let read = |kind: Kind, text: &str| kind.read(text);
        assert_eq!(
            read(Kind::Rate, "54 kB/s"),
            Ok(Value::Rate(ByteRate::from_kilobytes(54)))
        );
        assert_eq!(
            read(Kind::Rate, "1 Mbit/s"),
            Ok(Value::Rate(ByteRate::from_kilobytes(125)))
        );
        assert_eq!(read(Kind::Size, "64 MiB"), Ok(Value::Number(64 << 20)));
        assert_eq!(
            read(Kind::Time, "1.5s"),
            Ok(Value::Time(Duration::from_millis(1500)))
        );
        assert_eq!(
            read(Kind::Time, "2 days"),
            Ok(Value::Time(Duration::from_secs(172_800)))
        );
        assert_eq!(read(Kind::Share, "75 %"), Ok(Value::Share(0.75)));
        assert_eq!(read(Kind::Count(1, 64), "16"), Ok(Value::Number(16)));
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 9100));
        assert_eq!(
            read(Kind::Socket, "localhost:9100"),
            Ok(Value::Socket(local))
        );
        for bad in ["localhost", "localhost:99999", "web1:9100", "9100"] {
            let error = read(Kind::Socket, bad).expect_err(bad);
            assert!(error.contains("`localhost:8080`"), "{error}");
        }
    }

    #[test]
    fn a_value_without_its_unit_is_told_the_units() {
        let error = Kind::Rate.read("54").expect_err("no unit");
        assert!(
            error.contains("kB/s") && error.contains("54 kB/s"),
            "{error}"
        );
        assert!(Kind::Time.read("10 parsecs").is_err());
        assert!(Kind::Rate.read("0 kB/s").is_err());
        assert!(
            Kind::Count(1, 64)
                .read("65")
                .expect_err("too many")
                .contains("1 to 64")
        );
        assert!(
            Kind::Choice(&["a", "b"])
                .read("c")
                .expect_err("no such word")
                .contains("a, b")
        );
    }
}
