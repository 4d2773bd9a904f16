//! One step of folding Chinese.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::unicode::CodePoints;

/// A place in [`Step::pool`].
type Span = Range<usize>;

/// Added to a code point it gives none: the character becomes several.
const SEVERAL: u32 = 1 << 31;
const PAIR_BITS: u32 = 17;
const WORD_BITS: usize = u64::BITS as usize;

/// Phrases of several characters, and single characters, each with what takes its place.
///
/// From the left the longest phrase counts, and characters outside of phrases are replaced one by
/// one. Where the first two characters of a phrase stand, those that go on as the text does are
/// found by halving, a character at a time: the work is linear in the text, whatever it is.
pub(super) struct Step {
    /// What to add to the code point of a single character, [`SEVERAL`] if it becomes several.
    differences: CodePoints<u32>,
    several: FxHashMap<char, Span>,
    /// In order of code points, so that those with the same beginning follow each other.
    phrases: Vec<Phrase>,
    /// The phrases that begin with a pair.
    pairs: FxHashMap<(char, char), Range<usize>>,
    /// A bit for each hash of these pairs, to leave most places at once.
    pair_bits: Vec<u64>,
    /// The characters of all phrases and forms.
    pool: Vec<char>,
}

struct Phrase {
    written: Span,
    form: Span,
}

impl Step {
    /// Build the step of its entries: a phrase or character, and its form.
    pub(super) fn new<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut step = Self {
            differences: CodePoints::new(0),
            several: FxHashMap::default(),
            phrases: Vec::new(),
            pairs: FxHashMap::default(),
            pair_bits: vec![0; (1 << PAIR_BITS) / WORD_BITS],
            pool: Vec::new(),
        };
        // UTF-8 is in order of code points.
        for (written, form) in entries.collect::<BTreeMap<_, _>>() {
            let (written, form) = (step.keep(written), step.keep(form));
            step.add(written, form);
        }
        step
    }

    /// The text after this step.
    pub(super) fn fold(&self, text: &[char]) -> Vec<char> {
        let mut folded = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((&first, behind)) = rest.split_first() {
            if let Some(&second) = behind.first()
                && self.may_begin(first, second)
                && let Some(phrase) = self.longest(rest)
            {
                folded.extend_from_slice(&self.pool[phrase.form.clone()]);
                rest = &rest[phrase.written.len()..];
                continue;
            }
            let form = u32::from(first).wrapping_add(self.differences.get(first));
            if let Some(form) = char::from_u32(form) {
                folded.push(form);
            } else if let Some(form) = self.several.get(&first) {
                folded.extend_from_slice(&self.pool[form.clone()]);
            }
            rest = behind;
        }
        folded
    }

    /// The longest phrase with which a text begins.
    fn longest(&self, text: &[char]) -> Option<&Phrase> {
        let pair = (*text.first()?, *text.get(1)?);
        let mut phrases = &self.phrases[self.pairs.get(&pair)?.clone()];
        let mut longest = None;
        for (place, character) in text.iter().enumerate().skip(2) {
            // The shortest is the first.
            longest = phrases
                .first()
                .filter(|phrase| phrase.written.len() == place)
                .or(longest);
            let at_place = |phrase: &Phrase| self.pool[phrase.written.clone()].get(place);
            phrases = &phrases[phrases.partition_point(|phrase| at_place(phrase) < Some(character))..];
            phrases = &phrases[..phrases.partition_point(|phrase| at_place(phrase) == Some(character))];
            if phrases.is_empty() {
                return longest;
            }
        }
        phrases
            .first()
            .filter(|phrase| phrase.written.len() == text.len())
            .or(longest)
    }

    fn add(&mut self, written: Span, form: Span) {
        match (&self.pool[written.clone()], &self.pool[form.clone()]) {
            (&[character], &[other]) => {
                self.differences
                    .set(character, u32::from(other).wrapping_sub(u32::from(character)));
            }
            (&[character], _) => {
                self.differences.set(character, SEVERAL);
                self.several.insert(character, form);
            }
            (&[first, second, ..], _) => {
                let (word, bit) = pair_bit(first, second);
                self.pair_bits[word] |= bit;
                let start = self.phrases.len();
                self.pairs.entry((first, second)).or_insert(start..start).end = start + 1;
                self.phrases.push(Phrase { written, form });
            }
            (&[], _) => {}
        }
    }

    #[inline]
    fn may_begin(&self, first: char, second: char) -> bool {
        let (word, bit) = pair_bit(first, second);
        self.pair_bits[word] & bit != 0
    }

    fn keep(&mut self, text: &str) -> Span {
        let start = self.pool.len();
        self.pool.extend(text.chars());
        start..self.pool.len()
    }
}

/// The place of a pair in [`Step::pair_bits`]: a word and a bit of it.
#[inline]
fn pair_bit(first: char, second: char) -> (usize, u64) {
    let mixed = u32::from(first).wrapping_mul(0x9e37_79b1) ^ u32::from(second).wrapping_mul(0x85eb_ca77);
    let place = (mixed >> (u32::BITS - PAIR_BITS)) as usize;
    (place / WORD_BITS, 1 << (place % WORD_BITS))
}
