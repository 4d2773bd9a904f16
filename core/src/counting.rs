//! Counts the words of a text: each distinct word once, with how often it occurs.

use std::hash::Hasher;
use std::ops::Range;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::words::{self, Cutter, WordId};

/// A distinct word of a text: where it stands first, and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place in the text, in characters.
    pub range: Range<usize>,
    /// Its number, if jieba knows it.
    pub id: Option<WordId>,
    /// How often it occurs.
    pub count: u32,
}

/// Memory that one text after the other uses.
#[derive(Debug, Default)]
pub struct Counter {
    cutting: words::Scratch,
    table: HashTable<usize>,
    counted: Vec<Counted>,
}

impl Counter {
    /// Count the words of at least this many characters, in the order in which they occur first.
    pub fn count(&mut self, text: &[char], cutter: &Cutter, characters_min: usize) -> &[Counted] {
        let Self {
            cutting,
            table,
            counted,
        } = self;
        table.clear();
        counted.clear();
        cutter.cut(text, cutting, |range, id| {
            if range.len() < characters_min {
                return;
            }
            let place = counted.len();
            let found = table.entry(
                hash(text, &range, id),
                |&other| same(text, &counted[other], &range, id),
                |&other| hash(text, &counted[other].range, counted[other].id),
            );
            match found {
                hashbrown::hash_table::Entry::Occupied(entry) => counted[*entry.get()].count += 1,
                hashbrown::hash_table::Entry::Vacant(entry) => {
                    entry.insert(place);
                    counted.push(Counted { range, id, count: 1 });
                }
            }
        });
        counted
    }
}

fn hash(text: &[char], range: &Range<usize>, id: Option<WordId>) -> u64 {
    let mut hasher = FxHasher::default();
    match id {
        Some(known) => hasher.write_u32(known.number()),
        None => text[range.clone()]
            .iter()
            .for_each(|&letter| hasher.write_u32(u32::from(letter))),
    }
    hasher.finish()
}

fn same(text: &[char], counted: &Counted, range: &Range<usize>, id: Option<WordId>) -> bool {
    // A word that jieba knows always comes with its number.
    match (counted.id, id) {
        (Some(one), Some(other)) => one == other,
        (None, None) => text[counted.range.clone()] == text[range.clone()],
        _ => false,
    }
}
