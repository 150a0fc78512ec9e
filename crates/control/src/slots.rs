//! Slots: small numbers under which the cores count the traffic of a rescue (R2).
//!
//! A core keeps an array of counters and must not search for a link on every response. Slots are
//! given in turn, so that one that ended is not taken again while its last bytes are counted.

/// Hands out slots 0 to 255 in turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    next: u8,
}

impl Slots {
    /// The next slot that is not in use, if there is any.
    pub(crate) fn take(&mut self, is_used: impl Fn(u8) -> bool) -> Option<u8> {
        let slot = (0..=u8::MAX)
            .map(|step| self.next.wrapping_add(step))
            .find(|&slot| !is_used(slot))?;
        self.next = slot.wrapping_add(1);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_round_and_end() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(|_| false), Some(0));
        assert_eq!(slots.take(|_| false), Some(1));
        assert_eq!(slots.take(|slot| slot != 1), Some(1));
        assert_eq!(slots.take(|_| true), None);
    }
}
