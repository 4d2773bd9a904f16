//! The smallest distinct hashes of a text.

use crate::sketch::Reader;

/// Keeps the `COUNT_MAX` smallest distinct hashes, in memory for twice as many.
#[derive(Debug)]
pub(super) struct Smallest<const COUNT_MAX: usize> {
    /// Unordered, with duplicates.
    kept: Vec<u64>,
    /// An upper bound of the smallest hashes.
    bound: u64,
}

impl<const COUNT_MAX: usize> Default for Smallest<COUNT_MAX> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            bound: u64::MAX,
        }
    }
}

impl<const COUNT_MAX: usize> Smallest<COUNT_MAX> {
    pub(super) fn packed(mut self) -> Vec<u8> {
        self.cut();
        self.kept.into_iter().flat_map(u64::to_be_bytes).collect()
    }

    fn cut(&mut self) {
        self.kept.sort_unstable();
        self.kept.dedup();
        self.kept.truncate(COUNT_MAX);
        if let Some(&last) = self.kept.get(COUNT_MAX - 1) {
            self.bound = last;
        }
    }
}

impl<const COUNT_MAX: usize> Reader for Smallest<COUNT_MAX> {
    #[inline]
    fn shingle(&mut self, hash: u64) {
        if hash <= self.bound {
            self.kept.push(hash);
            if self.kept.len() == 2 * COUNT_MAX {
                self.cut();
            }
        }
    }
}
