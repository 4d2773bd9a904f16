//! The engine, which turns a text into its fingerprint, sketch and evidence.

use std::ops::Range;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};

use crate::counting::{Counted, Counter};
use crate::evidence::{self, Kind, LETTERS_BINS_MIN, SHINGLED_BINS_MIN, Weighed};
use crate::facts;
use crate::forms::Forms;
use crate::hashes::encode;
use crate::known::{self, KnownShingles};
use crate::lexicon::Lexicon;
use crate::parts::{Finder, Parts};
use crate::scheme::{Definition, Parameters};
use crate::sketch::{self, OfLetters, Reader, Shingled, Sketch, TextOfLetters, TextOfWords};
use crate::summing::{self, WeightsTooLarge};

/// The bytes of a text digest, which is of `BLAKE2b`.
pub const DIGEST_BYTES: usize = 16;
const KEPT_UTF8_BYTES_MAX: usize = 1 << 18;
const KEPT_KEYWORDS_MAX: usize = 1 << 13;

/// The results for a text; `consumer.fingerprint.Fingerprints` explains each.
#[derive(Debug)]
pub struct Fingerprint {
    /// The fingerprint, the most significant word first; 64 bits use only the first word.
    pub code: [u64; 2],
    /// The sketch, one-bit minima and bands, from the minima of shingles.
    pub sketch: Sketch,
    /// The heaviest keywords with their weights.
    pub keywords: Vec<(String, f64)>,
    /// The way in which the text is matched.
    pub kind: Kind,
    /// The number of distinct keywords.
    pub keyword_count: usize,
    /// The digest of the compared form.
    pub text_digest: [u8; DIGEST_BYTES],
    /// The digest of the normalised text.
    pub written_digest: [u8; DIGEST_BYTES],
    /// The packed facts or slots, empty if the scheme has neither.
    pub facts: Vec<u8>,
    /// The anchors and the sample, empty unless requested.
    pub parts: Parts,
    /// The packed hashes of known shingles, empty without a set of them.
    pub known_shingles: Vec<u8>,
}

/// Computes fingerprints with one scheme; any number of threads share it.
#[derive(Debug)]
pub struct Engine {
    definition: Definition,
    parameters: Parameters,
    lexicon: Lexicon,
    shingling: OfLetters,
}

/// Memory that is reused from text to text.
#[derive(Debug, Default)]
pub struct Scratch {
    counter: Counter,
    utf8: Vec<u8>,
    keywords: Vec<Keyword>,
    names: Vec<Range<usize>>,
}

impl Scratch {
    /// Free the memory that only an exceptionally long text needed.
    fn give_back(&mut self) {
        self.utf8.truncate(KEPT_UTF8_BYTES_MAX);
        self.utf8.shrink_to(KEPT_UTF8_BYTES_MAX);
        self.keywords.clear();
        self.keywords.shrink_to(KEPT_KEYWORDS_MAX);
        self.names.clear();
        self.names.shrink_to(KEPT_KEYWORDS_MAX);
    }
}

/// A word that counts, by its place among the counted words.
#[derive(Clone, Copy, Debug)]
struct Keyword {
    word: usize,
    weight: f64,
    hash: [u64; 2],
}

impl Engine {
    /// Build an engine. Only schemes that compare letters use `shingling`.
    #[must_use]
    pub const fn new(definition: Definition, parameters: Parameters, lexicon: Lexicon, shingling: OfLetters) -> Self {
        Self {
            definition,
            parameters,
            lexicon,
            shingling,
        }
    }

    /// The definition of the scheme.
    #[must_use]
    pub const fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The parameters of the scheme.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Return the results for a text without surrogates. It declares this language, "" for none.
    ///
    /// # Errors
    ///
    /// [`WeightsTooLarge`] if the weights add up to 2³² or more.
    pub fn fingerprint(
        &self,
        written: &str,
        language: &str,
        known: Option<&KnownShingles>,
        scratch: &mut Scratch,
    ) -> Result<Fingerprint, WeightsTooLarge> {
        scratch.give_back();
        let Scratch {
            counter,
            utf8,
            keywords,
            names,
        } = scratch;
        let forms = Forms::of(written, &self.definition, &self.parameters);
        let written_digest = digest(forms.written(), utf8);
        let text_digest = forms.compared().map_or(written_digest, |form| digest(form, utf8));
        let text = forms.text();
        let read = forms.words();
        let counted = counter.count(
            read,
            &self.lexicon.cutter,
            self.definition.characters_min,
            |range, id| {
                if self.parameters.slots && self.lexicon.is_name(id) {
                    names.push(range.clone());
                }
            },
        );
        self.weigh(read, counted, keywords, utf8);
        let keyword_count = keywords.len();
        let facts = if self.parameters.slots {
            facts::packed_slots(read, names)
        } else if self.parameters.facts {
            self.facts(written, text, read, counted)
        } else {
            Vec::new()
        };
        if let Some(most) = self.parameters.keywords_max {
            keep_heaviest(keywords, most, read, counted);
        }
        let (sketch, parts, known_shingles) = self.by_shingles(forms.shingled(), language, known);
        let kind = self.kind(keyword_count, sketch.filled_bins, &forms);
        Ok(Fingerprint {
            code: self.code(keywords, kind, &text_digest)?,
            keywords: self.evidence(keywords, counted, read, text),
            kind,
            sketch,
            keyword_count,
            text_digest,
            written_digest,
            facts,
            parts,
            known_shingles,
        })
    }

    /// Return the packed smallest hashes of a text's shingles; the text is as above.
    #[must_use]
    pub fn smallest_shingles(&self, written: &str, language: &str) -> Vec<u8> {
        let forms = Forms::of(written, &self.definition, &self.parameters);
        if self.definition.compares_letters() {
            return known::smallest_shingles(&self.letters(forms.shingled()));
        }
        known::smallest_shingles(&words(forms.shingled(), language))
    }

    /// Compute the requested results from shingles.
    fn by_shingles(&self, text: &[char], language: &str, known: Option<&KnownShingles>) -> (Sketch, Parts, Vec<u8>) {
        if self.definition.compares_letters() {
            return self.of_shingles(&self.letters(text), known);
        }
        self.of_shingles(&words(text, language), known)
    }

    /// The same for a text of words or of letters, which is read once.
    fn of_shingles(&self, text: &impl Shingled, known: Option<&KnownShingles>) -> (Sketch, Parts, Vec<u8>) {
        let Some(known) = known else {
            let (sketch, parts) = self.sketch_and_parts(text, &mut ());
            return (sketch, parts, Vec::new());
        };
        let mut hits = known.hits();
        let (sketch, parts) = self.sketch_and_parts(text, &mut hits);
        (sketch, parts, hits.packed())
    }

    /// Compute the sketch and the parts if requested; `along` reads the same text.
    fn sketch_and_parts<R: Reader>(&self, text: &impl Shingled, along: &mut R) -> (Sketch, Parts) {
        let Parameters {
            layout,
            sketched,
            parts,
            ..
        } = &self.parameters;
        let mut finder = Finder::new(text.shingling());
        match (sketched, parts) {
            (false, false) => {
                if R::LISTENS {
                    text.read(along);
                }
                (Sketch::none(layout), Parts::default())
            }
            (true, false) => (sketch::sketch(text, layout, along), Parts::default()),
            (true, true) => {
                let sketch = sketch::sketch(text, layout, &mut (&mut finder, along));
                (sketch, finder.parts())
            }
            (false, true) => {
                text.read(&mut (&mut finder, along));
                (Sketch::none(layout), finder.parts())
            }
        }
    }

    const fn letters<'a>(&self, letters: &'a [char]) -> TextOfLetters<'a> {
        TextOfLetters {
            letters,
            shingling: self.shingling,
        }
    }

    /// Fill `keywords` with the counted words that count in the scheme, their weights and hashes.
    fn weigh(&self, read: &[char], counted: &[Counted], keywords: &mut Vec<Keyword>, utf8: &mut Vec<u8>) {
        keywords.clear();
        for (word, Counted { range, id, count }) in counted.iter().enumerate() {
            let letters = &read[range.clone()];
            if self.lexicon.counts(letters, &self.definition) {
                let factor = self.lexicon.factor(letters, *id, self.definition.weighting);
                keywords.push(Keyword {
                    word,
                    weight: f64::from(*count) * factor,
                    hash: self.definition.hashing.hash(letters, utf8),
                });
            }
        }
    }

    fn facts(&self, written: &str, compared: &[char], read: &[char], counted: &[Counted]) -> Vec<u8> {
        let unknown = counted.iter().filter_map(|Counted { range, id, .. }| {
            let letters = &read[range.clone()];
            (facts::can_be_name(letters) && self.lexicon.idf(letters, *id).is_none()).then_some(letters)
        });
        facts::packed(written, compared, unknown, self.definition.compares_letters())
    }

    /// Return the fingerprint. In schemes for every script, that of a text without keywords is from its digest.
    ///
    /// Where letters are compared, this holds for all short texts.
    fn code(
        &self,
        keywords: &[Keyword],
        kind: Kind,
        text_digest: &[u8; DIGEST_BYTES],
    ) -> Result<[u64; 2], WeightsTooLarge> {
        let is_short = self.definition.compares_letters() && kind == Kind::Short;
        if self.definition.every_script() && kind != Kind::Empty && (keywords.is_empty() || is_short) {
            let (first, second) = text_digest.split_at(8);
            return Ok([first, second].map(|half| half.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))));
        }
        let weighed = keywords.iter().map(|keyword| (keyword.hash, keyword.weight));
        summing::fingerprint(weighed, self.definition.hashing.bits(), self.definition.tie)
    }

    fn kind(&self, keyword_count: usize, filled_bins: usize, forms: &Forms) -> Kind {
        let short_max = self.parameters.short_keywords_max;
        if self.definition.compares_letters() {
            // Texts without a letter, even with words of symbols, are compared by equality alone.
            let counting = if forms.shingled().is_empty() { 0 } else { keyword_count };
            Kind::in_every_script(counting, short_max, filled_bins, forms.text(), LETTERS_BINS_MIN)
        } else if self.definition.every_script() {
            Kind::in_every_script(keyword_count, short_max, filled_bins, forms.text(), SHINGLED_BINS_MIN)
        } else {
            Kind::by_keywords(keyword_count, short_max)
        }
    }

    fn evidence(
        &self,
        keywords: &[Keyword],
        counted: &[Counted],
        read: &[char],
        compared: &[char],
    ) -> Vec<(String, f64)> {
        let kept = self.parameters.keywords_kept;
        let weighed = as_weighed(keywords, counted, read);
        let chosen = evidence::evidence(&weighed, kept);
        // Also if all keywords are too long.
        if chosen.is_empty() && self.definition.every_script() {
            return evidence::runs(compared, kept);
        }
        chosen
            .into_iter()
            .map(|place| (weighed[place].word.iter().collect(), weighed[place].weight))
            .collect()
    }
}

fn words<'a>(text: &'a [char], language: &str) -> TextOfWords<'a> {
    TextOfWords {
        text,
        declared: sketch::declared_shingle(language),
    }
}

/// Keep only the heaviest keywords.
fn keep_heaviest(keywords: &mut Vec<Keyword>, most: usize, read: &[char], counted: &[Counted]) {
    if keywords.len() > most {
        let chosen = evidence::heaviest(&as_weighed(keywords, counted, read), Some(most));
        *keywords = chosen.into_iter().map(|place| keywords[place]).collect();
    }
}

fn as_weighed<'a>(keywords: &[Keyword], counted: &[Counted], read: &'a [char]) -> Vec<Weighed<'a>> {
    keywords
        .iter()
        .map(|keyword| Weighed {
            word: &read[counted[keyword.word].range.clone()],
            weight: keyword.weight,
        })
        .collect()
}

/// Return the digest of a text's UTF-8; `utf8` is memory for encoding.
fn digest(text: &[char], utf8: &mut Vec<u8>) -> [u8; DIGEST_BYTES] {
    Blake2b::<U16>::digest(encode(text, utf8)).into()
}
