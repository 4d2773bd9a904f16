//! A set of hashes that is searched with two accesses to memory.

/// A bucket has about this many hashes.
const PER_BUCKET: usize = 4;
const BUCKET_BITS_MAX: u32 = 30;

/// Hashes in buckets by their lowest bits: the top bits of the smallest hashes of texts are nearly always 0.
#[derive(Debug)]
pub(super) struct Table {
    /// By bucket.
    hashes: Vec<u64>,
    /// Where each bucket begins, and the last one ends; the number of buckets is a power of two.
    starts: Vec<u32>,
}

impl Table {
    /// A set of fewer than 2³² distinct hashes.
    pub(super) fn of(mut hashes: Vec<u64>) -> Self {
        let bits = (hashes.len() / PER_BUCKET).max(1).ilog2().min(BUCKET_BITS_MAX);
        let buckets = 1_usize << bits;
        hashes.sort_unstable_by_key(|&hash| (bucket(hash, buckets), hash));
        let mut starts = Vec::with_capacity(buckets + 1);
        let mut end = 0;
        starts.push(0);
        for number in 0..buckets {
            while hashes.get(end).is_some_and(|&hash| bucket(hash, buckets) == number) {
                end += 1;
            }
            starts.push(u32::try_from(end).expect("fewer than 2^32 hashes"));
        }
        Self { hashes, starts }
    }

    pub(super) const fn len(&self) -> usize {
        self.hashes.len()
    }

    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let number = bucket(hash, self.starts.len() - 1);
        let (start, end) = (self.starts[number] as usize, self.starts[number + 1] as usize);
        self.hashes[start..end].contains(&hash)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.hashes.as_slice()) + size_of_val(self.starts.as_slice())
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // only low bits are used
const fn bucket(hash: u64, buckets: usize) -> usize {
    hash as usize & (buckets - 1)
}
