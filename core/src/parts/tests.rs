//! Anchors and samples against a plain implementation of their definition.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::anchors::{NEIGHBOURS, POSTED, count_max};
use super::sample::HASHES_MAX;
use super::*;
use crate::hashes::mix_64;
use crate::sketch::{self, OfWords, Shingled, Shingling, TextOfWords};
use crate::unicode::is_word;

const SHORT: usize = OfWords::STRETCH_SHORT;
const LONG: usize = OfWords::STRETCH_LONG;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn found(text: &str) -> Parts {
    let letters: Vec<char> = text.chars().collect();
    let mut finder = Finder::new(OfWords);
    let text = TextOfWords {
        text: &letters,
        declared: 0,
    };
    text.read(&mut finder);
    finder.parts()
}

fn numbers(packed: &[u8]) -> Vec<u64> {
    packed
        .chunks_exact(8)
        .map(|number| number.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
        .collect()
}

/// A text's words with one space between them.
fn spaced(text: &str) -> Vec<char> {
    let spaced: String = text.chars().map(|c| if is_word(c) { c } else { ' ' }).collect();
    let words: Vec<_> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().collect()
}

fn hash(characters: &[char]) -> u64 {
    let polynomial = characters.iter().fold(0_u64, |h, &c| {
        h.wrapping_mul(GOLDEN).wrapping_add(u64::from(u32::from(c)))
    });
    mix_64(polynomial.wrapping_add(characters.len() as u64))
}

/// The hashes of the stretches that begin at each character, `None` where none fits.
fn hashes(text: &[char], short: usize, long: usize) -> Vec<Option<u64>> {
    let begins_short = |start: usize| match text[start] {
        ' ' => text[start + 1] >= '\u{2e80}',
        character => character >= '\u{2e80}',
    };
    (0..text.len())
        .map(|start| {
            let length = if begins_short(start) { short } else { long };
            text.get(start..start + length).map(hash)
        })
        .collect()
}

fn anchors(text: &str) -> Vec<u64> {
    let stretches = hashes(&spaced(text), SHORT, LONG);
    let end = stretches.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let smallest = |place: usize| {
        let own = stretches[place]?;
        let near = place.saturating_sub(NEIGHBOURS)..stretches.len().min(place + NEIGHBOURS + 1);
        let is_smallest = near
            .filter(|&other| other != place)
            .filter_map(|other| Some((other, stretches[other]?)))
            .all(|(other, hash)| own < hash || own == hash && place < other);
        is_smallest.then_some((place, own))
    };
    let candidates: Vec<_> = (0..stretches.len()).filter_map(smallest).collect();
    let mut ranked: Vec<_> = candidates
        .iter()
        .map(|&(place, own)| {
            let smaller = candidates.iter().filter(|&&(other, hash)| (hash, other) < (own, place));
            let nearest = smaller.map(|&(other, _)| other.abs_diff(place)).min();
            let reach = (place + 1).min(end - place).min(nearest.unwrap_or(usize::MAX));
            (Reverse(reach), own)
        })
        .collect();
    ranked.sort_unstable();
    let mut seen = BTreeSet::new();
    let distinct = ranked
        .into_iter()
        .map(|(_, hash)| hash)
        .filter(|&hash| seen.insert(hash));
    distinct.take(count_max(end)).collect()
}

fn sample(text: &str) -> Vec<u8> {
    let text = spaced(text);
    let mut shingles: BTreeSet<u64> = hashes(&text, sketch::SHORT, sketch::LONG)
        .into_iter()
        .flatten()
        .collect();
    if shingles.is_empty() && !text.is_empty() {
        shingles.insert(hash(&text));
    }
    let chosen: BTreeSet<u64> = shingles
        .into_iter()
        .filter(|hash| hash % 8 == 0)
        .map(|hash| mix_64(hash) >> 32)
        .collect();
    chosen
        .into_iter()
        .take(HASHES_MAX)
        .flat_map(|hash| hash.to_be_bytes().into_iter().skip(4))
        .collect()
}

/// A text of this many random pieces, by a seed.
fn drawn(seed: u64, pieces: usize) -> String {
    let all = [
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
        "ein Satz, ",
        "四层的馆",
    ];
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..pieces {
        state = mix_64(state.wrapping_add(GOLDEN));
        text.push_str(all[usize::try_from(state % all.len() as u64).expect("small")]);
    }
    text
}

#[test]
fn parts_equal_the_reference() {
    for round in 0..300 {
        let text = drawn(round, usize::try_from(round).expect("small") % 90 * 4);
        let parts = found(&text);
        assert_eq!(numbers(&parts.anchors), anchors(&text), "{text:?}");
        assert_eq!(parts.sample, sample(&text), "{text:?}");
    }
}

#[test]
fn long_and_repeated_texts_equal_the_reference() {
    for text in [
        drawn(7, 5_000),
        "字".repeat(3_000),
        "a ".repeat(3_000),
        drawn(8, 30).repeat(40),
        drawn(9, 200).repeat(3),
    ] {
        let parts = found(&text);
        assert_eq!(numbers(&parts.anchors), anchors(&text));
        assert_eq!(parts.sample, sample(&text));
    }
}

#[test]
fn a_text_has_no_more_parts_than_are_kept() {
    let ideograph = |number| char::from_u32(0x4e00 + u32::try_from(mix_64(number) % 20_000).expect("small"));
    let long: String = (0..30_000).filter_map(ideograph).collect();
    let parts = found(&long);
    assert_eq!(parts.anchors.len(), 8 * POSTED);
    assert_eq!(parts.sample.len(), 4 * HASHES_MAX);
    let short: String = (0..400).filter_map(ideograph).collect();
    assert_eq!(found(&short).anchors.len(), 8 * 8);
    let middling: String = (0..700).filter_map(ideograph).collect();
    assert_eq!(found(&middling).anchors.len(), 8 * 11);
    assert_eq!(found("，。!"), Parts::default());
    assert!(found("字").anchors.is_empty());
    assert_eq!(found(&"字".repeat(5_000)).anchors.len(), 8);
}

#[test]
fn a_stretch_has_the_same_anchors_in_other_text() {
    let shared = drawn(1, 150);
    let alone = numbers(&found(&shared).anchors);
    for seed in 2..20 {
        let around = format!("{} {shared} {}", drawn(seed, 120), drawn(seed + 100, 120));
        let looked_up = &numbers(&found(&around).anchors)[..8];
        assert!(looked_up.iter().any(|anchor| alone.contains(anchor)), "{seed}");
    }
}
