//! A sample of a text's facts.

use std::ops::Range;

use super::Facts;
use crate::hashes::mix_64;

const FACTS_KEPT: usize = 64;

/// The hashes of facts.
#[derive(Default)]
pub(super) struct Sample {
    hashes: Vec<u32>,
    utf8: String,
}

impl Sample {
    /// Adds a fact.
    pub(super) fn add(&mut self, fact: impl Iterator<Item = char>) {
        self.utf8.clear();
        self.utf8.extend(fact);
        self.hashes.push(hash(&self.utf8));
    }

    /// The number of distinct hashes, then the smallest ones, in 4 bytes each, big-endian; nothing without a fact.
    pub(super) fn packed(mut self) -> Vec<u8> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        if self.hashes.is_empty() {
            return Vec::new();
        }
        // There are at most 2³² hashes; to have all of them, a text would need 4 GB.
        let count = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
        let kept = self.hashes.into_iter().take(FACTS_KEPT);
        std::iter::once(count).chain(kept).flat_map(u32::to_be_bytes).collect()
    }
}

impl Facts for Sample {
    fn add(&mut self, _: Range<usize>, fact: impl Iterator<Item = char>) {
        self.add(fact);
    }
}

/// A hash of 32 bits.
pub(super) fn hash(fact: &str) -> u32 {
    // CRC-32 leaves structure in short strings; the smallest hashes must be random.
    let mixed = mix_64(u64::from(crc32fast::hash(fact.as_bytes())));
    let [first, second, third, fourth, ..] = mixed.to_be_bytes();
    u32::from_be_bytes([first, second, third, fourth])
}
