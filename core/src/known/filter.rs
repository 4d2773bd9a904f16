//! A filter that rules out most hashes that are not in a set, with one access to memory.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (WEA 2007), with blocks of one word.

/// The filter has at most this many bits for each hash of the set, and more than half as many.
const BITS_MAX: usize = 16;
/// With more words, the same bits of a hash would choose a word and bits in it.
const WORDS_MAX: usize = 1 << 30;

/// A Bloom filter that sets three bits of one word for each hash.
///
/// The lowest 30 bits of a hash choose the word, the next 18 the bits. The top bits are not used: sets consist of the
/// smallest hashes of texts, so that these bits are nearly always 0.
#[derive(Debug)]
pub(super) struct Filter {
    /// A power of two, so that the lowest bits of a hash are a place.
    words: Vec<u64>,
}

impl Filter {
    pub(super) fn of(hashes: &[u64]) -> Self {
        let most = (hashes.len().saturating_mul(BITS_MAX) / 64).clamp(1, WORDS_MAX);
        let mut words = vec![0; 1 << most.ilog2()];
        for &hash in hashes {
            let place = place(hash, words.len());
            words[place] |= bits(hash);
        }
        Self { words }
    }

    /// Whether a hash can be in the set: true for all that are, and for a few in a hundred of the others.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words[place(hash, self.words.len())] & bits == bits
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // only low bits are used
const fn place(hash: u64, words: usize) -> usize {
    hash as usize & (words - 1)
}

#[inline]
const fn bits(hash: u64) -> u64 {
    1 << (hash >> 30 & 63) | 1 << (hash >> 36 & 63) | 1 << (hash >> 42 & 63)
}
