//! The words that a scheme knows: jieba's, and the user's own.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::scheme::{Definition, Weighting};
use crate::unicode::{is_letter_or_number, lower, stripped_len};
use crate::words::{Cutter, WordId, Words};

/// A table of inverse document frequencies that the user gave in place of jieba's.
#[derive(Debug)]
pub struct OwnIdf {
    /// By word.
    pub weights: FxHashMap<Box<[char]>, f64>,
    /// The median, which applies to unknown words.
    pub median: f64,
    /// The correctly rounded mean.
    pub mean: f64,
}

/// The tokenizer, and the words that count with their weights.
#[derive(Debug)]
pub struct Lexicon {
    /// Splits texts into words.
    pub cutter: Cutter,
    words: &'static Words,
    stop_words: FxHashSet<Box<[char]>>,
    stop_chars_max: usize,
    own_idf: Option<OwnIdf>,
}

impl Lexicon {
    /// Take jieba's words with the user's own, each with its frequency, and stop words in lower case.
    #[must_use]
    pub fn new(own_words: &[(Vec<char>, u64)], stop_words: FxHashSet<Box<[char]>>, own_idf: Option<OwnIdf>) -> Self {
        let stop_chars_max = stop_words.iter().map(|word| word.len()).max().unwrap_or(0);
        Self {
            cutter: Cutter::new(own_words),
            words: Words::embedded(),
            stop_words,
            stop_chars_max,
            own_idf,
        }
    }

    /// Whether a word counts in a scheme.
    #[must_use]
    pub fn counts(&self, word: &[char], definition: &Definition) -> bool {
        stripped_len(word) >= definition.characters_min
            && !self.is_stop_word(word)
            && (!definition.letter_or_digit || word.iter().any(|&letter| is_letter_or_number(letter)))
    }

    /// The weight of an occurrence of a word in a scheme; `id` is the number of the word, if jieba knows it.
    #[must_use]
    pub fn factor(&self, word: &[char], id: Option<WordId>, weighting: Weighting) -> f64 {
        let unknown = match weighting {
            Weighting::Count => return 1.0,
            Weighting::IdfOrMedian => self
                .own_idf
                .as_ref()
                .map_or_else(|| self.words.median(), |own| own.median),
            Weighting::IdfOrMean => self.own_idf.as_ref().map_or_else(|| self.words.mean(), |own| own.mean),
        };
        self.idf(word, id).unwrap_or(unknown)
    }

    /// A word's inverse document frequency, if the table has it.
    #[must_use]
    pub fn idf(&self, word: &[char], id: Option<WordId>) -> Option<f64> {
        match &self.own_idf {
            Some(own) => own.weights.get(word).copied(),
            None => id.and_then(|known| self.words.idf(known)),
        }
    }

    /// Whether a word is the name of a place, person or institution in jieba's dictionary.
    #[must_use]
    pub fn is_name(&self, id: Option<WordId>) -> bool {
        id.is_some_and(|known| self.words.is_name(known))
    }

    fn is_stop_word(&self, word: &[char]) -> bool {
        // Lower case can be longer than the word, never shorter.
        word.len() <= self.stop_chars_max && self.stop_words.contains(&*lower(word))
    }
}
