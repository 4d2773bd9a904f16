//! Unicode's rules for normalising and folding, from the `icu_*` crates.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::properties::{
    CanonicalCombiningClassMap, CanonicalCombiningClassMapBorrowed, CanonicalComposition, CanonicalCompositionBorrowed,
    CanonicalDecomposition, CanonicalDecompositionBorrowed, Decomposed,
};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};

/// The blocks with all characters composed of two, except Hangul syllables; a test checks this.
const COMPOSED: [(char, char); 2] = [('\0', '\u{33ff}'), ('\u{10000}', '\u{1ffff}')];

/// Unicode's rules; costs nothing to make.
pub(super) struct Rules {
    compatible: ComposingNormalizerBorrowed<'static>,
    case: CaseMapperBorrowed<'static>,
    composition: CanonicalCompositionBorrowed<'static>,
    decomposition: CanonicalDecompositionBorrowed<'static>,
    classes: CanonicalCombiningClassMapBorrowed<'static>,
}

impl Rules {
    pub(super) const fn new() -> Self {
        Self {
            compatible: ComposingNormalizer::new_nfkc(),
            case: CaseMapper::new(),
            composition: CanonicalComposition::new(),
            decomposition: CanonicalDecomposition::new(),
            classes: CanonicalCombiningClassMap::new(),
        }
    }

    /// NFKC, casefold, NFKC.
    pub(super) fn fold(&self, text: impl Iterator<Item = char>) -> String {
        self.fold_compatible(self.compatible(text))
    }

    /// NFKC.
    pub(super) fn compatible(&self, text: impl Iterator<Item = char>) -> String {
        self.compatible.normalize_iter(text).collect()
    }

    /// Casefold and NFKC of a text in NFKC.
    pub(super) fn fold_compatible(&self, text: String) -> String {
        match self.casefold(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(folded) => self.compatible(folded.chars()),
        }
    }

    pub(super) fn casefold<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.case.fold_string(text)
    }

    /// The character that these two compose in NFC when adjacent.
    pub(super) fn composed(&self, first: char, second: char) -> Option<char> {
        self.composition.compose(first, second)
    }

    /// The combining class of a character.
    pub(super) fn class(&self, character: char) -> u8 {
        self.classes.get_u8(character)
    }

    /// The first character of the canonical decomposition of a character.
    pub(super) fn first(&self, character: char) -> char {
        let mut first = character;
        while let Decomposed::Singleton(next) | Decomposed::Expansion(next, _) = self.decomposition.decompose(first) {
            first = next;
        }
        first
    }

    /// The combining class of the last character of the decomposition of a character in NFC.
    pub(super) fn last_class(&self, character: char) -> u8 {
        match self.decomposition.decompose(character) {
            Decomposed::Expansion(_, last) => self.class(last),
            Decomposed::Singleton(_) | Decomposed::Default => 0,
        }
    }

    /// All composed characters except Hangul syllables, each with the second character of its pair.
    pub(super) fn all_composed(&self) -> Vec<(char, char)> {
        let places = COMPOSED.into_iter().flat_map(|(first, last)| first..=last);
        places
            .filter_map(|character| Some((character, self.pair(character)?.1)))
            .collect()
    }

    /// The two characters of which NFC composes a character.
    pub(super) fn pair(&self, character: char) -> Option<(char, char)> {
        match self.decomposition.decompose(character) {
            Decomposed::Expansion(first, second) => self
                .composed(first, second)
                .filter(|&composed| composed == character)
                .and(Some((first, second))),
            Decomposed::Singleton(_) | Decomposed::Default => None,
        }
    }
}
