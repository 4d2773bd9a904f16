//! Packs jieba's words and model into the bytes that `src/words/embedded.rs` reads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::averages::{mean, median};
use crate::jieba::Package;
use crate::layout::{ENDS_WORD, HAN, IN_NO_WORD, LABEL_MAX, Label, is_of_block, is_plain};
use crate::trie::{Word, double_array};

/// Pack the package. Numbers are little-endian; a list begins with its length as u64.
///
/// ```text
/// digest of the package       16 bytes
/// total of all frequencies    u64
/// median and mean of the IDF  2 × f64
/// HMM: start, transitions     4 × f64, 16 × f64
/// HMM: emissions              list of 4 × f64, by character from U+4E00 on
/// different frequencies       list of u64; the first stands for none
/// different IDF               list of f64; the first stands for none
/// trie                        list of u64, which are `layout::Node`
/// labels                      list of u16, by `layout::place_of` a character
/// ```
pub fn packed(package: &Package) -> Vec<u8> {
    let idf: Vec<f64> = package.idf.values().copied().collect();
    let mut out = package.digest.to_vec();
    out.extend(package.total.to_le_bytes());
    let averages = [median(&idf), mean(&idf)];
    let model = package.start.iter().chain(package.transitions.iter().flatten());
    out.extend(averages.iter().chain(model).flat_map(|number| number.to_le_bytes()));
    list(
        &mut out,
        package
            .emissions
            .iter()
            .map(|states| states.map(f64::to_le_bytes).concat()),
    );

    let frequencies = different(package.frequencies.values().copied());
    list(&mut out, frequencies.iter().map(|frequency| frequency.to_le_bytes()));
    // Positive numbers have the order of their bits.
    let idf = different(idf.iter().map(|number| number.to_bits()));
    list(&mut out, idf.iter().map(|bits| bits.to_le_bytes()));
    let labels = labels(package);
    let words: Vec<Word> = words(package)
        .map(|word| Word {
            labels: word.chars().map(|letter| labels[&letter]).collect(),
            frequency: package
                .frequencies
                .get(word)
                .map_or(0, |frequency| place(&frequencies, frequency)),
            idf: package.idf.get(word).map_or(0, |number| place(&idf, &number.to_bits())),
            is_name: package.names.contains(word),
        })
        .collect();
    list(&mut out, double_array(&words).iter().map(|node| node.0.to_le_bytes()));
    let by_place: Vec<Label> = ('\0'..='\x7f')
        .chain(HAN)
        .map(|letter| label(&labels, letter))
        .collect();
    list(&mut out, by_place.iter().map(|label| label.to_le_bytes()));
    out
}

/// The words that a text can be cut into, of the dictionary and of the IDF table, in the order of code points.
fn words(package: &Package) -> impl Iterator<Item = &str> {
    let words: BTreeSet<&str> = package
        .frequencies
        .keys()
        .chain(package.idf.keys())
        .map(String::as_str)
        .collect();
    words
        .into_iter()
        .filter(|word| word.chars().all(is_of_block))
        .inspect(|word| {
            let is_plain = word.len() > 1 && word.chars().all(is_plain);
            assert!(
                !is_plain,
                "{word:?} is a word, and the engine looks for none of such characters only"
            );
        })
}

/// The label of each character in words, the smaller the more words it is in: those of a text lie close together.
fn labels(package: &Package) -> BTreeMap<char, Label> {
    let mut counts = BTreeMap::new();
    for letter in words(package).flat_map(str::chars) {
        *counts.entry(letter).or_insert(0) += 1;
    }
    let mut letters: Vec<char> = counts.keys().copied().collect();
    letters.sort_by_key(|letter| Reverse(counts[letter]));
    assert!(
        letters.len() <= usize::from(LABEL_MAX),
        "there are labels for all characters"
    );
    letters.into_iter().zip(1..).collect()
}

fn label(labels: &BTreeMap<char, Label>, letter: char) -> Label {
    if is_of_block(letter) {
        labels.get(&letter).copied().unwrap_or(IN_NO_WORD)
    } else {
        ENDS_WORD
    }
}

/// The different items in order, after one that stands for none.
fn different<Item: Default + Ord>(items: impl Iterator<Item = Item>) -> Vec<Item> {
    items
        .chain([Item::default()])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn place<Item: Ord>(items: &[Item], item: &Item) -> usize {
    items.binary_search(item).expect("the item is in the list")
}

fn list<Bytes: AsRef<[u8]>>(out: &mut Vec<u8>, items: impl ExactSizeIterator<Item = Bytes>) {
    out.extend((items.len() as u64).to_le_bytes());
    items.for_each(|item| out.extend_from_slice(item.as_ref()));
}
