//! The minima of hashes by bin.

use std::sync::LazyLock;

use super::shingles::Reader;
use crate::hashes::mix_64;

/// The number of bins, one for each value of the top byte of a hash.
pub(super) const BINS: usize = 256;
const LOW_BITS: u64 = (1 << 56) - 1;
/// Greater than any minimum.
const EMPTY: u64 = u64::MAX;
const MARKED_SHIFT: u64 = 9;
const MARKED_VALUES: u64 = 255;
const DONOR_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// For each bin, the others in the order in which it tries them if it is empty: a fixed shuffle.
static DONORS: LazyLock<Vec<[u8; BINS - 1]>> = LazyLock::new(|| (0..=u8::MAX).map(donors).collect());

/// The minimum of the lower 56 bits of hashes in each bin.
pub(super) struct Minima([u64; BINS]);

impl Minima {
    pub(super) const fn new() -> Self {
        Self([EMPTY; BINS])
    }

    /// The number of bins with a minimum.
    pub(super) fn filled(&self) -> usize {
        self.0.iter().filter(|&&minimum| minimum != EMPTY).count()
    }

    /// A byte for each bin: 0 for an empty one, else 1 and the bits of its minimum from the ninth on, modulo 255.
    pub(super) fn marked(&self) -> Vec<u8> {
        let marked = |&minimum: &u64| match minimum {
            EMPTY => 0,
            _ => ((minimum >> MARKED_SHIFT) % MARKED_VALUES + 1).to_le_bytes()[0],
        };
        self.0.iter().map(marked).collect()
    }

    /// The minima. An empty bin has that of the first filled bin in its order, or 0 if all are empty.
    pub(super) fn densified(self) -> [u64; BINS] {
        let mut dense = self.0;
        for (minimum, order) in dense
            .iter_mut()
            .zip(DONORS.iter())
            .filter(|(minimum, _)| **minimum == EMPTY)
        {
            let donor = order
                .iter()
                .map(|&bin| self.0[usize::from(bin)])
                .find(|&donated| donated != EMPTY);
            *minimum = donor.unwrap_or(0);
        }
        dense
    }
}

impl Reader for Minima {
    /// Lowers the minimum of a hash's bin to that hash.
    #[inline]
    fn shingle(&mut self, hash: u64) {
        let [bin, ..] = hash.to_be_bytes();
        let low = hash & LOW_BITS;
        let minimum = &mut self.0[usize::from(bin)];
        if low < *minimum {
            *minimum = low;
        }
    }
}

fn donors(bin: u8) -> [u8; BINS - 1] {
    let rank = |other: u8| mix_64((u64::from(bin) << 8 | u64::from(other)).wrapping_add(DONOR_SEED));
    let mut others: Vec<u8> = (0..=u8::MAX).filter(|&other| other != bin).collect();
    others.sort_by_cached_key(|&other| rank(other));
    std::array::from_fn(|place| others[place])
}
