//! The facts of a text, which distinguish two stories told in the same words: numbers, dates, codes and names.
//!
//! A record keeps a sample of their hashes that is chosen by the hashes alone (bottom-k: Cohen and Kaplan, "Summarizing
//! Data Using Bottom-k Sketches", PODC 2007). `consumer/fingerprint/facts.py` defines facts by regular
//! expressions; the functions here find the same facts from the left, and look at each character only a few times.

mod dates;
mod figures;
mod names;
mod numbers;
mod sample;
mod slots;

use std::ops::Range;

use crate::unicode::is_letter;
use sample::Sample;
pub use slots::packed as packed_slots;

const EAST_ASIAN_FROM: char = '\u{2e80}';
const NAME_CHARS_MIN: usize = 2;

/// A receiver of the facts of a text.
trait Facts {
    /// Takes a fact at this place of the text.
    fn add(&mut self, range: Range<usize>, fact: impl Iterator<Item = char>);
}

/// The packed facts of a text: their number, then the 64 smallest of their hashes; nothing if there are none.
///
/// All numbers have 4 bytes and are big-endian. `written` is the text as it came, without surrogates, and `compared` the
/// form in which texts are compared. `unknown` are its words that can be names, see [`can_be_name`], and are not in
/// the table of document frequencies. Numbers are `canonical` in schemes that compare letters.
#[must_use]
pub fn packed<'a>(
    written: &str,
    compared: &[char],
    unknown: impl Iterator<Item = &'a [char]>,
    canonical: bool,
) -> Vec<u8> {
    let mut facts = Sample::default();
    if canonical {
        figures::find_canonical(compared, &mut facts);
    } else {
        figures::find(compared, &mut facts);
    }
    figures::find_in_words(compared, &mut facts);
    if is_latin(compared) {
        names::find(written, &mut facts);
    }
    for word in unknown {
        facts.add(word.iter().copied());
    }
    facts.packed()
}

/// Whether a word without a known document frequency is a name: two or more letters of East Asia.
#[must_use]
pub fn can_be_name(word: &[char]) -> bool {
    word.len() >= NAME_CHARS_MIN && word[0] >= EAST_ASIAN_FROM && word.iter().all(|&character| is_letter(character))
}

/// Whether a text has fewer than 1.25 bytes a character in UTF-8: Chinese and Japanese text has nearly 3.
fn is_latin(text: &[char]) -> bool {
    let bytes: usize = text.iter().map(|character| character.len_utf8()).sum();
    4 * bytes < 5 * text.len()
}

/// The first place from `from` on with a character of a kind.
fn first<T: Copy>(items: &[T], from: usize, is_one: impl Fn(T) -> bool) -> Option<usize> {
    let ahead = items[from..].iter().position(|&item| is_one(item))?;
    Some(from + ahead)
}

/// The end of the characters of a kind at `from`.
fn end_of<T: Copy>(items: &[T], from: usize, is_one: impl Fn(T) -> bool) -> usize {
    first(items, from, |item| !is_one(item)).unwrap_or(items.len())
}

#[cfg(test)]
mod tests;
