//! Folds traditional Chinese to simplified: `consumer/fingerprint/simplified.py`.
//!
//! The tables are those of `OpenCC`, part of the scheme's digest. There are two steps: words and
//! variants of Taiwan become those of the mainland, in traditional characters; and then these become
//! simplified ones.

mod step;

use std::sync::LazyLock;

use blake2::{Blake2b128, Digest};

use step::Step;

/// On each line the number of a step, a phrase or character, and its form; all normalised.
const TABLES: &str = include_str!("traditional_chinese.tsv");
/// A text is Japanese where one of so many of its kana and Han characters is kana.
const JAPANESE_SHARE: usize = 8;
/// No entry is without a character from here on.
pub(crate) const EAST_ASIAN_FROM: char = '\u{2e80}';

struct ChineseTables {
    /// Characters that the last one replaces are traditional.
    steps: [Step; 2],
}

static CHINESE: LazyLock<ChineseTables> = LazyLock::new(|| ChineseTables::new(TABLES));

/// Fold a normalised text that has a traditional character and is not Japanese. None: it stays as
/// it is.
#[must_use]
pub fn fold(text: &[char]) -> Option<Vec<char>> {
    let [_, last] = &CHINESE.steps;
    if !text.iter().any(|&c| last.is_single(c)) || is_japanese(text) {
        return None;
    }
    CHINESE.after_steps(text)
}

/// Fold a text, whatever else it has: characters become the same in every text. None: it stays as
/// it is.
#[must_use]
pub fn fold_always(text: &[char]) -> Option<Vec<char>> {
    if text.iter().all(|&c| c < EAST_ASIAN_FROM) {
        return None;
    }
    CHINESE.after_steps(text)
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
        Self {
            steps: [Step::new(first), Step::new(last)],
        }
    }

    fn after_steps(&self, text: &[char]) -> Option<Vec<char>> {
        let [first, last] = &self.steps;
        match first.fold(text) {
            Some(folded) => Some(last.fold(&folded).unwrap_or(folded)),
            None => last.fold(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(CHINESE.steps[number - 1].fold(&written).unwrap_or(written), expected);
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
