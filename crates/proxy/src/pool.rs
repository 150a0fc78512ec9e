//! Buffers that are used again: a connection has one only while a request is under way.

/// Spare buffers of one core.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Vec<u8>>);

/// Most spare buffers; enough for a burst, little enough to forget about (4 MiB a core at most).
const SPARE_MAX: usize = 1024;
/// Largest buffer that is kept: a usual head fits several times.
const KEPT_BYTES_MAX: usize = 4096;

impl Pool {
    /// An empty buffer.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// A buffer with a copy of `bytes`; none is used where there are none.
    pub fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let mut buffer = self.take();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes a buffer back.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if (1..=KEPT_BYTES_MAX).contains(&buffer.capacity()) && self.0.len() < SPARE_MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}
