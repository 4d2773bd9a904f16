//! Decides how a text is matched, and chooses its evidence for people.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::unicode::{is_decimal, is_word};

/// Longer keywords are not evidence: it goes into every record, and a word can be as long as its text.
const EVIDENCE_CHARS_MAX: usize = 64;
/// A text with shingles in at least this many of the 256 bins, about 120 different ones, is matched by its sketch.
pub const SHINGLED_BINS_MIN: usize = 96;
/// The same where letters are compared: about 74 different shingles.
pub const LETTERS_BINS_MIN: usize = 64;
/// Marks that are not word characters, but belong to the letters before them.
const MARKS: [RangeInclusive<char>; 6] = [
    '\u{300}'..='\u{36f}',
    '\u{591}'..='\u{5bd}',
    '\u{64b}'..='\u{652}',
    '\u{900}'..='\u{dff}',
    '\u{e31}'..='\u{e4e}',
    '\u{1780}'..='\u{17d3}',
];

/// The way in which a text is matched: `TextKind` of `consumer/fingerprint/text_kinds.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It has no postings, and nothing matches it.
    Empty = 0,
    /// Too few keywords: only equal text is a duplicate.
    Short = 1,
    /// Matched by fingerprint and sketch.
    Long = 2,
    /// Too few keywords, but enough shingles: matched by sketch, also with long texts.
    Shingled = 3,
}

impl Kind {
    /// The kind of a text by its number of distinct keywords.
    #[must_use]
    pub const fn by_keywords(keywords: usize, short_max: usize) -> Self {
        if keywords == 0 {
            Self::Empty
        } else if keywords <= short_max {
            Self::Short
        } else {
            Self::Long
        }
    }

    /// The kind of a text by its keywords, its shingles, and whether it has any character.
    #[must_use]
    pub const fn in_every_script(
        keywords: usize,
        short_max: usize,
        filled_bins: usize,
        text: &[char],
        bins_min: usize,
    ) -> Self {
        if text.is_empty() {
            Self::Empty
        } else if matches!(Self::by_keywords(keywords, short_max), Self::Long) {
            Self::Long
        } else if filled_bins >= bins_min {
            Self::Shingled
        } else {
            Self::Short
        }
    }
}

/// A keyword, and its weight, which is finite and above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed<'a> {
    /// The word.
    pub word: &'a [char],
    /// Its weight before rounding.
    pub weight: f64,
}

/// The places of the heaviest keywords, heaviest first, then by code points; all of them without a limit.
#[must_use]
pub fn heaviest(keywords: &[Weighed<'_>], most: Option<usize>) -> Vec<usize> {
    ranked((0..keywords.len()).collect(), keywords, most)
}

/// The same for keywords of at most 64 characters.
#[must_use]
pub fn evidence(keywords: &[Weighed<'_>], most: Option<usize>) -> Vec<usize> {
    let is_kept = |&place: &usize| keywords[place].word.len() <= EVIDENCE_CHARS_MAX;
    ranked((0..keywords.len()).filter(is_kept).collect(), keywords, most)
}

/// The most frequent runs of letters and marks in a text, of at most 64 characters, with their counts.
///
/// They are in the order of [`heaviest`]. A run is `[^\W\d_](?:[^\W\d_]|[marks])*`.
#[must_use]
pub fn runs(text: &[char], most: Option<usize>) -> Vec<(String, f64)> {
    // Not a faster hash, because an author could choose runs that collide.
    let mut counts: HashMap<&[char], u32> = HashMap::new();
    let mut rest = text;
    while let Some(start) = rest.iter().position(|&character| is_of_run(character)) {
        rest = &rest[start..];
        let is_inside = |&&character: &&char| is_of_run(character) || is_mark(character);
        let (run, behind) = rest.split_at(rest.iter().take_while(is_inside).count());
        if run.len() <= EVIDENCE_CHARS_MAX {
            *counts.entry(run).or_default() += 1;
        }
        rest = behind;
    }
    let counted: Vec<_> = counts
        .into_iter()
        .map(|(word, count)| Weighed {
            word,
            weight: f64::from(count),
        })
        .collect();
    let chosen = heaviest(&counted, most).into_iter().map(|place| counted[place]);
    chosen.map(|run| (run.word.iter().collect(), run.weight)).collect()
}

fn ranked(mut places: Vec<usize>, keywords: &[Weighed<'_>], most: Option<usize>) -> Vec<usize> {
    let order = |&one: &usize, &other: &usize| {
        let (one, other) = (&keywords[one], &keywords[other]);
        other
            .weight
            .total_cmp(&one.weight)
            .then_with(|| one.word.cmp(other.word))
    };
    let most = most.unwrap_or(usize::MAX);
    if most < places.len() {
        // Sort only the runs to keep.
        places.select_nth_unstable_by(most, order);
        places.truncate(most);
    }
    places.sort_unstable_by(order);
    places
}

/// `[^\W\d_]`
fn is_of_run(character: char) -> bool {
    character != '_' && is_word(character) && !is_decimal(character)
}

fn is_mark(character: char) -> bool {
    MARKS.iter().any(|marks| marks.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    fn words_of(chosen: &[usize], words: &[Vec<char>]) -> Vec<String> {
        chosen.iter().map(|&place| words[place].iter().collect()).collect()
    }

    #[test]
    fn kinds_go_by_keywords_and_shingles() {
        for (keywords, bins, text, before, now) in [
            (0, 0, "", Kind::Empty, Kind::Empty),
            (9, 200, "", Kind::Long, Kind::Empty),
            (0, 0, "😀", Kind::Empty, Kind::Short),
            (0, SHINGLED_BINS_MIN - 1, "a", Kind::Empty, Kind::Short),
            (0, SHINGLED_BINS_MIN, "a", Kind::Empty, Kind::Shingled),
            (7, SHINGLED_BINS_MIN - 1, "a", Kind::Short, Kind::Short),
            (7, SHINGLED_BINS_MIN, "a", Kind::Short, Kind::Shingled),
            (8, 5, "a", Kind::Long, Kind::Long),
        ] {
            assert_eq!(Kind::by_keywords(keywords, 7), before);
            assert_eq!(
                Kind::in_every_script(keywords, 7, bins, &letters(text), SHINGLED_BINS_MIN),
                now
            );
        }
    }

    #[test]
    fn the_heaviest_come_first_and_ties_by_code_points() {
        let words: Vec<_> = ["b", "ab", "a", "𠮷", "\u{fffd}", &"z".repeat(65)]
            .into_iter()
            .map(letters)
            .collect();
        let weights = [1.0, 1.0, 1.0, 2.0, 2.0, 9.0];
        let keywords: Vec<_> = words
            .iter()
            .zip(weights)
            .map(|(word, weight)| Weighed { word, weight })
            .collect();
        let long = "z".repeat(65);
        let all = [&long, "\u{fffd}", "𠮷", "a", "ab", "b"];
        assert_eq!(words_of(&heaviest(&keywords, None), &words), all);
        assert_eq!(words_of(&evidence(&keywords, None), &words), all[1..]);
        for most in 0..8 {
            assert_eq!(words_of(&heaviest(&keywords, Some(most)), &words), all[..most.min(6)]);
            assert_eq!(words_of(&evidence(&keywords, Some(most)), &words), all[1..=most.min(5)]);
        }
        assert!(heaviest(&[], Some(3)).is_empty());
    }

    #[test]
    fn runs_are_letters_with_their_marks() {
        let found = |text: &str, most| runs(&letters(text), most);
        let expected = [("हिन्दी", 2.0), ("x", 1.0), ("и", 1.0), ("ё", 1.0), ("भाषा", 1.0)];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(run, count)| (run.to_owned(), count))
            .collect();
        assert_eq!(found("हिन्दी भाषा, हिन्दी 2026 и ё_x", None), expected);
        assert_eq!(found("b a a", Some(1)), [("a".to_owned(), 2.0)]);
        assert!(found("b a a", Some(0)).is_empty());
        assert!(found(&"x".repeat(65), None).is_empty());
        assert_eq!(found(&"x".repeat(64), None), [("x".repeat(64), 1.0)]);
        assert!(found("1, 2 \u{301} ", None).is_empty());
    }
}
