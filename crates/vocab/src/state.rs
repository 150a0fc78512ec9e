//! The states of a server and the resources that can overload it.

use std::fmt;

/// What a server is to its community (dotslash 3.1). It is always in exactly one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerState {
    /// Neither helps nor is helped.
    #[default]
    Normal,
    /// An origin server that is being rescued.
    Sos,
    /// Rescues at least one other.
    Rescue,
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Sos => "sos",
            Self::Rescue => "rescue",
        })
    }
}

/// Something of which a server can run out (dotslash 4.3). Each has a load level of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The outbound link: d_out against D_out.
    Bandwidth,
    /// Processor time of this process against the cores that it may use.
    Cpu,
    /// Open connections against the limit.
    Connections,
}

impl Resource {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Bandwidth, Self::Cpu, Self::Connections];
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bandwidth => "bandwidth",
            Self::Cpu => "cpu",
            Self::Connections => "connections",
        })
    }
}
