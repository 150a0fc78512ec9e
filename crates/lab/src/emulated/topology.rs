//! Which hosts there are, and how thick their links are: a small file that people read and change.
//!
//! ```toml
//! [[host]]
//! name = "gtidsl1"
//! link = "56.7 kB/s"    # outbound; without it the link has no limit
//! cpu = "50 %"          # of one core; without it the host has the whole machine
//! ```

use levee_vocab::ByteRate;
use serde::Deserialize;
use thiserror::Error;

/// Hosts on one switch, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The hosts.
    pub hosts: Vec<HostPlan>,
}

/// One host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPlan {
    /// A short name: letters, digits and hyphens.
    pub name: String,
    /// What may leave it; none for as much as the kernel can do.
    pub link: Option<ByteRate>,
    /// Its share of one core; none for the whole machine.
    pub cpu: Option<f64>,
}

/// A topology that cannot be built.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// The file is not TOML, or has other keys.
    #[error("cannot read the topology: {0}")]
    Form(#[from] toml::de::Error),
    /// A name that no network namespace can have.
    #[error("host name `{0}`: use up to 15 letters, digits and hyphens")]
    Name(String),
    /// Two hosts with one name.
    #[error("there are two hosts `{0}`")]
    Twice(String),
    /// A rate without a unit, or of nothing.
    #[error("link of `{host}`: `{text}` is no rate; write `54 kB/s` or `10 Mbit/s`")]
    Link {
        /// The host.
        host: String,
        /// What stands there.
        text: String,
    },
    /// A share that is none.
    #[error("cpu of `{host}`: `{text}` is no share of a core; write `50 %`")]
    Cpu {
        /// The host.
        host: String,
        /// What stands there.
        text: String,
    },
    /// More hosts than addresses.
    #[error("{0} hosts are too many; there are addresses for {HOSTS_MAX}")]
    TooMany(usize),
}

/// Addresses of a /24 without the network's own, the switch's and broadcast.
const HOSTS_MAX: usize = 253;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    host: Vec<WrittenHost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHost {
    name: String,
    link: Option<String>,
    cpu: Option<String>,
}

impl Topology {
    /// Reads a file.
    pub fn read(text: &str) -> Result<Self, TopologyError> {
        let written: Written = toml::from_str(text)?;
        if written.host.len() > HOSTS_MAX {
            return Err(TopologyError::TooMany(written.host.len()));
        }
        let mut hosts: Vec<HostPlan> = Vec::new();
        for host in written.host {
            let plan = host.settle()?;
            if hosts.iter().any(|known| known.name == plan.name) {
                return Err(TopologyError::Twice(plan.name));
            }
            hosts.push(plan);
        }
        Ok(Self { hosts })
    }

    /// Bytes a second that may leave the first host, which is that of the site that is asked; 0
    /// where nothing limits it.
    pub fn link_of_source(&self) -> f64 {
        let link = self.hosts.first().and_then(|host| host.link);
        link.map_or(0.0, |link| link.as_bytes() as f64)
    }
}

impl WrittenHost {
    fn settle(self) -> Result<HostPlan, TopologyError> {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if self.name.is_empty() || self.name.len() > 15 || !self.name.chars().all(is_letter) {
            return Err(TopologyError::Name(self.name));
        }
        let link = match self.link {
            None => None,
            Some(text) => Some(rate(&text).ok_or_else(|| TopologyError::Link {
                host: self.name.clone(),
                text,
            })?),
        };
        let cpu = match self.cpu {
            None => None,
            Some(text) => Some(share(&text).ok_or_else(|| TopologyError::Cpu {
                host: self.name.clone(),
                text,
            })?),
        };
        Ok(HostPlan {
            name: self.name,
            link,
            cpu,
        })
    }
}

fn rate(text: &str) -> Option<ByteRate> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = match unit.trim() {
        "kB/s" => 1e3,
        "MB/s" => 1e6,
        "kbit/s" => 125.0,
        "Mbit/s" => 125e3,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * unit;
    (bytes >= 1.0).then(|| ByteRate::from_bytes(bytes.round() as u64))
}

fn share(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?;
    let share = number.trim().parse::<f64>().ok()? / 100.0;
    (0.01..=64.0).contains(&share).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        Topology::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_hosts_is_read_in_its_order() {
        let text = "[[host]]\nname = \"b\"\nlink = \"10 Mbit/s\"\ncpu = \"50 %\"\n\n\
                    [[host]]\nname = \"a\"\n";
        let topology = Topology::read(text).unwrap();
        let names: Vec<&str> = topology.hosts.iter().map(|host| &*host.name).collect();
        assert_eq!(names, ["b", "a"]);
        let rate = topology.hosts[0].link.map(ByteRate::as_bytes);
        assert_eq!(rate, Some(1_250_000));
        assert_eq!(topology.hosts[0].cpu, Some(0.5));
        assert_eq!(topology.hosts[1].link, None);
    }

    #[test]
    fn a_bad_line_is_told_with_its_host() {
        let host = |line: &str| format!("[[host]]\nname = \"a\"\n{line}\n");
        assert!(complaint(&host("link = \"54\"")).starts_with("link of `a`: `54` is no rate"));
        assert!(complaint(&host("cpu = \"fast\"")).starts_with("cpu of `a`: `fast`"));
        assert!(complaint(&host("speed = 1")).contains("unknown field `speed`"));
        assert!(complaint("[[host]]\nname = \"a b\"\n").starts_with("host name `a b`"));
        assert!(complaint(&format!("{}{}", host(""), host(""))).contains("two hosts `a`"));
    }
}
