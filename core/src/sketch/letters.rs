//! The shingles of letters, which are keyed.

use std::fmt;

use super::shingles::{CJK_FROM, Powers, Reader, Shingled, Shingling};
use crate::hashes::siphash_13;

/// Polynomials that are hashed together, because the processor works on several at the same time.
const TOGETHER: usize = 64;
/// The letters of the shingles that begin at these.
const REACH: usize = TOGETHER + OfLetters::LONG - 1;

/// The keyed hash of letters.
#[derive(Clone, Copy)]
pub struct OfLetters {
    powers: Powers,
    first: u64,
    second: u64,
}

impl OfLetters {
    /// The hash with this odd base and this key of `SipHash`.
    #[must_use]
    pub const fn new(base: u64, first: u64, second: u64) -> Self {
        Self {
            powers: Powers::new(base, [6, 7, 20, 28]),
            first,
            second,
        }
    }
}

impl OfLetters {
    /// The polynomial of letters and one more after them.
    #[inline]
    const fn with(&self, polynomial: u64, letter: char) -> u64 {
        polynomial.wrapping_mul(self.powers.base).wrapping_add(letter as u64)
    }
}

/// Does not show the key.
impl fmt::Debug for OfLetters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OfLetters").finish_non_exhaustive()
    }
}

impl Shingling for OfLetters {
    const SHORT: usize = 6;
    const LONG: usize = 7;
    const STRETCH_SHORT: usize = 20;
    const STRETCH_LONG: usize = 28;

    #[inline]
    fn powers(&self) -> &Powers {
        &self.powers
    }

    #[inline]
    fn finish(&self, polynomial: u64) -> u64 {
        siphash_13(polynomial, self.first, self.second)
    }
}

/// A sequence of letters, which all count.
#[derive(Clone, Copy, Debug)]
pub struct TextOfLetters<'a> {
    /// The letters.
    pub letters: &'a [char],
    /// The rule by which they are cut and hashed.
    pub shingling: OfLetters,
}

impl Shingled for TextOfLetters<'_> {
    type Shingling = OfLetters;
    const MARKED: bool = true;

    fn shingling(&self) -> OfLetters {
        self.shingling
    }

    fn read(&self, reader: &mut impl Reader) {
        for start in (0..self.letters.len()).step_by(TOGETHER) {
            self.read_block(&self.letters[start..], reader);
        }
        let length = self.letters.len();
        let mut first = self.letters.iter().enumerate().take(OfLetters::LONG);
        let is_any = first.any(|(place, &letter)| place + shingle_length(letter) <= length);
        if !is_any && length > 0 {
            let all = self
                .letters
                .iter()
                .fold(0, |all, &letter| self.shingling.with(all, letter));
            reader.shingle(self.shingling.finish(all.wrapping_add(length as u64)));
        }
    }
}

impl TextOfLetters<'_> {
    /// Read the first letters of a text, and hash the shingles that begin at them.
    fn read_block(&self, text: &[char], reader: &mut impl Reader) {
        let Powers { short, long, .. } = *self.shingling.powers();
        // The polynomial of all letters before each.
        let mut before = [0; REACH + 1];
        let mut all = 0;
        for (&letter, behind) in text.iter().zip(&mut before[1..]) {
            all = self.shingling.with(all, letter);
            *behind = all;
        }
        let mut polynomials = [0; TOGETHER];
        let mut count = 0;
        for (place, &letter) in text.iter().take(TOGETHER).enumerate() {
            let is_cjk = letter >= CJK_FROM;
            reader.character(letter, is_cjk);
            let length = shingle_length(letter);
            let power = if is_cjk { short } else { long };
            polynomials[count] = before[place + length]
                .wrapping_sub(before[place].wrapping_mul(power))
                .wrapping_add(length as u64);
            count += usize::from(place + length <= text.len());
        }
        let hashes = &mut polynomials[..count];
        for value in &mut *hashes {
            *value = self.shingling.finish(*value);
        }
        for &hash in &*hashes {
            reader.shingle(hash);
        }
    }
}

/// The length of the shingle that begins with this letter.
const fn shingle_length(letter: char) -> usize {
    if letter >= CJK_FROM {
        OfLetters::SHORT
    } else {
        OfLetters::LONG
    }
}
