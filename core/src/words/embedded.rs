//! jieba's words and model, which are part of the compiled module, in the format of `build/packed.rs`.

use std::fmt;
use std::sync::OnceLock;

use super::layout::{ENDS_WORD, Label, Node, ROOT, place_of};
use super::model::Model;

static PACKED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/words.bin")));
static WORDS: OnceLock<Words> = OnceLock::new();
const DIGEST_BYTES: usize = 16;

/// Bytes whose numbers are at multiples of eight, so that none crosses a line of the processor's cache.
#[repr(align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

/// A word of jieba's dictionary or IDF table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordId(pub(super) u32);

impl WordId {
    /// Its number, which is unique.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// jieba's dictionary, IDF table and model, which are read from the module's memory without a copy.
pub struct Words {
    /// By place of a frequency: its natural logarithm.
    pub(super) logarithms: Vec<f64>,
    /// By place of a frequency: itself, a u64.
    frequencies: &'static [[u8; 8]],
    /// By place of an IDF, an f64. The first place means none.
    idf: &'static [[u8; 8]],
    /// The trie: [`Node`]s, each a u64.
    nodes: &'static [[u8; 8]],
    /// By place of a character, a u16.
    labels: &'static [[u8; 2]],
    pub(super) model: Model,
    /// The sum of all frequencies.
    pub(super) total: u64,
    median: f64,
    mean: f64,
    digest: [u8; DIGEST_BYTES],
}

impl fmt::Debug for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Words")
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

impl Words {
    /// The words that this module was built with. The first call takes a tenth of a millisecond.
    #[must_use]
    pub fn embedded() -> &'static Self {
        WORDS.get_or_init(|| Self::unpack(&PACKED.0))
    }

    /// The number of a word, if jieba knows it and can produce it from a text.
    #[must_use]
    pub fn find(&self, word: &[char]) -> Option<WordId> {
        let (mut base, mut last) = (ROOT, None);
        for &letter in word {
            let (id, node) = self.child(base, self.label(letter))?;
            (base, last) = (node.base(), Some((id, node)));
        }
        last.filter(|(_, node)| node.frequency() > 0 || node.idf() > 0)
            .map(|(id, _)| id)
    }

    /// The IDF of a word, if the table has it.
    #[must_use]
    pub fn idf(&self, word: WordId) -> Option<f64> {
        match self.node(word).idf() {
            0 => None,
            place => Some(f64::from_le_bytes(self.idf[place])),
        }
    }

    /// The median IDF; of an even number, the greater of the middle two.
    #[must_use]
    pub const fn median(&self) -> f64 {
        self.median
    }

    /// The mean IDF: the sum, rounded once, by the number of words.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// The `BLAKE2b` digest of the files of jieba, as `consumer/workers/word_files.py` computes it.
    #[must_use]
    pub const fn digest(&self) -> &[u8; DIGEST_BYTES] {
        &self.digest
    }

    /// The label of a character, [`ENDS_WORD`] for one outside blocks.
    #[inline]
    pub(super) fn label(&self, letter: char) -> Label {
        place_of(letter).map_or(ENDS_WORD, |place| Label::from_le_bytes(self.labels[place]))
    }

    /// The child with this label of the node that has this base.
    #[inline]
    pub(super) fn child(&self, base: usize, label: Label) -> Option<(WordId, Node)> {
        let place = base ^ usize::from(label);
        let node = Node(u64::from_le_bytes(*self.nodes.get(place)?));
        #[allow(clippy::cast_possible_truncation)] // a base has 23 bits
        (node.label() == label).then_some((WordId(place as u32), node))
    }

    /// The frequency of a word, 0 for a word that the dictionary does not have.
    pub(super) fn frequency(&self, word: WordId) -> u64 {
        u64::from_le_bytes(self.frequencies[self.node(word).frequency()])
    }

    /// Whether a word is the name of a place, person or institution in the dictionary.
    #[must_use]
    pub fn is_name(&self, word: WordId) -> bool {
        self.node(word).is_name()
    }

    fn node(&self, word: WordId) -> Node {
        Node(u64::from_le_bytes(self.nodes[word.0 as usize]))
    }

    fn unpack(packed: &'static [u8]) -> Self {
        let mut rest = Unpacking(packed);
        let digest = *rest.array();
        let total = u64::from_le_bytes(*rest.array());
        let [median, mean] = rest.numbers();
        let start = rest.numbers();
        let transitions = [(); 4].map(|()| rest.numbers());
        let emissions = rest.list::<32>().as_flattened().as_chunks().0.as_chunks().0;
        let frequencies = rest.list();
        let idf = rest.list();
        let nodes = rest.list();
        let labels = rest.list();
        #[allow(clippy::cast_precision_loss)] // Python's logarithm begins like this as well
        let logarithm = |frequency: &[u8; 8]| (u64::from_le_bytes(*frequency) as f64).ln();
        let logarithms = frequencies.iter().map(logarithm).collect();
        let model = Model {
            start,
            transitions,
            emissions,
        };
        Self {
            logarithms,
            frequencies,
            idf,
            nodes,
            labels,
            model,
            total,
            median,
            mean,
            digest,
        }
    }
}

/// The bytes still to unpack.
struct Unpacking(&'static [u8]);

impl Unpacking {
    fn array<const BYTES: usize>(&mut self) -> &'static [u8; BYTES] {
        let (array, rest) = self.0.split_first_chunk().expect("the build script has packed it");
        self.0 = rest;
        array
    }

    fn numbers<const COUNT: usize>(&mut self) -> [f64; COUNT] {
        [(); COUNT].map(|()| f64::from_le_bytes(*self.array()))
    }

    fn list<const BYTES: usize>(&mut self) -> &'static [[u8; BYTES]] {
        let count = u64::from_le_bytes(*self.array());
        let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(BYTES);
        let (list, rest) = self.0.split_at(bytes);
        self.0 = rest;
        list.as_chunks().0
    }
}
