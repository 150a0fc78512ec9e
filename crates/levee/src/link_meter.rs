//! What the estimate of B learns from, where nobody configured it (R2).
//!
//! The cores know what they gave to the kernel, which takes a megabyte for each visitor at once and
//! sends it later. The kernel knows what left by each interface, whoever sent it. Neither alone is
//! what this server sent in a second, but it is never more than either.
//!
//! The interfaces are those of the network that this process is in (`/proc/net/dev`). Of several
//! the busiest counts: bytes that pass a bridge or a tunnel are counted by each of its parts.

use std::collections::BTreeMap;

use levee_control::{LinkEstimate, SendSample};
use levee_vocab::ByteRate;

use crate::sampler::Sampler;

/// The estimate, and where its figures come from.
#[derive(Debug)]
pub struct LinkMeter {
    estimate: LinkEstimate,
    /// Bytes sent by each interface when they were looked at last; none where the kernel does not
    /// tell.
    sent: Option<BTreeMap<String, u64>>,
}

impl LinkMeter {
    /// Begins with what the network interface promises.
    pub fn new(promise: ByteRate) -> Self {
        Self {
            estimate: LinkEstimate::new(promise),
            sent: read(),
        }
    }

    /// Learns from the interval that `sampler` has just ended.
    pub fn observe(&mut self, sampler: &Sampler) {
        let sent = read();
        let left = self.sent.as_ref().zip(sent.as_ref());
        let (total, before) = (sampler.total(), sampler.before());
        self.estimate.observe(SendSample {
            sent: total.bytes.saturating_sub(before.bytes),
            left: left.and_then(|(before, now)| busiest(before, now)),
            elapsed: sampler.elapsed(),
            held_up: total.held_up,
            held_up_by_visitors: total.held_up_by_visitors,
            answering: total.answering,
        });
        self.sent = sent;
    }

    /// The estimate of B.
    pub fn rate(&self) -> ByteRate {
        self.estimate.rate()
    }
}

fn read() -> Option<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string("/proc/self/net/dev").ok()?;
    Some(parse(&text))
}

/// Bytes sent by each interface: two lines of headings, then `name: ` and sixteen figures, of which
/// the ninth counts.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let interface = |line: &str| {
        let (name, figures) = line.split_once(':')?;
        let sent = figures.split_whitespace().nth(8)?.parse().ok()?;
        Some((name.trim().to_owned(), sent))
    };
    text.lines().skip(2).filter_map(interface).collect()
}

/// Bytes that the busiest interface sent between two readings.
fn busiest(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Option<u64> {
    let sent = |(name, sent): (&String, &u64)| Some(sent.saturating_sub(*before.get(name)?));
    now.iter().filter_map(sent).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: 1248635 4305187    0 2929    0     0          0         0 5000 430518751    0    0    0
  eth0:  700      10    0    0    0     0          0         0       300000       9    0    0
";

    #[test]
    fn the_busiest_interface_counts_and_one_that_is_new_does_not() {
        let before = parse(BEFORE);
        assert_eq!(before.len(), 2);
        assert_eq!(before["eth0"], 300_000);
        let mut now = before.clone();
        now.insert("lo".into(), 6000);
        now.insert("eth0".into(), 420_000);
        now.insert("eth1".into(), 1_000_000_000);
        assert_eq!(busiest(&before, &now), Some(120_000));
        assert_eq!(busiest(&before, &parse("")), None);
    }

    #[test]
    fn this_kernel_tells() {
        assert!(read().unwrap().contains_key("lo"));
    }
}
