//! The characters of a text, its shingles and their hashes.

use crate::hashes::mix_64;
use crate::unicode::is_word;

/// The length of a shingle in the languages of East Asia, in code points.
pub const SHORT: usize = 5;
/// The length of a shingle in other languages.
pub const LONG: usize = 9;
/// The primary subtags (BCP 47) of the languages that have short shingles.
const EAST_ASIAN: [&str; 8] = ["zh", "yue", "wuu", "nan", "hak", "lzh", "ja", "ko"];
/// From the CJK radicals on: Han, kana, bopomofo, Hangul and their extensions, up to emoji.
pub(super) const CJK_FROM: char = '\u{2e80}';
/// Greater than the longest shingle, and a power of 2.
const REMEMBERED: usize = 16;

/// The rule by which characters are cut into shingles, and into the longer stretches of anchors, and both are hashed.
///
/// A hash is the polynomial of the characters, h = h × base + code point, plus their number, passed to `finish`. Those
/// that begin with a CJK character are short, the others long.
pub trait Shingling: Copy {
    /// The length of a short shingle.
    const SHORT: usize;
    /// The length of a long shingle, below 16.
    const LONG: usize;
    /// The length of a short stretch.
    const STRETCH_SHORT: usize;
    /// The length of a long stretch, below 64.
    const STRETCH_LONG: usize;

    /// The base of the polynomials, with its powers.
    fn powers(&self) -> &Powers;

    /// The hash of characters, given their polynomial plus their number.
    fn finish(&self, polynomial: u64) -> u64;
}

/// A base, and the factors by which a polynomial grows when a number of characters follows.
#[derive(Clone, Copy, Debug)]
pub struct Powers {
    /// The base.
    pub base: u64,
    pub(super) short: u64,
    pub(super) long: u64,
    /// For a short stretch.
    pub stretch_short: u64,
    /// For a long one.
    pub stretch_long: u64,
}

impl Powers {
    pub(super) const fn new(base: u64, lengths: [u32; 4]) -> Self {
        let [short, long, stretch_short, stretch_long] = lengths;
        Self {
            base,
            short: base.wrapping_pow(short),
            long: base.wrapping_pow(long),
            stretch_short: base.wrapping_pow(stretch_short),
            stretch_long: base.wrapping_pow(stretch_long),
        }
    }
}

/// The published shingling of words with spaces between them.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfWords;

impl Shingling for OfWords {
    const SHORT: usize = SHORT;
    const LONG: usize = LONG;
    const STRETCH_SHORT: usize = 20;
    const STRETCH_LONG: usize = 36;

    #[inline]
    fn powers(&self) -> &Powers {
        const POWERS: Powers = Powers::new(0x9e37_79b9_7f4a_7c15, [5, 9, 20, 36]);
        &POWERS
    }

    #[inline]
    fn finish(&self, polynomial: u64) -> u64 {
        mix_64(polynomial)
    }
}

/// The length of all shingles of a text that declares this language (BCP 47): 5 or 9, or 0 if it declares none.
///
/// Texts with shingles of different lengths share none, so their similarity is 0.
#[must_use]
pub fn declared_shingle(language: &str) -> usize {
    if language.is_empty() {
        return 0;
    }
    let primary = language.split(['-', '_']).next().unwrap_or_default();
    let folded = || primary.chars().map(folded);
    if EAST_ASIAN.iter().any(|subtag| subtag.chars().eq(folded())) {
        SHORT
    } else {
        LONG
    }
}

/// Folds the case of a letter as far as needed: beyond ASCII only the Kelvin sign becomes an ASCII letter.
const fn folded(letter: char) -> char {
    match letter {
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// A receiver of the characters and shingles of a text, in order.
pub trait Reader {
    /// Whether this reader alone is reason to read a text.
    const LISTENS: bool = true;

    /// The next character of the words and the spaces between them. `is_cjk` says whether what begins here counts as
    /// Chinese, Japanese or Korean: a space counts as the character after it.
    #[inline]
    fn character(&mut self, _character: char, _is_cjk: bool) {}

    /// The hash of the next shingle.
    fn shingle(&mut self, hash: u64);
}

/// A reader that ignores everything.
impl Reader for () {
    const LISTENS: bool = false;

    #[inline]
    fn shingle(&mut self, _hash: u64) {}
}

/// Two readers that read together.
impl<A: Reader, B: Reader> Reader for (&mut A, &mut B) {
    #[inline]
    fn character(&mut self, character: char, is_cjk: bool) {
        self.0.character(character, is_cjk);
        self.1.character(character, is_cjk);
    }

    #[inline]
    fn shingle(&mut self, hash: u64) {
        self.0.shingle(hash);
        self.1.shingle(hash);
    }
}

/// A text to read for its shingles.
pub trait Shingled {
    /// The rule by which it is cut and hashed.
    type Shingling: Shingling;
    /// Whether its sketch is marked.
    const MARKED: bool;

    /// The rule by which it is cut and hashed.
    fn shingling(&self) -> Self::Shingling;

    /// Reads the text and hashes all its shingles, in one pass and without a copy of it.
    ///
    /// A shingle begins at each character where it fits; where none fits, the text is one.
    fn read(&self, reader: &mut impl Reader);
}

/// A normalised text whose words count: each run of non-word characters is one space, with none at the ends.
#[derive(Clone, Copy, Debug)]
pub struct TextOfWords<'a> {
    /// The text.
    pub text: &'a [char],
    /// The length of its shingles by its language, see [`declared_shingle`]; with 0 the script of its first character
    /// decides on the length of each.
    pub declared: usize,
}

impl Shingled for TextOfWords<'_> {
    type Shingling = OfWords;
    const MARKED: bool = false;

    fn shingling(&self) -> OfWords {
        OfWords
    }

    fn read(&self, reader: &mut impl Reader) {
        let mut window = Window::new(OfWords);
        let mut is_any = false;
        let mut push = |character, is_cjk| {
            reader.character(character, is_cjk);
            let is_short = if self.declared == 0 {
                is_cjk
            } else {
                self.declared == SHORT
            };
            window.push(character, is_short, &mut |polynomial| {
                is_any = true;
                reader.shingle(OfWords.finish(polynomial));
            });
        };
        let mut is_apart = false;
        let mut is_begun = false;
        for &character in self.text {
            if !is_word(character) {
                is_apart = true;
                continue;
            }
            let is_cjk = character >= CJK_FROM;
            if is_apart && is_begun {
                // A space counts as the character after it, so that punctuation in Chinese does not begin a long shingle.
                push(' ', is_cjk);
            }
            push(character, is_cjk);
            is_apart = false;
            is_begun = true;
        }
        if !is_any && window.length > 0 {
            reader.shingle(OfWords.finish(window.whole()));
        }
    }
}

/// The state after the characters so far that is needed to hash the shingles that end with the next one.
///
/// The polynomial of a shingle is that of all characters minus that of the characters before it.
struct Window<S> {
    shingling: S,
    length: usize,
    /// The polynomial of all characters.
    all: u64,
    /// The value of `all` after each of the last characters, by their number modulo 16.
    before: [u64; REMEMBERED],
    /// Whether a short shingle begins at each of the last characters, the last one in the lowest bit.
    short_begins: u16,
    /// The same for long shingles.
    long_begins: u16,
}

impl<S: Shingling> Window<S> {
    const fn new(shingling: S) -> Self {
        Self {
            shingling,
            length: 0,
            all: 0,
            before: [0; REMEMBERED],
            short_begins: 0,
            long_begins: 0,
        }
    }

    /// Takes the next character; `found` gets the polynomial of each shingle that ends with it, plus its length.
    #[inline]
    fn push(&mut self, character: char, is_short: bool, found: &mut impl FnMut(u64)) {
        let powers = *self.shingling.powers();
        self.length += 1;
        self.all = self
            .all
            .wrapping_mul(powers.base)
            .wrapping_add(u64::from(u32::from(character)));
        self.before[self.length % REMEMBERED] = self.all;
        self.short_begins = self.short_begins << 1 | u16::from(is_short);
        self.long_begins = self.long_begins << 1 | u16::from(!is_short);
        if self.short_begins >> (S::SHORT - 1) & 1 == 1 {
            found(self.last(S::SHORT, powers.short));
        }
        if self.long_begins >> (S::LONG - 1) & 1 == 1 {
            found(self.last(S::LONG, powers.long));
        }
    }

    /// The polynomial of the last characters, plus their number.
    #[inline]
    fn last(&self, characters: usize, base_to_them: u64) -> u64 {
        let before = self.before[self.length.wrapping_sub(characters) % REMEMBERED];
        self.all
            .wrapping_sub(before.wrapping_mul(base_to_them))
            .wrapping_add(characters as u64)
    }

    /// The same for all characters as one shingle.
    const fn whole(&self) -> u64 {
        self.all.wrapping_add(self.length as u64)
    }
}
