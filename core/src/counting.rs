//! Counts the words of a text: each distinct word with its number of occurrences.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::words::{self, Cutter, WordId};

/// A distinct word of a text: its first place, and its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place in the text, in characters.
    pub range: Range<usize>,
    /// Its number, if jieba knows it.
    pub id: Option<WordId>,
    /// Its number of occurrences.
    pub count: u32,
}

/// Memory for more distinct words than this is freed.
const KEPT_WORDS_MAX: usize = 1 << 13;

/// Memory that is reused from text to text.
#[derive(Debug, Default)]
pub struct Counter {
    cutting: words::Scratch,
    /// Randomly seeded, because an author could choose words that collide under a known seed.
    hashing: DefaultHashBuilder,
    table: HashTable<usize>,
    counted: Vec<Counted>,
}

impl Counter {
    /// Count the words of at least this many characters, in order of first occurrence.
    ///
    /// `each` gets every occurrence.
    pub fn count(
        &mut self,
        text: &[char],
        cutter: &Cutter,
        characters_min: usize,
        mut each: impl FnMut(&Range<usize>, Option<WordId>),
    ) -> &[Counted] {
        let Self {
            cutting,
            hashing,
            table,
            counted,
        } = self;
        table.clear();
        counted.clear();
        if counted.capacity() > KEPT_WORDS_MAX {
            *table = HashTable::new();
            counted.shrink_to(KEPT_WORDS_MAX);
        }
        cutter.cut(text, cutting, |range, id| {
            if range.len() < characters_min {
                return;
            }
            each(&range, id);
            let place = counted.len();
            let found = table.entry(
                hash(hashing, text, &range, id),
                |&other| same(text, &counted[other], &range, id),
                |&other| hash(hashing, text, &counted[other].range, counted[other].id),
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

fn hash(hashing: &impl BuildHasher, text: &[char], range: &Range<usize>, id: Option<WordId>) -> u64 {
    match id {
        Some(known) => hashing.hash_one(known),
        None => hashing.hash_one(&text[range.clone()]),
    }
}

fn same(text: &[char], counted: &Counted, range: &Range<usize>, id: Option<WordId>) -> bool {
    // A word that jieba knows always comes with its number.
    match (counted.id, id) {
        (Some(one), Some(other)) => one == other,
        (None, None) => text[counted.range.clone()] == text[range.clone()],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_the_order_in_which_they_occur_first() {
        let text: Vec<char> = "the wing, the new wing of the museum".chars().collect();
        let mut counter = Counter::default();
        let cutter = Cutter::new(&[]);
        for _ in 0..2 {
            let found: Vec<(String, u32)> = counter
                .count(&text, &cutter, 3, |_, _| {})
                .iter()
                .map(|word| (text[word.range.clone()].iter().collect(), word.count))
                .collect();
            let expected = [("the", 3), ("wing", 2), ("new", 1), ("museum", 1)];
            assert_eq!(found, expected.map(|(word, count)| (word.to_owned(), count)));
        }
    }

    #[test]
    fn memory_of_a_long_text_is_given_back() {
        let long: Vec<char> = (0..100_000)
            .flat_map(|word| format!("w{word} ").chars().collect::<Vec<_>>())
            .collect();
        let (mut counter, cutter) = (Counter::default(), Cutter::new(&[]));
        assert_eq!(counter.count(&long, &cutter, 2, |_, _| {}).len(), 100_000);
        assert!(counter.count(&[], &cutter, 2, |_, _| {}).is_empty());
        assert!(counter.counted.capacity() <= KEPT_WORDS_MAX && counter.table.capacity() == 0);
    }

    #[test]
    fn nobody_can_foresee_which_words_collide() {
        let word = ['w', 'o', 'r', 'd'];
        let mut hashes: Vec<u64> = (0..8)
            .map(|_| hash(&Counter::default().hashing, &word, &(0..word.len()), None))
            .collect();
        hashes.dedup();
        assert!(hashes.len() > 1);
    }
}
