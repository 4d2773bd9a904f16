//! A filter that rules out most hashes that are not in a set, with one access to memory.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (WEA 2007), with blocks of one word.
//!
//! Sets consist of the smallest hashes of texts, most of which begin with 0 bits, unlike most hashes of an article. So
//! hashes with the same top bits have separate words: nearly all look-ups read the few words of the larger hashes,
//! which stay in the fastest cache of the processor.

use super::table::number;

/// The filter has at most this many bits for each hash of the set, and more than half as many.
const BITS_MAX: usize = 16;
/// With more words, the same bits of a hash would choose both a word and bits in it.
const WORDS_MAX: usize = 1 << 30;
/// The top bits that choose the words.
const GROUP_BITS: u32 = 6;
pub(super) const GROUPS: usize = 1 << GROUP_BITS;

/// A Bloom filter that sets three bits of one word for each hash.
///
/// The top 6 bits of a hash choose the group, the lowest 30 the word in it, the next 18 the bits of the word.
#[derive(Debug)]
pub(super) struct Filter {
    groups: [Group; GROUPS],
    words: Vec<u64>,
}

/// The first word of each group, and the number of its words, a power of two, minus one.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    start: u32,
    mask: u32,
}

impl Filter {
    /// The filter of the packed hashes of all parts, fewer than 2³².
    #[allow(clippy::cast_possible_truncation)] // 2³² hashes have at most 2³⁰ words, and 64 more
    pub(super) fn of(parts: &[&[[u8; 8]]]) -> Self {
        let hashes = || parts.iter().copied().flatten().map(number);
        let mut counts = [0_usize; GROUPS];
        for hash in hashes() {
            counts[group(hash)] += 1;
        }
        let mut groups = [Group::default(); GROUPS];
        let mut end = 0_usize;
        for (group, count) in groups.iter_mut().zip(counts) {
            let most = (count.saturating_mul(BITS_MAX) / 64).clamp(1, WORDS_MAX);
            let words = 1_usize << most.ilog2();
            *group = Group {
                start: end as u32,
                mask: (words - 1) as u32,
            };
            end += words;
        }
        let mut filter = Self {
            groups,
            words: vec![0; end],
        };
        for hash in hashes() {
            let place = filter.place(hash);
            filter.words[place] |= bits(hash);
        }
        filter
    }

    /// Whether a hash may be in the set: true for all that are, and for a few percent of the others.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words[self.place(hash)] & bits == bits
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // only low bits are used
    const fn place(&self, hash: u64) -> usize {
        let Group { start, mask } = self.groups[group(hash)];
        start as usize + (hash as u32 & mask) as usize
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice()) + size_of_val(&self.groups)
    }
}

#[inline]
const fn group(hash: u64) -> usize {
    (hash >> (u64::BITS - GROUP_BITS)) as usize
}

#[inline]
const fn bits(hash: u64) -> u64 {
    1 << (hash >> 30 & 63) | 1 << (hash >> 36 & 63) | 1 << (hash >> 42 & 63)
}
