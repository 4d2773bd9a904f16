//! The hashes of a text's stretches.

use crate::sketch::Shingling;

/// The hash where no stretch fits.
pub(super) const NONE: u64 = u64::MAX;
/// More than the longest stretch, and a power of 2.
const REMEMBERED: usize = 64;

/// The state after the characters so far that is needed to hash the stretches at each place in turn.
///
/// The polynomial of a stretch is that of all characters up to its end minus that of the characters before it.
#[derive(Debug)]
pub(super) struct Stretches<S> {
    shingling: S,
    length: usize,
    /// The hash of all characters.
    all: u64,
    /// The value of `all` after each of the last characters, by their number modulo 64.
    before: [u64; REMEMBERED],
    /// Whether a short stretch begins at each of the last characters, the last one in the lowest bit.
    short_begins: u64,
}

impl<S: Shingling> Stretches<S> {
    pub(super) const fn new(shingling: S) -> Self {
        Self {
            shingling,
            length: 0,
            all: 0,
            before: [0; REMEMBERED],
            short_begins: 0,
        }
    }

    /// Takes the next character; returns the hash of the stretch that begins where a long one would end with it.
    #[inline]
    pub(super) fn push(&mut self, character: char, is_cjk: bool) -> Option<u64> {
        self.length += 1;
        self.all = self
            .all
            .wrapping_mul(self.shingling.powers().base)
            .wrapping_add(u64::from(u32::from(character)));
        self.before[self.length % REMEMBERED] = self.all;
        self.short_begins = self.short_begins << 1 | u64::from(is_cjk);
        (self.length >= S::STRETCH_LONG).then(|| self.hash(self.length - S::STRETCH_LONG))
    }

    /// The hashes of the stretches at the end, where no long one fits, in their order.
    pub(super) fn last(&self) -> impl Iterator<Item = u64> {
        let from = (self.length + 1).saturating_sub(S::STRETCH_LONG);
        (from..self.length).map(|start| {
            if self.is_short(start) && start + S::STRETCH_SHORT <= self.length {
                self.hash(start)
            } else {
                NONE
            }
        })
    }

    /// The hash of a stretch that fits.
    #[inline]
    fn hash(&self, start: usize) -> u64 {
        let powers = self.shingling.powers();
        let (characters, base_to_them) = if self.is_short(start) {
            (S::STRETCH_SHORT, powers.stretch_short)
        } else {
            (S::STRETCH_LONG, powers.stretch_long)
        };
        let all = self.before[(start + characters) % REMEMBERED];
        let before = self.before[start % REMEMBERED];
        self.shingling.finish(
            all.wrapping_sub(before.wrapping_mul(base_to_them))
                .wrapping_add(characters as u64),
        )
    }

    #[inline]
    const fn is_short(&self, start: usize) -> bool {
        self.short_begins >> (self.length - start - 1) & 1 == 1
    }
}
