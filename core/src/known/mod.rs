//! The smallest shingles of texts, and sets of known ones, by which a known text is found within a longer article.
//!
//! Sources: Broder, "On the Resemblance and Containment of Documents" (SEQUENCES 1997); Cohen, Kaplan, "Summarizing Data
//! Using Bottom-k Sketches" (PODC 2007). `consumer/fingerprint/known_shingles.py` says what they estimate.
//!
//! Both are packed as 8 bytes for each hash, big-endian and ascending.

mod filter;
mod smallest;
mod table;

use crate::sketch::{Reader, Shingled};
use filter::Filter;
use smallest::Smallest;
use table::Table;

/// Hashes kept of a known text.
pub const SHINGLES_KEPT: usize = 24;
/// Known shingles reported of a text. A text with more is cut: its smallest hashes stay.
pub const KNOWN_SHINGLES_MAX: usize = 4_096;

/// Hashes that are looked up together.
const TOGETHER: usize = 64;

/// The packed smallest hashes of a text's shingles, at most [`SHINGLES_KEPT`].
#[must_use]
pub fn smallest_shingles(text: &impl Shingled) -> Vec<u8> {
    let mut smallest = Smallest::<SHINGLES_KEPT>::default();
    text.read(&mut smallest);
    smallest.packed()
}

/// A set of shingle hashes, in at most 12 bytes each. Any number of threads share it.
#[derive(Debug)]
pub struct KnownShingles {
    filter: Filter,
    table: Table,
}

impl KnownShingles {
    /// The set of these hashes, which may be in any order; duplicates count once.
    #[must_use]
    pub fn new(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.shrink_to_fit();
        Self {
            filter: Filter::of(&hashes),
            table: Table::of(hashes),
        }
    }

    /// The number of distinct hashes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no hash.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A reader that collects the shingles of a text that are in the set.
    #[must_use]
    pub fn hits(&self) -> Hits<'_> {
        Hits {
            known: self,
            waiting: [0; TOGETHER],
            count: 0,
            found: Smallest::default(),
        }
    }
}

/// Collects the known shingles of a text that it reads.
#[derive(Debug)]
pub struct Hits<'a> {
    known: &'a KnownShingles,
    /// The first `count` are hashes to check.
    waiting: [u64; TOGETHER],
    count: usize,
    found: Smallest<KNOWN_SHINGLES_MAX>,
}

impl Hits<'_> {
    /// The packed hashes of the known shingles, at most [`KNOWN_SHINGLES_MAX`], once the text is read.
    #[must_use]
    pub fn packed(mut self) -> Vec<u8> {
        self.check();
        self.found.packed()
    }

    /// Check the waiting hashes.
    #[inline(never)]
    fn check(&mut self) {
        let mut passing = [0; TOGETHER];
        let mut passed = 0;
        // No branch depends on the filter, so that the processor loads several of its words at once.
        for &hash in &self.waiting[..self.count] {
            passing[passed] = hash;
            passed += usize::from(self.known.filter.may_contain(hash));
        }
        self.count = 0;
        for &hash in &passing[..passed] {
            if self.known.table.contains(hash) {
                self.found.shingle(hash);
            }
        }
    }
}

impl Reader for Hits<'_> {
    #[inline]
    fn shingle(&mut self, hash: u64) {
        self.waiting[self.count] = hash;
        self.count += 1;
        if self.count == TOGETHER {
            self.check();
        }
    }
}

#[cfg(test)]
mod tests;
