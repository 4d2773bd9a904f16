//! Finds the likeliest way to cut a text into words: `Tokenizer.cut` of `jieba/__init__.py`.

use std::ops::Range;

use super::embedded::{WordId, Words};
use super::layout::{ENDS_WORD, Label, ROOT, is_han, is_of_block, is_plain};
use super::own::OwnWords;
use super::runs::{run_length, split_ascii};

/// Memory for blocks longer than this, in characters, is freed.
const KEPT_CHARS_MAX: usize = 1 << 16;

/// A cutter of texts into words. Threads share it; each has its own [`Scratch`].
#[derive(Debug)]
pub struct Cutter {
    words: &'static Words,
    own: OwnWords,
    /// By place of a frequency: the logarithm of the probability of a word that has it.
    weights: Vec<f64>,
    /// The logarithm of the total of all frequencies.
    log_total: f64,
    /// Whether there are own words of plain characters only: jieba has none.
    has_plain_words: bool,
}

/// Memory for cutting that is reused from text to text.
#[derive(Debug, Default)]
pub struct Scratch {
    /// By place in a block: the label of its character.
    labels: Vec<Label>,
    /// By place in a block: the likeliest path from there to its end.
    route: Vec<Step>,
    /// The steps of the model, by place in a run.
    states: Vec<u8>,
}

/// The likeliest path from a place to the end of a block.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The logarithm of its probability.
    weight: f64,
    /// The characters of its first word.
    length: u32,
    /// The number of its first word, [`NO_ID`] if jieba does not know it.
    id: u32,
}

const NO_ID: u32 = u32::MAX;
const END: Step = Step {
    weight: 0.0,
    length: 0,
    id: NO_ID,
};
/// Less likely than any path.
const NO_WAY: Step = Step {
    weight: f64::NEG_INFINITY,
    length: 0,
    id: NO_ID,
};

impl Cutter {
    /// Cut with jieba's dictionary and the user's own words, each with a frequency of at least 1.
    ///
    /// An own word that the dictionary has gets the new frequency, in the total too. The last frequency of a word counts.
    /// An own word with a character at which jieba ends words is never found.
    #[must_use]
    pub fn new(own: &[(Vec<char>, u64)]) -> Self {
        let words = Words::embedded();
        let has_plain_words = OwnWords::has_plain(own);
        let (own, total) = OwnWords::new(own, words);
        #[allow(clippy::cast_precision_loss)] // so does Python, before its logarithm
        let log_total = (total as f64).ln();
        let weights = words.logarithms.iter().map(|logarithm| logarithm - log_total).collect();
        Self {
            words,
            own,
            weights,
            log_total,
            has_plain_words,
        }
    }

    /// Report the words of a text in order, as places in it; together they cover it.
    ///
    /// A word of two or more characters comes with its number if jieba's dictionary or IDF table has it, even if the
    /// model made it. A single character never does. Time and memory are linear in the text.
    pub fn cut(&self, text: &[char], scratch: &mut Scratch, mut found: impl FnMut(Range<usize>, Option<WordId>)) {
        let mut start = 0;
        while start < text.len() {
            let mut report = |range: Range<usize>, id| found(start + range.start..start + range.end, id);
            start += self.cut_first(&text[start..], scratch, &mut report);
        }
        scratch.give_back();
    }

    /// Report the words of the block at the start of a text, or the single character there. Returns its length.
    fn cut_first(
        &self,
        text: &[char],
        scratch: &mut Scratch,
        found: &mut impl FnMut(Range<usize>, Option<WordId>),
    ) -> usize {
        let plain = run_length(text, is_plain);
        let is_block = plain > 0 && text.get(plain).is_none_or(|&next| !is_of_block(next));
        if is_block && !self.has_plain_words {
            // Most of an English text: each character is single, and no run is a word.
            split_ascii(&text[..plain], |range| found(range, None));
            return plain;
        }
        let labels = text.iter().map(|&letter| self.words.label(letter));
        scratch.labels.clear();
        scratch.labels.extend(labels.take_while(|&label| label != ENDS_WORD));
        let block = scratch.labels.len();
        if block > 0 {
            self.cut_block(&text[..block], scratch, found);
            return block;
        }
        let alone = if text.starts_with(&['\r', '\n']) { 2 } else { 1 };
        found(0..alone, None);
        alone
    }

    /// Report the words of a run of characters that can stand in words with others: `__cut_DAG`.
    fn cut_block(&self, block: &[char], scratch: &mut Scratch, found: &mut impl FnMut(Range<usize>, Option<WordId>)) {
        let Scratch { labels, route, states } = scratch;
        self.find_route(block, labels, route);
        let (mut place, mut singles) = (0, 0);
        while place < block.len() {
            let Step { length, id, .. } = route[place];
            let end = place + length as usize;
            if length > 1 {
                self.cut_singles(block, singles..place, states, found);
                found(place..end, (id != NO_ID).then_some(WordId(id)));
                singles = end;
            }
            place = end;
        }
        self.cut_singles(block, singles..place, states, found);
    }

    /// Find the likeliest path from each place of a block, from its end to its beginning: `calc`.
    fn find_route(&self, block: &[char], labels: &[Label], route: &mut Vec<Step>) {
        route.clear();
        route.resize(block.len() + 1, END);
        for place in (0..block.len()).rev() {
            let after = &route[place + 1..];
            let best = if self.own.is_empty() {
                self.likeliest(&labels[place..], after)
            } else {
                self.likeliest_with_own(&block[place..], &labels[place..], after)
            };
            // Where no word begins, jieba gives the character a frequency of 1.
            let single = Step {
                weight: 0.0 - self.log_total + after[0].weight,
                length: 1,
                id: NO_ID,
            };
            route[place] = if best.length > 0 { best } else { single };
        }
    }

    /// The likeliest path that begins with a word. `after` has the paths from after each character.
    #[inline]
    fn likeliest(&self, labels: &[Label], after: &[Step]) -> Step {
        let (mut best, mut base) = (NO_WAY, ROOT);
        for ((&label, next), length) in labels.iter().zip(after).zip(1..) {
            let Some((WordId(id), node)) = self.words.child(base, label) else {
                break;
            };
            if node.frequency() > 0 {
                best.replace_by(Step {
                    weight: self.weights[node.frequency()] + next.weight,
                    length,
                    id,
                });
            }
            base = node.base();
        }
        best
    }

    /// The same with own words, which come before those of the dictionary.
    fn likeliest_with_own(&self, block: &[char], labels: &[Label], after: &[Step]) -> Step {
        let (mut best, mut base, mut own) = (NO_WAY, Some(ROOT), Some(OwnWords::ROOT));
        for (((&letter, &label), next), length) in block.iter().zip(labels).zip(after).zip(1..) {
            own = own.and_then(|node| self.own.child(node, letter));
            let known = base.and_then(|base| self.words.child(base, label));
            base = known.map(|(_, node)| node.base());
            if let Some(word) = own.and_then(|node| self.own.word(node)) {
                let weight = word.logarithm - self.log_total + next.weight;
                best.replace_by(Step {
                    weight,
                    length,
                    id: word.id.map_or(NO_ID, WordId::number),
                });
            } else if let Some((WordId(id), node)) = known.filter(|(_, node)| node.frequency() > 0) {
                best.replace_by(Step {
                    weight: self.weights[node.frequency()] + next.weight,
                    length,
                    id,
                });
            }
            if own.is_none() && known.is_none() {
                break;
            }
        }
        best
    }

    /// Report the words of a run of single characters on the path, which the model may join.
    fn cut_singles(
        &self,
        block: &[char],
        run: Range<usize>,
        states: &mut Vec<u8>,
        found: &mut impl FnMut(Range<usize>, Option<WordId>),
    ) {
        if run.len() < 2 || self.has_frequency(&block[run.clone()]) {
            run.for_each(|place| found(place..place + 1, None));
            return;
        }
        let mut start = run.start;
        while start < run.end {
            let rest = &block[start..run.end];
            let mut report = |range: Range<usize>| {
                let id = if range.len() > 1 {
                    self.words.find(&rest[range.clone()])
                } else {
                    None
                };
                found(start + range.start..start + range.end, id);
            };
            let han = run_length(rest, is_han);
            if han > 0 {
                self.words.model.split(&rest[..han], states, report);
                start += han;
            } else {
                let ascii = run_length(rest, |letter| !is_han(letter));
                split_ascii(&rest[..ascii], &mut report);
                start += ascii;
            }
        }
    }

    fn has_frequency(&self, word: &[char]) -> bool {
        self.own.contains(word)
            || self
                .words
                .find(word)
                .is_some_and(|known| self.words.frequency(known) > 0)
    }
}

impl Step {
    /// Take a likelier path instead. Paths come by the length of their first words; of two equally likely, the later wins.
    #[inline]
    fn replace_by(&mut self, way: Self) {
        if way.weight >= self.weight {
            *self = way;
        }
    }
}

impl Scratch {
    fn give_back(&mut self) {
        self.labels.clear();
        self.labels.shrink_to(KEPT_CHARS_MAX);
        self.route.clear();
        self.route.shrink_to(KEPT_CHARS_MAX);
        self.states.clear();
        self.states.shrink_to(KEPT_CHARS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(cutter: &Cutter, text: &[char], scratch: &mut Scratch) -> Vec<(Range<usize>, Option<WordId>)> {
        let mut words = Vec::new();
        cutter.cut(text, scratch, |range, id| words.push((range, id)));
        words
    }

    #[test]
    fn words_are_the_text_and_come_with_their_numbers() {
        let own = [("石墨烯".chars().collect(), 5), ("b-2".chars().collect(), 5)];
        let text: Vec<char> = "用b-2和c++写石墨烯，\r\n他来到了网易杭研大厦。".chars().collect();
        for cutter in [Cutter::new(&[]), Cutter::new(&own)] {
            let words = cut(&cutter, &text, &mut Scratch::default());
            assert!(
                words
                    .iter()
                    .zip(&words[1..])
                    .all(|((first, _), (next, _))| first.end == next.start)
            );
            assert_eq!((words[0].0.start, words[words.len() - 1].0.end), (0, text.len()));
            for (range, id) in words {
                let known = Words::embedded().find(&text[range.clone()]);
                assert_eq!(id, if range.len() > 1 { known } else { None });
            }
        }
    }

    #[test]
    fn memory_of_a_long_block_is_given_back() {
        let mut scratch = Scratch::default();
        let text = vec!['\u{9fd5}'; 1_000_000];
        assert_eq!(cut(&Cutter::new(&[]), &text, &mut scratch).len(), text.len());
        assert!(scratch.route.capacity() <= KEPT_CHARS_MAX && scratch.states.capacity() <= KEPT_CHARS_MAX);
        assert!(scratch.labels.capacity() <= KEPT_CHARS_MAX);
    }

    #[test]
    fn threads_share_a_cutter() {
        let (cutter, text) = (Cutter::new(&[]), vec!['中', '国', '人']);
        let alone = cut(&cutter, &text, &mut Scratch::default());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| cut(&cutter, &text, &mut Scratch::default()));
            assert_eq!(other.join().unwrap(), alone);
        });
    }
}
