//! One step of folding Chinese.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// A place in [`Step::pool`].
type Span = Range<usize>;

const PAIR_BITS: u32 = 17;
const WORD_BITS: usize = u64::BITS as usize;

/// A character that is replaced on its own.
pub(super) const SINGLE: u8 = 1;
/// The first character of a phrase.
pub(super) const FIRST: u8 = 1 << 1;
/// The second one: the bit above [`FIRST`].
pub(super) const SECOND: u8 = 1 << 2;

/// Phrases of several characters, and single characters, each with its replacement.
///
/// The longest phrases are replaced, from the left, and characters outside phrases one by one. At the
/// first two characters of a phrase, bisection finds the phrases that continue as the text does, a
/// character at a time. The work is linear in the text.
pub(crate) struct Step {
    characters: FxHashMap<char, Span>,
    /// In order of code points, so that those with the same beginning follow each other.
    phrases: Vec<Phrase>,
    /// The phrases that begin with a pair.
    pairs: FxHashMap<(char, char), Range<usize>>,
    /// A bit for each hash of these pairs, to rule out most places quickly.
    pair_bits: Vec<u64>,
    /// The characters of all phrases and forms.
    pool: Vec<char>,
}

struct Phrase {
    written: Span,
    form: Span,
}

/// A text after a step.
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) text: Vec<char>,
    /// The places of entries in the text before, and of their forms in this one.
    changes: Vec<(Span, Span)>,
}

impl Folded {
    /// The places where entries of the next step may begin: these of the text before, and in and right before forms.
    pub(super) fn moved(&self, places: &[usize]) -> Vec<usize> {
        let mut moved = Vec::with_capacity(places.len() + 2 * self.changes.len());
        let mut rest = places.iter().copied().peekable();
        let (mut written, mut folded) = (0, 0);
        for (before, after) in &self.changes {
            while let Some(place) = rest.next_if(|&place| place < before.start) {
                moved.push(place - written + folded);
            }
            while rest.next_if(|&place| place < before.end).is_some() {}
            moved.extend(after.start.saturating_sub(1)..after.end);
            (written, folded) = (before.end, after.end);
        }
        moved.extend(rest.map(|place| place - written + folded));
        moved
    }
}

impl Step {
    /// Build the step from its entries: a phrase or character, and its form.
    pub(crate) fn new<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut step = Self {
            characters: FxHashMap::default(),
            phrases: Vec::new(),
            pairs: FxHashMap::default(),
            pair_bits: vec![0; (1 << PAIR_BITS) / WORD_BITS],
            pool: Vec::new(),
        };
        // The order of UTF-8 is that of code points.
        for (written, form) in entries.collect::<BTreeMap<_, _>>() {
            let (written, form) = (step.keep(written), step.keep(form));
            step.add(written, form);
        }
        step
    }

    /// The text after this step, given the places where entries may begin, in order; `None` if it does not change.
    pub(crate) fn fold(&self, text: &[char], places: impl IntoIterator<Item = usize>) -> Option<Folded> {
        let mut folded = Folded::default();
        let mut taken = 0;
        for place in places {
            if place < taken {
                continue;
            }
            let Some((length, form)) = self.entry(&text[place..]) else {
                continue;
            };
            folded.text.extend_from_slice(&text[taken..place]);
            let start = folded.text.len();
            folded.text.extend_from_slice(form);
            taken = place + length;
            folded.changes.push((place..taken, start..folded.text.len()));
        }
        if folded.changes.is_empty() {
            return None;
        }
        folded.text.extend_from_slice(&text[taken..]);
        Some(folded)
    }

    /// The length and the form of the entry with which a text begins.
    fn entry(&self, text: &[char]) -> Option<(usize, &[char])> {
        let (length, form) = match self.longest(text) {
            Some(phrase) => (phrase.written.len(), &phrase.form),
            None => (1, self.characters.get(text.first()?)?),
        };
        Some((length, &self.pool[form.clone()]))
    }

    /// The characters that are replaced on their own.
    pub(super) fn characters(&self) -> impl Iterator<Item = char> {
        self.characters.keys().copied()
    }

    /// The characters of all entries with their bits, [`SINGLE`], [`FIRST`] and [`SECOND`].
    pub(super) fn roles(&self) -> impl Iterator<Item = (char, u8)> {
        let singles = self.characters.keys().map(|&character| (character, SINGLE));
        let pairs = self.pairs.keys();
        singles.chain(pairs.flat_map(|&(first, second)| [(first, FIRST), (second, SECOND)]))
    }

    /// The longest phrase with which a text begins.
    fn longest(&self, text: &[char]) -> Option<&Phrase> {
        let pair = (*text.first()?, *text.get(1)?);
        if !self.may_begin(pair.0, pair.1) {
            return None;
        }
        let mut phrases = &self.phrases[self.pairs.get(&pair)?.clone()];
        let mut longest = None;
        for (place, character) in text.iter().enumerate().skip(2) {
            // The shortest comes first.
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
            (&[character], _) => {
                self.characters.insert(character, form);
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

    /// Whether a phrase may begin with these two.
    #[inline]
    pub(super) fn may_begin(&self, first: char, second: char) -> bool {
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
