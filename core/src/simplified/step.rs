//! One step of folding Chinese.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// A place in [`Step::pool`].
type Span = Range<usize>;

const PAIR_BITS: u32 = 17;
const WORD_BITS: usize = u64::BITS as usize;

/// Phrases of several characters, and single characters, each with what takes its place.
///
/// From the left the longest phrase counts, and characters outside of phrases are replaced one by
/// one. Where the first two characters of a phrase stand, those that go on as the text does are
/// found by halving, a character at a time: the work is linear in the text, whatever it is.
pub(super) struct Step {
    characters: FxHashMap<char, Span>,
    /// A bit for each code point: whether it is one of these.
    character_bits: Vec<u64>,
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
            characters: FxHashMap::default(),
            character_bits: Vec::new(),
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

    /// The text after this step. None: it stays as it is.
    pub(super) fn fold(&self, text: &[char]) -> Option<Vec<char>> {
        let mut folded: Option<Vec<char>> = None;
        let (mut taken, mut place) = (0, 0);
        while let Some(next) = self.next(text, place) {
            let (length, form) = match self.longest(&text[next..]) {
                Some(phrase) => (phrase.written.len(), &self.pool[phrase.form.clone()]),
                None => match self.characters.get(&text[next]) {
                    Some(form) => (1, &self.pool[form.clone()]),
                    None => (1, &text[next..=next]),
                },
            };
            let folded = folded.get_or_insert_with(|| Vec::with_capacity(text.len()));
            folded.extend_from_slice(&text[taken..next]);
            folded.extend_from_slice(form);
            place = next + length;
            taken = place;
        }
        folded.map(|mut folded| {
            folded.extend_from_slice(&text[taken..]);
            folded
        })
    }

    /// The next place, from this one on, where an entry may begin. Most texts have few of them.
    fn next(&self, text: &[char], from: usize) -> Option<usize> {
        let rest = &text[from..];
        let pairs = rest.windows(2);
        let in_pairs = pairs.map(|pair| self.is_single(pair[0]) | self.may_begin(pair[0], pair[1]));
        let last = rest.last().map(|&last| self.is_single(last));
        in_pairs.chain(last).position(|may| may).map(|place| from + place)
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
            (&[character], _) => {
                let code = character as usize;
                if self.character_bits.len() <= code / WORD_BITS {
                    self.character_bits.resize(code / WORD_BITS + 1, 0);
                }
                self.character_bits[code / WORD_BITS] |= 1 << (code % WORD_BITS);
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

    /// Whether a character alone is replaced.
    #[inline]
    pub(super) fn is_single(&self, character: char) -> bool {
        let code = character as usize;
        self.character_bits
            .get(code / WORD_BITS)
            .is_some_and(|bits| bits >> (code % WORD_BITS) & 1 != 0)
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
