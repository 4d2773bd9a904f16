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
const BITS: usize = u64::BITS as usize;

struct ChineseTables {
    steps: [Step; 2],
    /// A bit for each code point: whether the last step replaces the character.
    traditional: Vec<u64>,
}

static CHINESE: LazyLock<ChineseTables> = LazyLock::new(|| ChineseTables::new(TABLES));

/// Fold a normalised text that has a traditional character and is not Japanese. None: it stays as
/// it is.
#[must_use]
pub fn fold(text: &[char]) -> Option<Vec<char>> {
    let tables = &*CHINESE;
    if !text.iter().any(|&c| tables.is_traditional(c)) || is_japanese(text) {
        return None;
    }
    let [first, last] = &tables.steps;
    Some(last.fold(&first.fold(text)))
}

/// Fold a text, whatever else it has: characters become the same in every text. None: it stays as
/// it is.
#[must_use]
pub fn fold_always(text: &[char]) -> Option<Vec<char>> {
    if text.iter().all(|&c| c < EAST_ASIAN_FROM) {
        return None;
    }
    let [first, last] = &CHINESE.steps;
    Some(last.fold(&first.fold(text)))
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
        let mut traditional = Vec::new();
        for (written, _) in last.clone() {
            let mut characters = written.chars();
            let (Some(character), None) = (characters.next(), characters.next()) else {
                continue;
            };
            let code = character as usize;
            if traditional.len() <= code / BITS {
                traditional.resize(code / BITS + 1, 0);
            }
            traditional[code / BITS] |= 1 << (code % BITS);
        }
        Self {
            steps: [Step::new(first), Step::new(last)],
            traditional,
        }
    }

    #[inline]
    fn is_traditional(&self, character: char) -> bool {
        let code = character as usize;
        self.traditional
            .get(code / BITS)
            .is_some_and(|bits| bits >> (code % BITS) & 1 != 0)
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
            let folded: String = CHINESE.steps[number - 1].fold(&written).into_iter().collect();
            assert_eq!(folded, form);
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
