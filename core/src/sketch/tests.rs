//! Sketches against a plain implementation of their definition.

use std::collections::BTreeMap;

use super::*;
use crate::unicode::is_word;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn of_words(text: &str, declared: usize, layout: &Layout) -> Sketch {
    let text = &letters(text);
    sketch(&TextOfWords { text, declared }, layout, &mut ())
}

/// The shingles by the definition, without a window.
fn shingles(text: &str, declared: usize) -> Vec<Vec<char>> {
    let spaced: String = text.chars().map(|c| if is_word(c) { c } else { ' ' }).collect();
    let words = letters(
        &spaced
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
    );
    let length = |start: usize| match (declared, words[start]) {
        (0, ' ') if words[start + 1] >= '\u{2e80}' => SHORT,
        (0, character) if character >= '\u{2e80}' => SHORT,
        (0, _) => LONG,
        _ => declared,
    };
    let fitting: Vec<_> = (0..words.len())
        .filter(|&start| start + length(start) <= words.len())
        .map(|start| words[start..start + length(start)].to_vec())
        .collect();
    if fitting.is_empty() && !words.is_empty() {
        vec![words]
    } else {
        fitting
    }
}

fn minima_of(text: &str, declared: usize) -> BTreeMap<u64, u64> {
    let mut minima = BTreeMap::new();
    for shingle in shingles(text, declared) {
        let rolling = shingle.iter().fold(0_u64, |h, &c| {
            h.wrapping_mul(GOLDEN).wrapping_add(u64::from(u32::from(c)))
        });
        let hash = mix_64(rolling.wrapping_add(shingle.len() as u64));
        let minimum = minima.entry(hash >> 56).or_insert(u64::MAX);
        *minimum = (*minimum).min(hash & ((1 << 56) - 1));
    }
    minima
}

/// For each bin, itself and then the others in the order in which it tries them.
fn donors() -> Vec<Vec<u64>> {
    let rank = |bin: u64, other: u64| (other != bin, mix_64((bin << 8 | other).wrapping_add(GOLDEN)));
    let order = |bin| {
        let mut others: Vec<u64> = (0..256).collect();
        others.sort_by_cached_key(|&other| rank(bin, other));
        others
    };
    (0..256).map(order).collect()
}

fn reference(found: &BTreeMap<u64, u64>, donors: &[Vec<u64>], bands: usize, band_minima: usize) -> Sketch {
    let filled = |order: &Vec<u64>| order.iter().find_map(|donor| found.get(donor).copied()).unwrap_or(0);
    let dense: Vec<u64> = donors.iter().map(filled).collect();
    let first = bands * band_minima;
    let folded = |band: usize| {
        let minima = &dense[band * band_minima..][..band_minima];
        minima.iter().fold(0xd1b5_4a32_d192_ed03, |folded: u64, &minimum| {
            mix_64(folded.wrapping_add(minimum))
        })
    };
    Sketch {
        bytes: dense
            .iter()
            .map(|minimum| u8::try_from(minimum & 255).expect("a byte"))
            .collect(),
        one_bits: (0..64)
            .map(|place| (dense[first + place] >> 8 & 1) << (63 - place))
            .sum(),
        bands: (0..bands).map(folded).collect(),
        filled_bins: found.len(),
    }
}

#[test]
fn sketches_equal_the_reference() {
    let pieces = [
        "",
        "，",
        "中文",
        "字",
        "a",
        "bc ",
        "word_",
        "。 ",
        "あ",
        "12",
        "\n\n",
        "ein Satz aus Wörtern, ",
    ];
    let donors = donors();
    let mut state = 7_u64;
    for round in 0..400 {
        let mut text = String::new();
        for _ in 0..round % 23 {
            state = mix_64(state.wrapping_add(GOLDEN));
            text.push_str(pieces[usize::try_from(state % pieces.len() as u64).expect("small")]);
        }
        for (declared, (bands, band_minima)) in [(0, (4, 3)), (0, (0, 1)), (SHORT, (16, 12)), (LONG, (8, 5))] {
            let layout = Layout::new(bands, band_minima).expect("it fits");
            let expected = reference(&minima_of(&text, declared), &donors, bands, band_minima);
            assert_eq!(of_words(&text, declared, &layout), expected, "{text:?} {declared}");
        }
    }
}

#[test]
fn a_text_in_which_no_shingle_fits_is_one() {
    let layout = Layout::new(4, 3).expect("it fits");
    for (text, declared, filled) in [
        ("", 0, 0),
        ("，。!", 0, 0),
        ("中文", 0, 1),
        ("eight ch", 0, 1),
        ("中文字四", SHORT, 1),
        ("a中文字四五六七", LONG, 1),
    ] {
        assert_eq!(of_words(text, declared, &layout).filled_bins, filled, "{text}");
    }
    assert_eq!(of_words("!", 0, &layout).bytes, vec![0; 256]);
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    for (bands, band_minima, fits) in [
        (4, 3, true),
        (16, 12, true),
        (16, 13, false),
        (17, 1, false),
        (1, 0, false),
        (0, 256, true),
        (1, usize::MAX, false),
    ] {
        assert_eq!(
            Layout::new(bands, band_minima).is_some(),
            fits,
            "{bands} × {band_minima}"
        );
    }
}

#[test]
fn the_declared_language_sets_the_length_of_shingles() {
    for (language, length) in [
        ("", 0),
        ("zh", SHORT),
        ("zh-CN", SHORT),
        ("ZH_tw", SHORT),
        ("\u{212a}o", SHORT),
        ("en", LONG),
        ("zhx", LONG),
        ("-zh", LONG),
    ] {
        assert_eq!(declared_shingle(language), length, "{language}");
    }
}

/// Keeps the hashes of all shingles.
struct Hashes(Vec<u64>);

impl Reader for Hashes {
    fn shingle(&mut self, hash: u64) {
        self.0.push(hash);
    }
}

#[test]
fn shingles_of_letters_are_hashed_one_by_one() {
    let shingling = OfLetters::new(0x1234_5677, 1, 2);
    let hash = |shingle: &[char]| {
        let value = shingle.iter().fold(0_u64, |value, &letter| {
            value
                .wrapping_mul(shingling.powers().base)
                .wrapping_add(u64::from(letter))
        });
        shingling.finish(value.wrapping_add(shingle.len() as u64))
    };
    let long: Vec<char> = ('a'..='z').chain('一'..='九').cycle().take(400).collect();
    for length in 0..long.len() {
        for text in [
            &long[..length],
            &long[20..20 + length.min(380)],
            &long[26..26 + length.min(200)],
        ] {
            let mut found = Hashes(Vec::new());
            TextOfLetters {
                letters: text,
                shingling,
            }
            .read(&mut found);
            let lengths = text.iter().map(|&letter| if letter < '\u{2e80}' { 7 } else { 6 });
            let mut expected: Vec<u64> = (0..)
                .zip(lengths)
                .filter_map(|(at, n)| text.get(at..at + n).map(hash))
                .collect();
            if expected.is_empty() && !text.is_empty() {
                expected.push(hash(text));
            }
            assert_eq!(found.0, expected, "{text:?}");
        }
    }
}
