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
const CJK_FROM: char = '\u{2e80}';
/// The base of the polynomials that hash characters.
pub const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
/// By how much a hash grows when a shingle follows.
const BASE_TO_SHORT: u64 = BASE.wrapping_pow(5);
const BASE_TO_LONG: u64 = BASE.wrapping_pow(9);
/// More than the longest shingle, and a power of 2.
const REMEMBERED: usize = 16;

/// The length of all shingles of a text that declares this language (BCP 47): 5 or 9, or 0 if it declares none.
///
/// Texts with shingles of different lengths share none, so that their similarity is 0.
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

/// Folds the case of a letter as far as it can matter: of all others only the Kelvin sign becomes an ASCII letter.
const fn folded(letter: char) -> char {
    match letter {
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// Takes what is read of a text, in its order.
pub trait Reader {
    /// The next character of the words and the spaces between them. `is_cjk` says whether what begins here counts as
    /// Chinese, Japanese or Korean: a space counts as what follows it.
    #[inline]
    fn character(&mut self, _character: char, _is_cjk: bool) {}

    /// The hash of the next shingle.
    fn shingle(&mut self, hash: u64);
}

/// Nobody.
impl Reader for () {
    #[inline]
    fn shingle(&mut self, _hash: u64) {}
}

/// Two of them read together.
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

/// Reads a text and hashes all its shingles, in one pass and without a copy of it.
///
/// Runs of other than word characters are one space, none at the ends. A shingle begins at each character where it
/// fits; where none fits, the text is one.
pub fn read(text: &[char], declared: usize, reader: &mut impl Reader) {
    let mut window = Window::default();
    let mut is_any = false;
    let mut push = |character, is_cjk| {
        reader.character(character, is_cjk);
        let is_short = if declared == 0 { is_cjk } else { declared == SHORT };
        window.push(character, is_short, &mut |hash| {
            is_any = true;
            reader.shingle(hash);
        });
    };
    let mut is_apart = false;
    let mut is_begun = false;
    for &character in text {
        if !is_word(character) {
            is_apart = true;
            continue;
        }
        let is_cjk = character >= CJK_FROM;
        if is_apart && is_begun {
            // A space counts as what follows it, so that punctuation in Chinese does not begin a long shingle.
            push(' ', is_cjk);
        }
        push(character, is_cjk);
        is_apart = false;
        is_begun = true;
    }
    if !is_any && window.length > 0 {
        reader.shingle(window.whole());
    }
}

/// What must be known of the characters so far to hash the shingles that end with the next one.
///
/// The hash of characters is the polynomial h = h × base + code point, so that a shingle's is what is left of the hash
/// of all characters without that of those before it.
#[derive(Default)]
struct Window {
    length: usize,
    /// The hash of all characters.
    all: u64,
    /// What `all` was after each of the last characters, by their number modulo 16.
    before: [u64; REMEMBERED],
    /// Whether a short shingle begins at each of the last characters, the last one in the lowest bit.
    short_begins: u16,
    /// The same for long shingles.
    long_begins: u16,
}

impl Window {
    #[inline]
    fn push(&mut self, character: char, is_short: bool, found: &mut impl FnMut(u64)) {
        self.length += 1;
        self.all = self
            .all
            .wrapping_mul(BASE)
            .wrapping_add(u64::from(u32::from(character)));
        self.before[self.length % REMEMBERED] = self.all;
        self.short_begins = self.short_begins << 1 | u16::from(is_short);
        self.long_begins = self.long_begins << 1 | u16::from(!is_short);
        if self.short_begins >> (SHORT - 1) & 1 == 1 {
            found(self.last(SHORT, BASE_TO_SHORT));
        }
        if self.long_begins >> (LONG - 1) & 1 == 1 {
            found(self.last(LONG, BASE_TO_LONG));
        }
    }

    /// The hash of the shingle of the last characters.
    #[inline]
    fn last(&self, characters: usize, base_to_them: u64) -> u64 {
        let before = self.before[self.length.wrapping_sub(characters) % REMEMBERED];
        mix_64(
            self.all
                .wrapping_sub(before.wrapping_mul(base_to_them))
                .wrapping_add(characters as u64),
        )
    }

    /// The hash of all characters as one shingle.
    fn whole(&self) -> u64 {
        mix_64(self.all.wrapping_add(self.length as u64))
    }
}
