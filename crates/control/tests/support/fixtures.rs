//! Sites, calls and samples that the tests of this crate share.

#![allow(clippy::unwrap_used, dead_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{
    Candidate, DrillOrder, Input, LoadSample, Output, Parameters, RescueCall, Traffic,
};
use levee_vocab::{
    AliasHttps, ByteRate, FetchKey, HostName, LinkId, Peer, Peers, Timestamp, WebAddress,
};

/// `host` on port 80.
pub fn site(host: &str) -> WebAddress {
    WebAddress {
        host: host.parse().unwrap(),
        port: 80,
    }
}

/// The origin of the paper's LAN experiment: D_out is 1000 kB/s.
pub fn parameters(host: &str) -> Parameters {
    let address = "192.0.2.1".parse().unwrap();
    let aliases: HostName = "aliases.example.net".parse().unwrap();
    let link = ByteRate::from_kilobytes(1250);
    let mut parameters = Parameters::new(site(host), address, aliases, link);
    parameters.rescue_port = 7401;
    parameters.check().unwrap()
}

/// A candidate that offers so many kB/s.
pub fn candidate(host: &str, kilobytes: u64) -> Candidate {
    Candidate {
        site: site(host),
        rescue: "192.0.2.7:7401".parse().unwrap(),
        free: ByteRate::from_kilobytes(kilobytes),
        https: AliasHttps::Unknown,
    }
}

/// What `host` says when it calls for help.
pub fn call(host: &str) -> RescueCall {
    let address = "192.0.2.9".parse().unwrap();
    RescueCall {
        key: Some(key()),
        beats: true,
        ..RescueCall::new(site(host), address, Duration::from_secs(300))
    }
}

/// What an origin says when it rehearses for so many seconds.
pub fn drill_call(host: &str, seconds: u64) -> RescueCall {
    RescueCall {
        drill: Some(Duration::from_secs(seconds)),
        ..call(host)
    }
}

/// The order to rehearse for so many seconds.
pub fn drill_order(seconds: u64) -> DrillOrder {
    DrillOrder {
        length: Duration::from_secs(seconds),
        key: key(),
    }
}

/// A fetch key.
pub fn key() -> FetchKey {
    FetchKey::from_bytes([7; 16])
}

/// The acceptance of the call on `link`, with so many kB/s.
pub fn accepted(link: LinkId, kilobytes: u64, beats: bool) -> Input {
    let LinkId::Outbound(number) = link else {
        panic!("only outbound links are accepted");
    };
    Input::RescueAccepted {
        link,
        alias: site(&format!("www-vh1.rescue{number}.example")),
        address: "192.0.2.7".parse().unwrap(),
        rate: ByteRate::from_kilobytes(kilobytes),
        key: key(),
        beats,
        drill: false,
        tls: None,
    }
}

/// The acceptance of a drill on `link`, by one that knows that it is one.
pub fn joined(link: LinkId, kilobytes: u64) -> Input {
    let mut input = accepted(link, kilobytes, true);
    if let Input::RescueAccepted { drill, .. } = &mut input {
        *drill = true;
    }
    input
}

/// The rescue servers of these numbers, as an origin names them.
pub fn peers(numbers: &[u64]) -> Peers {
    let peer = |number: &u64| Peer {
        alias: site(&format!("www-vh1.rescue{number}.example")),
        address: "192.0.2.7".parse().unwrap(),
        tls: None,
        rate: ByteRate::from_kilobytes(400),
    };
    let members = numbers.iter().map(peer).collect();
    Peers {
        key: key(),
        members,
    }
}

/// An interval of one second with so many kB of own traffic.
pub fn own(kilobytes: u64) -> LoadSample {
    LoadSample {
        elapsed: Duration::from_secs(1),
        own: traffic(kilobytes),
        ..LoadSample::default()
    }
}

/// `sample` with rescue traffic on `link`.
pub fn with_rescue(mut sample: LoadSample, link: LinkId, kilobytes: u64) -> LoadSample {
    sample.rescue = BTreeMap::from([(link, traffic(kilobytes))]);
    sample
}

/// `sample` with redirects on `link` whose files have so many kB.
pub fn with_redirects(mut sample: LoadSample, link: LinkId, kilobytes: u64) -> LoadSample {
    let redirects = Traffic {
        bytes: kilobytes * 100,
        requests: kilobytes / 4,
        file_bytes: kilobytes * 1000,
    };
    sample.redirects.insert(link, redirects);
    sample
}

/// So many kB in as many requests of 4 kB.
pub fn traffic(kilobytes: u64) -> Traffic {
    Traffic {
        bytes: kilobytes * 1000,
        requests: kilobytes.div_ceil(4),
        file_bytes: 0,
    }
}

/// The link of the first call for help among `outputs`.
pub fn called(outputs: &[Output]) -> Option<LinkId> {
    outputs.iter().find_map(|output| {
        if let Output::CallForHelp { link, .. } = output {
            Some(*link)
        } else {
            None
        }
    })
}

/// So many seconds after the start.
pub fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}
