//! Counts what really arrives from each server, byte by byte, as a link would see it.
//!
//! The report claims that a link was never above its limit. That claim must not rest on the
//! server's own word, so the crowd counts too: every byte it reads, and every connection on which
//! at least one byte came, in bins of 50 ms.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Length of a bin: windows of 1 s are exact to a twentieth.
pub const BIN: Duration = Duration::from_millis(50);

/// Traffic from all servers, by port. Cheap to clone: clones count into the same bins.
#[derive(Clone, Debug)]
pub struct Traffic {
    start: Instant,
    ports: Arc<Mutex<BTreeMap<u16, Arc<PortTraffic>>>>,
}

/// Traffic from one server.
#[derive(Debug, Default)]
pub struct PortTraffic {
    bins: Mutex<Vec<Bin>>,
}

/// What came within 50 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Bytes of HTTP, heads too.
    pub bytes: u64,
    /// Connections whose first byte came.
    pub connections: u64,
}

impl Traffic {
    /// Counts from `start`, which is the first bin.
    pub fn since(start: Instant) -> Self {
        Self {
            start,
            ports: Arc::default(),
        }
    }

    /// Every port that was seen, with its bins.
    pub fn by_port(&self) -> BTreeMap<u16, Vec<Bin>> {
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let bins = |port: &PortTraffic| {
            port.bins
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        };
        ports
            .iter()
            .map(|(&number, port)| (number, bins(port)))
            .collect()
    }

    /// Wraps a fresh connection to `port`.
    pub fn meter(&self, stream: TcpStream, port: u16) -> MeteredStream {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        MeteredStream {
            stream,
            start: self.start,
            port: Arc::clone(ports.entry(port).or_default()),
            received: Arc::default(),
        }
    }
}

/// A connection that counts what it receives.
#[derive(Debug)]
pub struct MeteredStream {
    stream: TcpStream,
    start: Instant,
    port: Arc<PortTraffic>,
    received: Arc<AtomicU64>,
}

impl MeteredStream {
    /// Bytes received on this connection so far; stays readable after the stream is given away.
    pub fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received)
    }

    fn note(&self, bytes: u64) {
        let first = self.received.fetch_add(bytes, Ordering::Relaxed) == 0;
        let index = (self.start.elapsed().as_millis() / BIN.as_millis()) as usize;
        let mut bins = self
            .port
            .bins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if bins.len() <= index {
            bins.resize(index + 1, Bin::default());
        }
        bins[index].bytes += bytes;
        bins[index].connections += u64::from(first);
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.note(bytes as u64);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The most that came within any window of `length`, in bytes a second, each connection counted
/// with `overhead` bytes.
pub fn peak_rate(bins: &[Bin], length: Duration, overhead: u64) -> f64 {
    let window = (length.as_millis() / BIN.as_millis()).max(1) as usize;
    let cost = |bin: &Bin| bin.bytes + bin.connections * overhead;
    let mut sum = 0;
    let mut most = 0;
    for (index, bin) in bins.iter().enumerate() {
        sum += cost(bin);
        if index >= window {
            sum -= cost(&bins[index - window]);
        }
        most = most.max(sum);
    }
    most as f64 / length.as_secs_f64()
}

/// Bytes of each whole second, without overhead.
pub fn by_second(bins: &[Bin]) -> Vec<u64> {
    let bins_a_second = (1000 / BIN.as_millis()) as usize;
    bins.chunks(bins_a_second)
        .map(|second| second.iter().map(|bin| bin.bytes).sum())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(bytes: u64, connections: u64) -> Bin {
        Bin { bytes, connections }
    }

    #[test]
    fn the_peak_is_that_of_the_worst_window() {
        let mut bins = vec![Bin::default(); 60];
        bins[19] = bin(1_000, 1);
        bins[20] = bin(2_000, 2);
        bins[50] = bin(2_500, 0);
        assert_eq!(peak_rate(&bins, Duration::from_secs(1), 100), 3_300.0);
        assert_eq!(peak_rate(&bins, Duration::from_secs(20), 0), 275.0);
        assert_eq!(by_second(&bins), [1_000, 2_000, 2_500]);
        assert_eq!(peak_rate(&[], BIN, 1), 0.0);
    }
}
