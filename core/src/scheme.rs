//! The published schemes as data; `docs/use/schemes.md` names their sources.

use crate::hashes::WordHash;
use crate::sketch::Layout;

/// The form of a text that is split into words; sketch and text digest are never of the text as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The text that is compared.
    Normalised,
    /// The text as written.
    AsWritten,
}

/// What each occurrence of a word weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// Its inverse document frequency, for unknown words the median one.
    IdfOrMedian,
    /// Its inverse document frequency, for unknown words the mean one.
    IdfOrMean,
    /// One.
    Count,
}

/// What of texts is matched; each has what is said of those before it, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matching {
    /// Texts with keywords, normalised; those with few by their digest.
    Keywords,
    /// Texts of every script, in simplified characters; those with few keywords by their shingles, or by their digest.
    EveryScript,
    /// Shingles are of letters and figures alone, and keyed; digests are of a form that folds less.
    Letters,
}

/// A scheme without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What is split into words.
    pub reading: Reading,
    /// A word counts if it has at least so many characters once white space at its ends is gone.
    pub characters_min: usize,
    /// A word counts only if it has a letter or a digit.
    pub letter_or_digit: bool,
    /// What words weigh.
    pub weighting: Weighting,
    /// The hash of a word, as wide as the fingerprint.
    pub hashing: WordHash,
    /// The bit of a sum of exactly 0.
    pub tie: bool,
    /// What of texts is matched.
    pub matching: Matching,
}

impl Definition {
    /// Whether texts of every script are matched, Chinese ones in simplified characters.
    #[must_use]
    pub fn every_script(&self) -> bool {
        self.matching >= Matching::EveryScript
    }

    /// Whether shingles are of letters alone and keyed, and sketches are marked.
    #[must_use]
    pub fn compares_letters(&self) -> bool {
        self.matching >= Matching::Letters
    }
}

/// A scheme's parameters: those of `consumer.fingerprint.Scheme`, and what of the results is wanted.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a choice of its own
pub struct Parameters {
    /// How many of the heaviest keywords count; `None` for all.
    pub keywords_max: Option<usize>,
    /// A text with at most so many distinct keywords is short.
    pub short_keywords_max: usize,
    /// Which minima of a sketch are used for what.
    pub layout: Layout,
    /// Whether facts are wanted.
    pub facts: bool,
    /// Whether slots are, in place of facts.
    pub slots: bool,
    /// Whether decorations are left out, where letters are compared.
    pub decorations: bool,
    /// Whether sketches are wanted.
    pub sketched: bool,
    /// Whether anchors and samples are wanted.
    pub parts: bool,
    /// How many keywords go along as evidence; `None` for all.
    pub keywords_kept: Option<usize>,
}

/// The definition of a scheme, by its name.
#[must_use]
pub fn definition(name: &str) -> Option<Definition> {
    let hashing = WordHash::from_scheme(name)?;
    let by_keywords = Definition {
        reading: Reading::AsWritten,
        characters_min: 2,
        letter_or_digit: false,
        weighting: Weighting::IdfOrMedian,
        hashing,
        tie: false,
        matching: Matching::Keywords,
    };
    let normalised = Definition {
        reading: Reading::Normalised,
        ..by_keywords
    };
    Some(match name {
        "jieba-tfidf/1" | "hyperplanes-64/1" | "hyperplanes-128/1" => normalised,
        "jieba-tfidf/2" => Definition {
            matching: Matching::EveryScript,
            ..normalised
        },
        "jieba-tfidf/3" => Definition {
            matching: Matching::Letters,
            ..normalised
        },
        "jenkins-64/1" => Definition {
            weighting: Weighting::IdfOrMean,
            ..by_keywords
        },
        _ if name.starts_with("multiply-xor") => Definition {
            characters_min: 1,
            letter_or_digit: true,
            weighting: Weighting::Count,
            tie: true,
            ..by_keywords
        },
        _ => by_keywords,
    })
}
