//! Finds hashes in ascending order, owned by others, with two accesses to memory.

use super::{HeldHashes, NotAscending};

/// A bucket has at least about this many hashes.
const PER_BUCKET: usize = 4;
const BUCKET_BITS_MAX: u32 = 30;

/// Hashes in buckets by their top bits, without those that are 0 in all of them.
///
/// The smallest hashes of long texts crowd the first buckets, so buckets are searched by bisection.
pub(super) struct Table {
    hashes: HeldHashes,
    /// The start of each bucket, and the end of the last.
    starts: Vec<u32>,
    /// A hash shifted right by this many bits is the number of its bucket.
    shift: u32,
}

/// The start and end of the hashes of a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    start: u32,
    end: u32,
}

impl Bucket {
    /// The hashes of the bucket among those of its table.
    #[inline]
    pub(super) fn of(self, hashes: &[[u8; 8]]) -> &[[u8; 8]] {
        &hashes[self.start as usize..self.end as usize]
    }
}

impl Table {
    /// The table of fewer than 2³² hashes.
    pub(super) fn of(hashes: HeldHashes) -> Result<Self, NotAscending> {
        let (ascending, []) = (*hashes).as_ref().as_chunks() else {
            return Err(NotAscending);
        };
        if !ascending.is_sorted_by_key(number) {
            return Err(NotAscending);
        }
        let largest = ascending.last().map_or(0, number);
        let bits = (ascending.len() / PER_BUCKET).max(2).ilog2().min(BUCKET_BITS_MAX);
        let shift = (u64::BITS - largest.leading_zeros()).saturating_sub(bits);
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (place, hash) in ascending.iter().enumerate() {
            while starts.len() as u64 <= number(hash) >> shift {
                starts.push(count(place));
            }
        }
        starts.push(count(ascending.len()));
        Ok(Self { hashes, starts, shift })
    }

    /// All hashes, packed.
    #[inline]
    pub(super) fn hashes(&self) -> &[[u8; 8]] {
        (*self.hashes).as_ref().as_chunks().0
    }

    /// The largest hash, 0 without any.
    pub(super) fn largest(&self) -> u64 {
        self.hashes().last().map_or(0, number)
    }

    /// The bucket that contains a hash if the table does.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the smaller one is below 2³²
    pub(super) fn bucket(&self, hash: u64) -> Bucket {
        let ends = &self.starts[1..];
        let place = (hash >> self.shift).min((ends.len() as u64).saturating_sub(1)) as usize;
        Bucket {
            start: self.starts[place],
            end: ends.get(place).copied().unwrap_or_default(),
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.starts.as_slice())
    }
}

/// A packed hash as a number.
#[inline]
#[allow(clippy::trivially_copy_pass_by_ref)] // searches hand over what they meet
pub(super) const fn number(packed: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*packed)
}

fn count(hashes: usize) -> u32 {
    u32::try_from(hashes).expect("fewer than 2^32 hashes")
}
