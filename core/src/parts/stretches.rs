//! The hashes of a text's stretches.

use crate::hashes::mix_64;
use crate::sketch::BASE;

/// The length of a stretch that begins with a CJK character, and of any other.
pub(super) const SHORT: usize = 20;
pub(super) const LONG: usize = 36;
const BASE_TO_SHORT: u64 = BASE.wrapping_pow(20);
const BASE_TO_LONG: u64 = BASE.wrapping_pow(36);
/// Stands for a hash where no stretch fits.
pub(super) const NONE: u64 = u64::MAX;
/// More than the longest stretch, and a power of 2.
const REMEMBERED: usize = 64;

/// What must be known of the characters so far to hash the stretches that begin at one after the other.
///
/// The hash of characters is the polynomial h = h × base + code point, so that a stretch's is what is left of the hash of
/// all characters up to its end without that of those before it.
#[derive(Debug)]
pub(super) struct Stretches {
    length: usize,
    /// The hash of all characters.
    all: u64,
    /// What `all` was after each of the last characters, by their number modulo 64.
    before: [u64; REMEMBERED],
    /// Whether a short stretch begins at each of the last characters, the last one in the lowest bit.
    short_begins: u64,
}

impl Default for Stretches {
    fn default() -> Self {
        Self {
            length: 0,
            all: 0,
            before: [0; REMEMBERED],
            short_begins: 0,
        }
    }
}

impl Stretches {
    /// Takes the next character; returns the hash of the stretch that begins where a long one would end with it.
    #[inline]
    pub(super) fn push(&mut self, character: char, is_cjk: bool) -> Option<u64> {
        self.length += 1;
        self.all = self
            .all
            .wrapping_mul(BASE)
            .wrapping_add(u64::from(u32::from(character)));
        self.before[self.length % REMEMBERED] = self.all;
        self.short_begins = self.short_begins << 1 | u64::from(is_cjk);
        (self.length >= LONG).then(|| self.hash(self.length - LONG))
    }

    /// The hashes of the stretches at the end, where no long one fits, in their order.
    pub(super) fn last(&self) -> impl Iterator<Item = u64> {
        let from = (self.length + 1).saturating_sub(LONG);
        (from..self.length).map(|start| {
            if self.is_short(start) && start + SHORT <= self.length {
                self.hash(start)
            } else {
                NONE
            }
        })
    }

    /// The hash of a stretch that fits.
    #[inline]
    fn hash(&self, start: usize) -> u64 {
        let (characters, base_to_them) = if self.is_short(start) {
            (SHORT, BASE_TO_SHORT)
        } else {
            (LONG, BASE_TO_LONG)
        };
        let all = self.before[(start + characters) % REMEMBERED];
        let before = self.before[start % REMEMBERED];
        mix_64(
            all.wrapping_sub(before.wrapping_mul(base_to_them))
                .wrapping_add(characters as u64),
        )
    }

    #[inline]
    const fn is_short(&self, start: usize) -> bool {
        self.short_begins >> (self.length - start - 1) & 1 == 1
    }
}
