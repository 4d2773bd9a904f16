//! The smallest shingles of texts, and sets of known ones, which find a known text within a longer article.
//!
//! Sources: Broder, "On the Resemblance and Containment of Documents" (SEQUENCES 1997); Cohen, Kaplan, "Summarizing Data
//! Using Bottom-k Sketches" (PODC 2007). `consumer/fingerprint/known_shingles.py` explains the estimates.
//!
//! Both are packed as 8 bytes for each hash, big-endian and ascending.

mod filter;
mod smallest;
mod table;

use crate::sketch::{Reader, Shingled};
use filter::Filter;
use smallest::Smallest;
use table::{Bucket, Table, number};

/// Limit on the hashes kept of a known text.
pub const SHINGLES_KEPT: usize = 24;
/// Limit on the known shingles reported of a text; the smallest hashes stay.
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

/// Packed hashes owned by others, 8 bytes each, little-endian.
pub type HeldHashes = Box<dyn AsRef<[u8]> + Send + Sync>;

/// The error for hashes that are not 8 bytes each, or do not ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAscending;

/// A set of shingle hashes, which takes at most 4 bytes each in addition to the hashes. Threads share it.
pub struct KnownShingles {
    filter: Filter,
    tables: Vec<Table>,
    largest: u64,
}

impl KnownShingles {
    /// The set of the hashes of all parts, each of which ascends; duplicates count once.
    ///
    /// # Errors
    ///
    /// [`NotAscending`] if a part does not ascend, or ends within a hash.
    pub fn new(parts: Vec<HeldHashes>) -> Result<Self, NotAscending> {
        let tables = parts.into_iter().map(Table::of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            filter: Filter::of(&tables.iter().map(Table::hashes).collect::<Vec<_>>()),
            largest: tables.iter().map(Table::largest).max().unwrap_or_default(),
            tables,
        })
    }

    /// A reader that collects the shingles of a text that are in the set.
    #[must_use]
    pub fn hits(&self) -> Hits<'_> {
        Hits {
            known: self,
            largest: self.largest,
            waiting: [0; TOGETHER],
            count: 0,
            passing: [0; 2 * TOGETHER],
            passed: 0,
            found: Smallest::default(),
        }
    }
}

/// A reader that collects the known shingles of a text.
///
/// Memory is slow, so each step waits until there are many hashes for it. No branch depends on loaded values, so the
/// processor loads the memory of several hashes at the same time.
pub struct Hits<'a> {
    known: &'a KnownShingles,
    /// The largest known hash. Known shingles are the smallest of their texts, so most other hashes are larger.
    largest: u64,
    /// The first `count` are hashes to filter.
    waiting: [u64; TOGETHER],
    count: usize,
    /// The first `passed` are hashes to look up: fewer than `TOGETHER`, and those that one turn of the filter adds.
    passing: [u64; 2 * TOGETHER],
    passed: usize,
    found: Smallest<KNOWN_SHINGLES_MAX>,
}

impl Hits<'_> {
    /// The packed hashes of the known shingles, at most [`KNOWN_SHINGLES_MAX`], once the text is read.
    #[must_use]
    pub fn packed(mut self) -> Vec<u8> {
        self.filter();
        self.look_up();
        self.found.packed()
    }

    /// Filter the waiting hashes.
    #[inline(never)]
    fn filter(&mut self) {
        for &hash in &self.waiting[..self.count] {
            self.passing[self.passed] = hash;
            self.passed += usize::from(self.known.filter.may_contain(hash));
        }
        self.count = 0;
        if self.passed >= TOGETHER {
            self.look_up();
        }
    }

    /// Look up the hashes that passed the filter.
    fn look_up(&mut self) {
        let passing = &self.passing[..self.passed];
        for table in &self.known.tables {
            let mut buckets = [Bucket::default(); 2 * TOGETHER];
            for (bucket, &hash) in buckets.iter_mut().zip(passing) {
                *bucket = table.bucket(hash);
            }
            let hashes = table.hashes();
            for (bucket, &hash) in buckets.iter().zip(passing) {
                if bucket.of(hashes).binary_search_by_key(&hash, number).is_ok() {
                    self.found.shingle(hash);
                }
            }
        }
        self.passed = 0;
    }
}

impl Reader for Hits<'_> {
    #[inline]
    fn shingle(&mut self, hash: u64) {
        self.waiting[self.count] = hash;
        self.count += usize::from(hash <= self.largest);
        if self.count == TOGETHER {
            self.filter();
        }
    }
}

#[cfg(test)]
mod tests;
