//! Normalising against its definition: every step for the text as a whole, as Python does it.

use std::iter::once;

use super::entries::{Entry, Table};
use super::rules::Rules;
use super::{MARKS_IN_A_ROW_MAX, Normalised, normalise};
use crate::letters::{Figure, Tables};
use crate::unicode::{INVISIBLE, classes, is_mark, is_space};

fn defined(text: &str) -> String {
    let visible = first_marks(text.chars().filter(|&c| classes(c) & INVISIBLE == 0));
    let folded = first_marks(Rules::new().fold(visible.chars()).chars());
    let words: Vec<&str> = folded.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn first_marks(text: impl Iterator<Item = char>) -> String {
    let mut marks = 0;
    text.filter(|&c| {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        marks <= MARKS_IN_A_ROW_MAX
    })
    .collect()
}

fn normalised(text: &str) -> String {
    normalise(text).into_iter().collect()
}

fn check(text: &str) {
    let once = normalised(text);
    assert_eq!(once, defined(text), "{}", text.escape_unicode());
    assert_eq!(normalised(&once), once, "{}", text.escape_unicode());
}

fn all() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

#[test]
fn every_character_alone_and_beside_others() {
    let beside = [
        "{}",
        "a{}b",
        "A{} ",
        "e{}\u{301}",
        "\u{1100}{}\u{11a8}",
        "{}\u{316}\u{ff9e}",
        "\u{9c7}{}",
    ];
    for character in all() {
        if classes(character) == 0 && Table::get().entry(character) == Entry::Plain && u32::from(character) % 16 != 0 {
            continue;
        }
        for pattern in beside {
            check(&pattern.replace("{}", &character.to_string()));
        }
    }
}

/// A random number generator without a crate: `SplitMix64`.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or(0)
    }
}

#[test]
fn generated_texts_of_what_is_not_plain() {
    let table = Table::get();
    let special: Vec<char> = all()
        .filter(|&c| table.entry(c) != Entry::Plain && c < '\u{e0000}')
        .collect();
    let joining: Vec<char> = special
        .iter()
        .copied()
        .filter(|&c| matches!(table.entry(c), Entry::Joins { .. } | Entry::Odd))
        .collect();
    let composing: Vec<char> = joining
        .iter()
        .copied()
        .filter(|&c| matches!(table.entry(c), Entry::Joins { composes: true, .. }))
        .collect();
    let letters: Vec<char> = all().filter(|&c| Rules::new().last_class(c) != 0).collect();
    let plain: Vec<char> = "aeiouAEIOU \u{ad}가각ᄀα中\u{9c7}\u{1025}ｶ、ệ".chars().collect();
    let alphabets = [&special, &joining, &composing, &letters, &plain, &plain];
    let mut numbers = Numbers(1);
    for _ in 0..200_000 {
        let length = numbers.below(9);
        let text: String = (0..length)
            .map(|_| {
                let alphabet = alphabets[numbers.below(alphabets.len())];
                alphabet[numbers.below(alphabet.len())]
            })
            .collect();
        check(&text);
    }
}

#[test]
fn long_rows_of_marks() {
    let marks = [
        "\u{301}",
        "\u{316}",
        "\u{344}",
        "\u{f73}",
        "\u{ff9e}",
        "\u{345}",
        "\u{5b0}",
        "\u{301}\u{316}",
        "\u{200d}\u{301}",
    ];
    for first in marks {
        for second in marks {
            for letter in ["", "a", "A", "é", "\u{fdfa}", " ", "カ", "\u{1100}"] {
                for count in [1, 15, 29, 30, 31, 70] {
                    let (first, second) = (first.repeat(count), second.repeat(count));
                    check(&format!("x{letter}{first}{second}{letter}"));
                    check(&format!("{letter}{first}\u{9be}{second}"));
                }
            }
        }
    }
}

/// The condition for normalising segment by segment: folding does not change how a segment begins.
#[test]
fn folding_leaves_the_beginnings_of_segments() {
    let rules = Rules::new();
    let begins = |c: char| !matches!(Table::get().entry(c), Entry::Joins { .. } | Entry::Odd);
    for character in all().filter(|&c| begins(c)) {
        let written = character.to_string();
        let folded = rules.casefold(&written);
        assert!(folded.chars().next().is_some_and(begins), "{character:?}");
    }
}

/// The table looks for composed characters in the right blocks.
#[test]
fn no_other_character_composes_with_one_before_it() {
    let rules = Rules::new();
    for character in all().filter(|&c| matches!(Table::get().entry(c), Entry::Plain | Entry::Becomes(_))) {
        let alone: String = rules.fold(once(character));
        for before in ["a", "\u{1100}", "가", "\u{9c7}", "\u{16d67}", "\u{1611e}"] {
            let both = rules.fold(before.chars().chain(once(character)));
            assert_eq!(both, format!("{before}{alone}"), "{character:?}");
        }
    }
    for character in ('\u{3400}'..='\u{ffff}').chain('\u{20000}'..=char::MAX) {
        assert!(
            rules.pair(character).is_none() || ('가'..='힣').contains(&character),
            "{character:?}"
        );
    }
}

/// A letter may be folded before it composes with a mark, because the result is folded too.
#[test]
fn folding_before_composing_is_folding_after_it() {
    let rules = Rules::new();
    let entry = |c: char| Table::get().entry(c);
    let mut checked = 0;
    for character in all() {
        let Some((first, second)) = rules.pair(character) else {
            continue;
        };
        let alone = match entry(first) {
            Entry::Plain | Entry::Joins { class: 0, .. } => first,
            Entry::Becomes(other) => other,
            _ => continue,
        };
        if matches!(entry(second), Entry::Joins { .. }) {
            let folded = rules.fold(once(character));
            let composed = rules.composed(alone, second);
            let both = composed.map_or_else(|| [alone, second].iter().collect(), String::from);
            assert_eq!(folded, both, "{character:?}");
            checked += 1;
        }
    }
    assert!(checked > 11_000, "{checked}");
}

#[test]
fn no_raised_digit_is_overlooked() {
    let makes_digits = |text: &str| Normalised::of(text).makes_digits;
    let raised: Vec<char> = ('\0'..=char::MAX)
        .filter(|&c| Tables::get().figures.get(c) == Figure::Raised)
        .collect();
    assert!(raised.len() > 100);
    for character in raised {
        assert!(makes_digits(&format!("5{character}")), "{character}");
    }
    assert!(!makes_digits("5 of 7, 中文。"));
}
