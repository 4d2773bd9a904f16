//! Lays out a trie as a double array; `src/words/layout.rs` says how its nodes are found.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::layout::{IN_NO_WORD, Label, NO_CHILDREN, Node, ROOT};

/// A word, as labels, and what its node says.
pub struct Word {
    /// The labels of its characters, at least one.
    pub labels: Vec<Label>,
    /// The place of its frequency, 0 for none.
    pub frequency: usize,
    /// The place of its IDF, 0 for none.
    pub idf: usize,
    /// Whether it is a name.
    pub is_name: bool,
}

#[derive(Default)]
struct Prefix {
    children: BTreeMap<Label, usize>,
    frequency: usize,
    idf: usize,
    is_name: bool,
}

/// Lay out these words.
pub fn double_array(words: &[Word]) -> Vec<Node> {
    let prefixes = prefixes(words);
    let labels_max = words.iter().flat_map(|word| &word.labels).max().copied().unwrap_or(0);
    let mut array = Array::new(usize::from(labels_max) + 1);
    let mut bases = vec![NO_CHILDREN; prefixes.len()];
    let mut parents: Vec<usize> = (0..prefixes.len())
        .filter(|&of| !prefixes[of].children.is_empty())
        .collect();
    // Who has many children finds room as long as there is much. The root comes first of all: its base is given.
    parents.sort_by_key(|&of| (of > 0, Reverse(prefixes[of].children.len())));
    for of in parents {
        let labels = prefixes[of].labels();
        bases[of] = if of == 0 { ROOT } else { array.free_base(&labels) };
        array.occupy(bases[of], &labels);
    }
    assert!(
        array.taken.len() <= NO_CHILDREN ^ usize::from(IN_NO_WORD),
        "no label leads from a childless node to a place"
    );
    let mut nodes = vec![Node::FREE; array.taken.len()];
    for (of, prefix) in prefixes.iter().enumerate() {
        for (&label, &child) in &prefix.children {
            let Prefix {
                frequency,
                idf,
                is_name,
                ..
            } = prefixes[child];
            let node = Node::pack(label, bases[child], frequency, idf, is_name);
            nodes[bases[of] ^ usize::from(label)] = node.expect("jieba has fewer words, and fewer different numbers");
        }
    }
    nodes
}

impl Prefix {
    fn labels(&self) -> Vec<usize> {
        self.children.keys().copied().map(usize::from).collect()
    }
}

/// All beginnings of words, the empty one first.
fn prefixes(words: &[Word]) -> Vec<Prefix> {
    let mut prefixes = vec![Prefix::default()];
    for word in words {
        let mut prefix = 0;
        for &label in &word.labels {
            let next = prefixes.len();
            prefix = *prefixes[prefix].children.entry(label).or_insert(next);
            if prefix == next {
                prefixes.push(Prefix::default());
            }
        }
        let last = &mut prefixes[prefix];
        (last.frequency, last.idf, last.is_name) = (word.frequency, word.idf, word.is_name);
    }
    prefixes
}

/// The places of a double array.
struct Array {
    /// By place: whether a node lies there.
    taken: Vec<bool>,
    /// By place: whether it is the base of a node.
    is_base: Vec<bool>,
    /// A power of two above all labels: a base and its children lie in the same block of this size.
    block: usize,
    /// For how many children a search began at the first place, and where the last one since then ended.
    search: (usize, usize),
}

impl Array {
    fn new(labels: usize) -> Self {
        let block = labels.next_power_of_two();
        Self {
            taken: vec![false; block],
            is_base: vec![false; block],
            block,
            search: (labels, 0),
        }
    }

    /// A base that no other node has, with room for children with these labels.
    fn free_base(&mut self, labels: &[usize]) -> usize {
        // Where there was no room for some children there may be for fewer: these begin at the first place again.
        let (children, ended) = self.search;
        let (children, mut place) = if labels.len() * 8 > children * 7 {
            (children, ended)
        } else {
            (labels.len(), 0)
        };
        while !self.has_room(place ^ labels[0], labels) {
            place += 1;
            if place == self.taken.len() {
                self.taken.resize(place + self.block, false);
                self.is_base.resize(place + self.block, false);
            }
        }
        self.search = (children, place);
        place ^ labels[0]
    }

    fn has_room(&self, base: usize, labels: &[usize]) -> bool {
        !self.is_base[base] && labels.iter().all(|label| !self.taken[base ^ label])
    }

    fn occupy(&mut self, base: usize, labels: &[usize]) {
        self.is_base[base] = true;
        for label in labels {
            self.taken[base ^ label] = true;
        }
    }
}
