//! The sample of a text's shingles.

use crate::hashes::mix_64;

/// A shingle is in the sample if its hash is divisible by this.
const ONE_IN: u64 = 8;
/// Limit on the hashes of a sample; the smallest stay.
pub(super) const HASHES_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Sample(Vec<u32>);

impl Sample {
    /// Adds a shingle by its hash if it belongs to the sample.
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        if hash.is_multiple_of(ONE_IN) {
            let [first, second, third, fourth, ..] = mix_64(hash).to_be_bytes();
            self.0.push(u32::from_be_bytes([first, second, third, fourth]));
        }
    }

    pub(super) fn packed(mut self) -> Vec<u8> {
        self.0.sort_unstable();
        self.0.dedup();
        self.0.truncate(HASHES_MAX);
        self.0.into_iter().flat_map(u32::to_be_bytes).collect()
    }
}
