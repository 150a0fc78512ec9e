//! What heads of packets cost: a response leaves in segments, and each has 70 bytes beside its own.
//!
//! The overhead of a response covers its first segment. Those after it are charged as they are
//! written, because nobody knows before how long a response will be. What TCP sent beside them
//! (acknowledgements, repeats) it tells with its own count when the next response begins.

/// TCP and IP with timestamps, 52, and Ethernet with its head and sum, 18.
pub(crate) const SEGMENT_BYTES: u64 = 70;

/// How a connection cuts what is written into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packets {
    payload: u64,
}

impl Packets {
    /// Ethernet with IPv4 and timestamps: for whoever cannot be asked.
    pub const ETHERNET: Self = Self { payload: 1448 };

    /// Segments of a connection that puts up to `payload` bytes into each.
    pub const fn of(payload: u32) -> Self {
        match payload {
            // Older kernels, and sockets that are no TCP, do not say.
            0 => Self::ETHERNET,
            payload => Self {
                payload: payload as u64,
            },
        }
    }

    /// Segments in which `bytes` leave that are written at once.
    pub const fn count(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload)
    }

    /// Heads in bytes of the segments in which `bytes` leave, without that of the first segment of
    /// the response where nothing of it was `sent` yet.
    pub const fn heads(self, sent: u64, bytes: u64) -> u64 {
        self.beyond_first(sent, bytes) * SEGMENT_BYTES
    }

    /// Segments in which `bytes` leave, without the first of the response.
    pub const fn beyond_first(self, sent: u64, bytes: u64) -> u64 {
        match sent {
            0 => self.count(bytes).saturating_sub(1),
            _ => self.count(bytes),
        }
    }

    /// A piece of about `quantum` bytes that leaves no segment half empty, where the protocol below
    /// adds `framing` to it. Segments that are much larger than `quantum` are not filled: on a
    /// loopback interface one is longer than some links carry in a second.
    pub const fn piece(self, quantum: u64, framing: u64) -> u64 {
        match quantum / self.payload {
            0 if quantum * 2 <= self.payload => quantum,
            0 => self.payload - framing,
            whole => whole * self.payload - framing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_but_the_first_costs_its_head() {
        let packets = Packets::of(1448);
        assert_eq!(packets.heads(0, 0), 0);
        assert_eq!(packets.heads(0, 1448), 0);
        assert_eq!(packets.heads(0, 1449), 70);
        assert_eq!(packets.heads(0, 10_240), 7 * 70);
        assert_eq!(packets.heads(1448, 1448), 70);
        assert_eq!(Packets::of(0), Packets::ETHERNET);
    }

    #[test]
    fn pieces_fill_their_segments() {
        let packets = Packets::of(1448);
        assert_eq!(packets.piece(1460, 0), 1448);
        assert_eq!(packets.piece(6250, 22), 4 * 1448 - 22);
        assert_eq!(packets.piece(65_536, 0), 45 * 1448);
        assert_eq!(Packets::of(65_483).piece(6250, 22), 6250);
        assert_eq!(Packets::of(1460).piece(1448, 0), 1460);
    }
}
