//! Typed access to values: given in the file, or the default of the table.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use levee_net::ListenAddress;
use levee_proxy::Endpoint;
use levee_vocab::{AddressBlock, ByteRate, HostName};

use crate::settings::read::SettingsFile;
use crate::settings::value::Value;

/// Typed access: what the file gives, else the default of the table.
///
/// The table's own test reads every default, so a default that does not fit its kind cannot ship.
pub(super) struct Values<'a> {
    pub file: &'a SettingsFile,
}

macro_rules! typed {
    ($($method:ident -> $type:ty, $variant:ident;)*) => {
            $(pub fn $method(&self, name: &str) -> $type {
            match self.value(name) {
                Some(Value::$variant(value)) => value,
                other => unreachable!("the table gives {name} another kind: {other:?}"),
            }
        })*
    };
}

impl Values<'_> {
    typed! {
        number -> u64, Number;
        time -> Duration, Time;
        share -> f64, Share;
        flag -> bool, Flag;
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.file.value(name)
    }

    pub fn blocks(&self, name: &str) -> Vec<AddressBlock> {
        match self.value(name) {
            Some(Value::Blocks(blocks)) => blocks,
            _ => vec![],
        }
    }

    pub fn text(&self, name: &str) -> String {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    pub fn words(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::Words(words)) => words,
            _ => vec![],
        }
    }

    pub fn rate(&self, name: &str) -> Option<ByteRate> {
        match self.value(name) {
            Some(Value::Rate(rate)) => Some(rate),
            _ => None,
        }
    }

    pub fn size(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(bytes)) => Some(bytes),
            _ => None,
        }
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        match self.value(name) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub fn address(&self, name: &str) -> Option<IpAddr> {
        match self.value(name) {
            Some(Value::Address(address)) => Some(address),
            _ => None,
        }
    }

    pub fn hosts(&self, name: &str) -> Vec<HostName> {
        match self.value(name) {
            Some(Value::Hosts(hosts)) => hosts,
            _ => vec![],
        }
    }

    pub fn endpoints(&self, name: &str) -> Vec<Endpoint> {
        match self.value(name) {
            Some(Value::Endpoints(endpoints)) => endpoints,
            _ => vec![],
        }
    }

    pub fn listens(&self, name: &str) -> Vec<ListenAddress> {
        match self.value(name) {
            Some(Value::Listens(addresses)) => addresses,
            _ => vec![],
        }
    }

    pub fn given_socket(&self, name: &str) -> Option<SocketAddr> {
        match self.value(name) {
            Some(Value::Socket(socket)) => Some(socket),
            _ => None,
        }
    }

    pub fn socket(&self, name: &str) -> SocketAddr {
        self.given_socket(name)
            .expect("the table has a default address")
    }
}
