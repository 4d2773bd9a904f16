//! Folds traditional Chinese to simplified: `consumer/fingerprint/characters/simplified.py`.
//!
//! The tables are those of `OpenCC`, part of the scheme's digest. There are two steps: Taiwanese
//! words and variants become those of the mainland, in traditional characters; then these become
//! simplified.

mod step;

use std::sync::LazyLock;

use blake2::{Blake2b128, Digest};

pub(crate) use step::Step;
use step::{FIRST, SINGLE};

use crate::unicode::CodePoints;

/// Each line has the number of a step, a phrase or character, and its form; all normalised.
const TABLES: &str = include_str!("traditional_chinese.tsv");
/// The number of bits for the first step.
const LAST_SHIFT: u8 = 3;
const SINGLES: u8 = SINGLE | SINGLE << LAST_SHIFT;
const FIRSTS: u8 = FIRST | FIRST << LAST_SHIFT;
/// A text is Japanese if at least one in this many of its kana and Han characters is kana.
const JAPANESE_SHARE: usize = 8;

struct ChineseTables {
    /// The characters that the last step replaces are traditional.
    steps: [Step; 2],
    /// The part of each character in entries, as bits: of the first step, and from [`LAST_SHIFT`] on of the last.
    roles: CodePoints<u8>,
}

static CHINESE: LazyLock<ChineseTables> = LazyLock::new(|| ChineseTables::new(TABLES));

/// Fold a normalised text that has a traditional character and is not Japanese; `None` if it does not
/// change.
#[must_use]
pub fn fold(text: &[char]) -> Option<Vec<char>> {
    let is_traditional = |&character: &char| CHINESE.roles.get(character) & SINGLE << LAST_SHIFT != 0;
    if !text.iter().any(is_traditional) || is_japanese(text) {
        return None;
    }
    CHINESE.after_steps(text)
}

/// The traditional characters. Texts without one are not folded.
pub(crate) fn traditional() -> impl Iterator<Item = char> {
    CHINESE.steps[1].characters()
}

/// Whether a normalised text is Japanese, by its share of kana.
#[must_use]
pub fn is_japanese(text: &[char]) -> bool {
    let kana = text
        .iter()
        .filter(|c| matches!(c, '\u{3041}'..'\u{3100}' | '\u{31f0}'..'\u{3200}'))
        .count();
    let han = || {
        text.iter()
            .filter(|c| matches!(c, '\u{3400}'..'\u{a000}' | '\u{20000}'..'\u{34000}'))
            .count()
    };
    kana > 0 && kana * JAPANESE_SHARE >= kana + han()
}

/// The digest of the tables that is part of the scheme's: `BLAKE2b` of 16 bytes.
#[must_use]
pub fn digest() -> [u8; 16] {
    Blake2b128::digest(TABLES).into()
}

impl ChineseTables {
    fn new(tables: &str) -> Self {
        let [first, last] = ["1", "2"].map(|step| {
            tables.lines().filter_map(move |line| {
                let (_, entry) = line.split_once('\t').filter(|&(number, _)| number == step)?;
                entry.split_once('\t')
            })
        });
        let steps = [Step::new(first), Step::new(last)];
        let mut roles = CodePoints::new(0);
        for (step, shift) in steps.iter().zip([0, LAST_SHIFT]) {
            for (character, role) in step.roles() {
                roles.set(character, roles.get(character) | role << shift);
            }
        }
        Self {
            steps,
            roles: roles.shared(),
        }
    }

    fn after_steps(&self, text: &[char]) -> Option<Vec<char>> {
        let [first, last] = &self.steps;
        let [first_places, last_places] = self.places(text);
        let Some(folded) = first.fold(text, first_places) else {
            return last.fold(text, last_places).map(|folded| folded.text);
        };
        let places = folded.moved(&last_places);
        Some(last.fold(&folded.text, places).unwrap_or(folded).text)
    }

    /// The places of a text where entries of the first and of the last step may begin. Most texts have few.
    fn places(&self, text: &[char]) -> [Vec<usize>; 2] {
        let mut places = [Vec::new(), Vec::new()];
        let mut before = 0;
        for (behind, &character) in text.iter().enumerate() {
            let role = self.roles.get(character);
            if before & (SINGLES | role >> 1 & FIRSTS) != 0 {
                let pair = (text[behind - 1], character);
                for ((step, before), places) in self.steps.iter().zip([before, before >> LAST_SHIFT]).zip(&mut places) {
                    let is_first = before & FIRST != 0 && step.may_begin(pair.0, pair.1);
                    if is_first || before & SINGLE != 0 {
                        places.push(behind - 1);
                    }
                }
            }
            before = role;
        }
        for (before, places) in [before, before >> LAST_SHIFT].into_iter().zip(&mut places) {
            if before & SINGLE != 0 {
                places.push(text.len() - 1);
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::letters::{EAST, KIND, Tables};

    fn folded(text: &str) -> Option<String> {
        let characters: Vec<char> = text.chars().collect();
        fold(&characters).map(|form| form.into_iter().collect())
    }

    #[test]
    fn every_line_is_an_entry_of_a_step() {
        for line in TABLES.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [step, written, form] = fields[..] else {
                panic!("{line}")
            };
            let number: usize = step.parse().expect("a number");
            let written: Vec<char> = written.chars().collect();
            let expected: Vec<char> = form.chars().collect();
            let folded = CHINESE.steps[number - 1].fold(&written, 0..written.len());
            assert_eq!(folded.map_or(written, |folded| folded.text), expected);
        }
    }

    #[test]
    fn every_entry_has_a_letter_of_east_asia() {
        let tables = Tables::get();
        let is_letter = |role: u32| role & EAST != 0 && role & KIND != 0;
        for line in TABLES.lines() {
            let written = line.split('\t').nth(1).expect("an entry");
            assert!(written.chars().any(|c| is_letter(tables.roles.get(c))), "{line}");
        }
    }

    #[test]
    fn texts_are_folded_phrase_by_phrase() {
        for (written, expected) in [
            ("乾坤與乾淨", "乾坤与干净"),
            ("著名的著作說著", "著名的著作说着"),
            ("說埠 序列埠", "说端口 串口"),
        ] {
            assert_eq!(folded(written).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_text_without_a_traditional_character_stays() {
        assert_eq!(folded(""), None);
        assert_eq!(folded("滑鼠 abc"), None);
    }

    #[test]
    fn one_kana_of_eight_characters_is_japanese() {
        for (text, japanese) in [
            ("說說說說說說說の", true),
            ("說說說說說說說說の", false),
            ("の", true),
            ("說", false),
        ] {
            assert_eq!(is_japanese(&text.chars().collect::<Vec<_>>()), japanese, "{text}");
        }
        assert_eq!(folded("說說說說說說說の"), None);
        assert_eq!(folded("說說說說說說說說の").as_deref(), Some("说说说说说说说说の"));
    }
}
