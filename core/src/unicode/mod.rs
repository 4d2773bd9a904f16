//! The classes of characters that the engine distinguishes, as in Python.
//!
//! General categories, combining classes and case are those of [`UNICODE_VERSION`]. Python's are
//! older. The characters that its version has are in the same classes here;
//! `tests/unit/core/test_text.py` names the exceptions.

mod code_points;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use icu_casemap::CaseMapper;
use icu_locale_core::LanguageIdentifier;
use icu_properties::props::{CanonicalCombiningClass, ChangesWhenLowercased, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

pub(crate) use code_points::CodePoints;

/// The version of the tables of the `icu_*` crates, which all are of one release.
pub const UNICODE_VERSION: &str = "18.0.0";

/// `str.isalnum`, or `_`: `\w` of Python's `re`.
pub const WORD: u8 = 1;
/// `str.isalpha`.
pub const LETTER: u8 = 1 << 1;
/// `str.isspace`: what `str.split` splits at, `\s` of Python's `re`.
pub const SPACE: u8 = 1 << 2;
/// `str.isdecimal`: `\d` of Python's `re`.
pub const DECIMAL: u8 = 1 << 3;
/// Combining marks: of a combining class other than 0, or decomposed by NFKC to begin with such a
/// character.
pub const MARK: u8 = 1 << 4;
/// Removed by normalising.
pub const INVISIBLE: u8 = 1 << 5;
/// Changed by `str.lower`.
pub const NOT_LOWER: u8 = 1 << 6;

/// `str.isspace`, which has some control characters that Unicode does not call white space.
pub(crate) const SPACES: [RangeInclusive<char>; 10] = [
    '\t'..='\r',
    '\u{1c}'..=' ',
    '\u{85}'..='\u{85}',
    '\u{a0}'..='\u{a0}',
    '\u{1680}'..='\u{1680}',
    '\u{2000}'..='\u{200a}',
    '\u{2028}'..='\u{2029}',
    '\u{202f}'..='\u{202f}',
    '\u{205f}'..='\u{205f}',
    '\u{3000}'..='\u{3000}',
];
/// `INVISIBLE` of `consumer/fingerprint/characters/normalise.py`, which explains it.
pub(crate) const INVISIBLES: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];
/// Characters of combining class 0 that NFKC turns into marks of other classes.
const BECOME_MARKS: [char; 5] = ['\u{f73}', '\u{f75}', '\u{f81}', '\u{ff9e}', '\u{ff9f}'];

static CLASSES: LazyLock<CodePoints<u8>> = LazyLock::new(build);

/// All classes of a character, as bits: [`WORD`], [`LETTER`] and so on.
#[inline]
#[must_use]
pub fn classes(character: char) -> u8 {
    CLASSES.get(character)
}

/// Whether a character is a letter, a number of any kind, or `_`: `\w` of Python's `re`.
#[inline]
#[must_use]
pub fn is_word(character: char) -> bool {
    classes(character) & WORD != 0
}

/// Whether a character is a letter or a number of any kind: `str.isalnum`.
#[inline]
#[must_use]
pub fn is_letter_or_number(character: char) -> bool {
    character != '_' && is_word(character)
}

/// Whether a character is a letter: `str.isalpha`.
#[inline]
#[must_use]
pub fn is_letter(character: char) -> bool {
    classes(character) & LETTER != 0
}

/// Whether a character is white space: `str.isspace`, and what `str.split` splits at.
#[inline]
#[must_use]
pub fn is_space(character: char) -> bool {
    classes(character) & SPACE != 0
}

/// Whether a character is a decimal digit of any script: `\d` of Python's `re`.
#[inline]
#[must_use]
pub fn is_decimal(character: char) -> bool {
    classes(character) & DECIMAL != 0
}

/// Whether a character is a combining mark, or NFKC makes it one.
#[inline]
#[must_use]
pub fn is_mark(character: char) -> bool {
    classes(character) & MARK != 0
}

/// The length of a word without white space at its ends: `len(word.strip())`.
#[must_use]
pub fn stripped_len(word: &[char]) -> usize {
    let first = word.iter().position(|&c| !is_space(c)).unwrap_or(word.len());
    let behind = word[first..].iter().rev().take_while(|&&c| is_space(c)).count();
    word.len() - first - behind
}

/// A word in lower case: `str.lower`, with the final sigma. Most words are, and are not copied.
#[must_use]
pub fn lower(word: &[char]) -> Cow<'_, [char]> {
    if word.iter().all(|&c| classes(c) & NOT_LOWER == 0) {
        return Cow::Borrowed(word);
    }
    let written: String = word.iter().collect();
    let lowered = CaseMapper::new().lowercase_to_string(&written, &LanguageIdentifier::UNKNOWN);
    Cow::Owned(lowered.chars().collect())
}

fn build() -> CodePoints<u8> {
    let mut classes = CodePoints::new(0);
    let mut add = |class: u8, characters: &mut dyn Iterator<Item = char>| {
        for character in characters {
            classes.set(character, classes.get(character) | class);
        }
    };
    for run in CodePointMapData::<GeneralCategory>::new().iter_ranges() {
        let class = of_category(run.value);
        if class != 0 {
            add(class, &mut characters(run.range));
        }
    }
    add(WORD, &mut ['_'].into_iter());
    let marks = CodePointMapData::<CanonicalCombiningClass>::new();
    let marks = marks.iter_ranges_for_value_complemented(CanonicalCombiningClass::NotReordered);
    add(MARK, &mut marks.flat_map(characters).chain(BECOME_MARKS));
    let not_lower = CodePointSetData::new::<ChangesWhenLowercased>().iter_ranges();
    add(NOT_LOWER, &mut not_lower.flat_map(characters));
    add(SPACE, &mut SPACES.into_iter().flatten());
    add(INVISIBLE, &mut INVISIBLES.into_iter().flatten());
    classes.shared()
}

fn of_category(category: GeneralCategory) -> u8 {
    match category {
        GeneralCategory::UppercaseLetter
        | GeneralCategory::LowercaseLetter
        | GeneralCategory::TitlecaseLetter
        | GeneralCategory::ModifierLetter
        | GeneralCategory::OtherLetter => WORD | LETTER,
        GeneralCategory::DecimalNumber => WORD | DECIMAL,
        GeneralCategory::LetterNumber | GeneralCategory::OtherNumber => WORD,
        _ => 0,
    }
}

/// The characters of a range of code points: all except surrogates.
pub(crate) fn characters(codes: RangeInclusive<u32>) -> impl Iterator<Item = char> {
    codes.filter_map(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn characters_are_in_their_classes() {
        assert_eq!(classes('a'), WORD | LETTER);
        assert_eq!(classes('A'), WORD | LETTER | NOT_LOWER);
        assert_eq!(classes('中'), WORD | LETTER);
        assert_eq!(classes('７'), WORD | DECIMAL);
        assert_eq!(classes('²'), WORD);
        assert_eq!(classes('〇'), WORD);
        assert_eq!(classes('_'), WORD);
        assert_eq!(classes('\u{3000}'), SPACE);
        assert_eq!(classes('\u{301}'), MARK);
        assert_eq!(classes('\u{ff9e}'), WORD | LETTER | MARK);
        assert_eq!(classes('\u{200b}'), INVISIBLE);
        assert_eq!(classes('，'), 0);
        assert!(is_letter_or_number('9') && !is_letter_or_number('_'));
    }

    #[test]
    fn white_space_is_stripped_from_both_ends() {
        for (written, length) in [("", 0), (" \n", 0), ("a", 1), ("\u{3000}a b\u{85}", 3), ("\u{200b}", 1)] {
            assert_eq!(stripped_len(&word(written)), length, "{written:?}");
        }
    }

    #[test]
    fn a_final_sigma_has_its_own_form() {
        assert_eq!(lower(&word("ΣΑΣ Σ")).as_ref(), word("σας σ"));
        assert_eq!(lower(&word("İ")).as_ref(), word("i\u{307}"));
        assert!(matches!(lower(&word("straße 中")), Cow::Borrowed(_)));
    }
}
