//! Bodies whose every byte follows from the path: what a client gets can be checked without asking
//! anybody.

use std::ops::Range;

use levee_vocab::Random;

/// Paths in use. Some are asked for often and come from the cache, most are not.
const SEEDS: Range<u64> = 0..2000;
/// Up to 200 kB: several reads and writes, in one piece or in many chunks.
const LENGTHS: [usize; 6] = [0, 1, 900, 12_000, 70_000, 200_000];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub seed: u64,
    pub length: usize,
    /// Whether its answer may be kept.
    pub keeping: Keeping,
}

/// Whether an answer may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    Kept,
    Not,
}

impl Asked {
    /// One by chance. Few seeds are asked for most of the time.
    pub fn draw(random: &mut Random) -> Self {
        let seed = match random.chance(0.5) {
            true => random.within(0..20),
            false => random.within(SEEDS),
        };
        Self {
            seed,
            length: LENGTHS[seed as usize % LENGTHS.len()],
            keeping: match seed % 3 {
                0 => Keeping::Not,
                _ => Keeping::Kept,
            },
        }
    }

    /// Its path.
    pub fn path(self) -> String {
        let keeping = match self.keeping {
            Keeping::Kept => "kept",
            Keeping::Not => "not",
        };
        format!("/{keeping}/{}/{}", self.seed, self.length)
    }

    /// What a path asks for.
    pub fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let keeping = match parts.next()? {
            "kept" => Keeping::Kept,
            "not" => Keeping::Not,
            _ => return None,
        };
        let (seed, length) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self {
            seed,
            length,
            keeping,
        })
    }

    /// Its body.
    pub fn body(self) -> Vec<u8> {
        let mut random = Random::from_seed(self.seed);
        let mut bytes = Vec::with_capacity(self.length + 8);
        while bytes.len() < self.length {
            bytes.extend(random.next_bits().to_le_bytes());
        }
        bytes.truncate(self.length);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_back_to_what_was_asked() {
        let mut random = Random::from_seed(1);
        for _ in 0..100 {
            let asked = Asked::draw(&mut random);
            assert_eq!(Asked::of(&asked.path()), Some(asked));
            assert_eq!(asked.body().len(), asked.length);
        }
        assert_eq!(Asked::of("/"), None);
    }
}
