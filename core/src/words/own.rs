//! The user's own words, which are added to the dictionary or replace the frequencies of its words.

use rustc_hash::FxHashMap;

use super::embedded::{WordId, Words};
use super::layout::is_plain;

/// An own word.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnWord {
    /// The natural logarithm of its frequency.
    pub(super) logarithm: f64,
    /// Its number, if jieba knows it.
    pub(super) id: Option<WordId>,
}

/// Own words as a trie.
#[derive(Debug, Default)]
pub(super) struct OwnWords {
    children: FxHashMap<(u32, char), u32>,
    words: FxHashMap<u32, OwnWord>,
}

impl OwnWords {
    /// The node of the empty word.
    pub(super) const ROOT: u32 = 0;

    /// Take words with their frequencies. Also returns the total of the dictionary with these words.
    ///
    /// An own word replaces that of the dictionary, and a repeated one replaces the former.
    pub(super) fn new(own: &[(Vec<char>, u64)], words: &Words) -> (Self, u64) {
        let mut trie = Self::default();
        let mut frequencies = FxHashMap::default();
        let mut total = words.total;
        for (word, frequency) in own {
            let id = words.find(word);
            let known = id.map_or(0, |id| words.frequency(id));
            let before = frequencies.insert(word, *frequency).unwrap_or(known);
            total = total.saturating_sub(before).saturating_add(*frequency);
            let node = trie.insert(word);
            #[allow(clippy::cast_precision_loss)] // so does Python, before its logarithm
            trie.words.insert(
                node,
                OwnWord {
                    logarithm: (*frequency as f64).ln(),
                    id,
                },
            );
        }
        (trie, total)
    }

    fn insert(&mut self, word: &[char]) -> u32 {
        word.iter().fold(Self::ROOT, |node, &letter| {
            let next = u32::try_from(self.children.len() + 1).expect("own words have fewer characters");
            *self.children.entry((node, letter)).or_insert(next)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether any of these words has two or more characters, all of them plain.
    pub(super) fn has_plain(own: &[(Vec<char>, u64)]) -> bool {
        own.iter()
            .any(|(word, _)| word.len() > 1 && word.iter().copied().all(is_plain))
    }

    /// The node that follows with this character.
    pub(super) fn child(&self, node: u32, letter: char) -> Option<u32> {
        self.children.get(&(node, letter)).copied()
    }

    /// The own word that ends at a node.
    pub(super) fn word(&self, node: u32) -> Option<OwnWord> {
        self.words.get(&node).copied()
    }

    /// Whether this is an own word.
    pub(super) fn contains(&self, word: &[char]) -> bool {
        let node = word
            .iter()
            .try_fold(Self::ROOT, |node, &letter| self.child(node, letter));
        node.is_some_and(|node| self.words.contains_key(&node))
    }
}
