//! The published schemes as data; `docs/use/schemes.md` names their sources.

use crate::hashes::WordHash;
use crate::sketch::Layout;

/// The form of a text that is split into words. Sketches and text digests never use the text as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The compared form.
    Normalised,
    /// The text as written.
    AsWritten,
}

/// The weight of each occurrence of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// Its inverse document frequency; the median for unknown words.
    IdfOrMedian,
    /// Its inverse document frequency; the mean for unknown words.
    IdfOrMean,
    /// One.
    Count,
}

/// The texts that a scheme matches and how; each level extends those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matching {
    /// Texts with keywords, normalised; those with few keywords by digest.
    Keywords,
    /// Texts of every script, in simplified characters; those with few keywords by shingles or digest.
    EveryScript,
    /// Texts by their letters and figures, in keyed shingles; digests are of a form that folds less.
    Letters,
}

/// A scheme without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The form that is split into words.
    pub reading: Reading,
    /// A word counts if it has at least this many characters when stripped.
    pub characters_min: usize,
    /// A word counts only if it has a letter or a digit.
    pub letter_or_digit: bool,
    /// The weights of words.
    pub weighting: Weighting,
    /// The hash of a word, as wide as the fingerprint.
    pub hashing: WordHash,
    /// The bit of a sum of exactly 0.
    pub tie: bool,
    /// The texts that are matched and how.
    pub matching: Matching,
}

impl Definition {
    /// Whether texts of every script are matched, Chinese ones in simplified characters.
    #[must_use]
    pub fn every_script(&self) -> bool {
        self.matching >= Matching::EveryScript
    }

    /// Whether shingles are keyed and of letters alone, and sketches are marked.
    #[must_use]
    pub fn compares_letters(&self) -> bool {
        self.matching >= Matching::Letters
    }
}

/// A scheme's parameters: those of `consumer.fingerprint.Scheme`, and the requested results.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a choice of its own
pub struct Parameters {
    /// The number of heaviest keywords that count; `None` for all.
    pub keywords_max: Option<usize>,
    /// A text with at most this many distinct keywords is short.
    pub short_keywords_max: usize,
    /// The uses of the minima of a sketch.
    pub layout: Layout,
    /// Whether to return facts.
    pub facts: bool,
    /// Whether to return slots in place of facts.
    pub slots: bool,
    /// Whether decorations are left out, where letters are compared.
    pub decorations: bool,
    /// Whether to return sketches.
    pub sketched: bool,
    /// Whether to return anchors and samples.
    pub parts: bool,
    /// The number of keywords returned as evidence; `None` for all.
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
