//! The layout of words, which the build script and the engine share: both compile this file.
#![allow(dead_code)] // each of them uses its half

/// The characters that the hidden Markov model splits: `re_han` of `finalseg/__init__.py`.
pub const HAN: std::ops::RangeInclusive<char> = '\u{4e00}'..='\u{9fd5}';

/// Whether a character can be part of a longer word: `re_han_default` of `jieba/__init__.py`.
pub const fn is_of_block(letter: char) -> bool {
    is_han(letter) || is_plain(letter) || matches!(letter, '+' | '#' | '&')
}

/// Whether a character is one of those that, without others, make no word of jieba but those of one character.
#[inline]
pub const fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '%' | '-')
}

/// Whether a character is one of [`HAN`].
#[inline]
pub const fn is_han(letter: char) -> bool {
    *HAN.start() <= letter && letter <= *HAN.end()
}

/// The place of an ASCII character, or one of [`HAN`], in a table of both.
#[inline]
pub const fn place_of(letter: char) -> Option<usize> {
    if letter.is_ascii() {
        Some(letter as usize)
    } else if is_han(letter) {
        Some(ASCII + letter as usize - *HAN.start() as usize)
    } else {
        None
    }
}

const ASCII: usize = 128;

/// The number of a character in the trie; frequent characters have small numbers.
pub type Label = u16;

/// A character that is not [`is_of_block`]: jieba ends a word there.
pub const ENDS_WORD: Label = 0;
/// A character that is in no word of the trie.
pub const IN_NO_WORD: Label = (1 << LABEL_BITS) - 1;
/// The greatest label of a character.
pub const LABEL_MAX: Label = IN_NO_WORD - 2;
const OF_FREE_PLACE: Label = IN_NO_WORD - 1;

/// The base of a node without children: beyond the array.
pub const NO_CHILDREN: usize = (1 << BASE_BITS) - 1;
/// The base of the root, which is no node of the array.
pub const ROOT: usize = 0;

const LABEL_BITS: u32 = 15;
const BASE_BITS: u32 = 22;
const FREQUENCY_BITS: u32 = 14;
const IDF_BITS: u32 = 12;
const BASE_AT: u32 = LABEL_BITS;
const FREQUENCY_AT: u32 = BASE_AT + BASE_BITS;
const IDF_AT: u32 = FREQUENCY_AT + FREQUENCY_BITS;
const NAME_AT: u32 = IDF_AT + IDF_BITS;

/// A node of the trie: the beginning of words, and a word itself if it has a frequency or an IDF.
///
/// The trie is a double array (Aoe, "An efficient digital search algorithm by using a double-array structure", 1989) with
/// labels in place of parents. A child is at its parent's base XOR its label, and belongs to that parent if it has that
/// label, because all bases are different. A node has 64 bits, so a step through the trie reads one place of memory.
/// From the lowest bit on, these are its label, its base, the places of its frequency and of its IDF among the distinct
/// values, where 0 means none, and whether it is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub u64);

impl Node {
    /// A place of the array without a node.
    pub const FREE: Self = Self(OF_FREE_PLACE as u64);

    /// Pack a node; None if a number is too large.
    pub fn pack(label: Label, base: usize, frequency: usize, idf: usize, is_name: bool) -> Option<Self> {
        let fields = [(label.into(), 0, LABEL_BITS), (base, BASE_AT, BASE_BITS)];
        let places = [(frequency, FREQUENCY_AT, FREQUENCY_BITS), (idf, IDF_AT, IDF_BITS)];
        let mut packed = u64::from(is_name) << NAME_AT;
        for (value, at, bits) in fields.into_iter().chain(places) {
            packed |= u64::try_from(value).ok().filter(|&value| value < 1 << bits)? << at;
        }
        Some(Self(packed))
    }

    /// The label of the character with which it ends.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // it has 15 bits
    pub const fn label(self) -> Label {
        self.field(0, LABEL_BITS) as Label
    }

    /// The number that, XOR a label, gives the place of a child.
    #[inline]
    pub const fn base(self) -> usize {
        self.field(BASE_AT, BASE_BITS)
    }

    /// The place of the word's frequency.
    #[inline]
    pub const fn frequency(self) -> usize {
        self.field(FREQUENCY_AT, FREQUENCY_BITS)
    }

    /// The place of the word's IDF.
    #[inline]
    pub const fn idf(self) -> usize {
        self.field(IDF_AT, IDF_BITS)
    }

    /// Whether the word is the name of a place, person or institution in the dictionary.
    pub const fn is_name(self) -> bool {
        self.0 >> NAME_AT == 1
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // no field has more than 22 bits
    const fn field(self, at: u32, bits: u32) -> usize {
        (self.0 >> at) as usize & ((1 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_what_was_packed() {
        let node = Node::pack(LABEL_MAX, NO_CHILDREN, 16_383, 4_095, true).unwrap();
        assert_eq!(
            (node.label(), node.base(), node.frequency(), node.idf()),
            (LABEL_MAX, NO_CHILDREN, 16_383, 4_095)
        );
        assert!(node.is_name());
        assert_eq!(Node::pack(7, 0, 0, 1, false).unwrap().base(), ROOT);
        assert!(!Node::pack(7, 0, 0, 1, false).unwrap().is_name());
        assert_eq!(Node::FREE.label(), OF_FREE_PLACE);
    }

    #[test]
    fn numbers_that_are_too_large_are_not_packed() {
        assert_eq!(Node::pack(1 << 15, 0, 0, 0, false), None);
        assert_eq!(Node::pack(1, NO_CHILDREN + 1, 0, 0, false), None);
        assert_eq!(Node::pack(1, 0, 16_384, 0, false), None);
        assert_eq!(Node::pack(1, 0, 0, 4_096, false), None);
    }
}
