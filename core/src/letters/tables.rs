//! The file that says what becomes of each character: `consumer/fingerprint/characters/letter_tables.py`.

use std::collections::HashMap;
use std::sync::LazyLock;

use blake2::{Blake2b128, Digest};

use super::decorations;
use crate::simplified::{self, Step};
use crate::unicode::{self, CodePoints, INVISIBLES};

/// On each line a name, then ranges of code points, which are a set, or a character or word and its form.
const FILE: &str = include_str!("letters.tsv");

/// Ideographs and kana.
pub(crate) const EAST: u32 = 1;
pub(crate) const BESIDE_EAST: u32 = 1 << 1;
pub(crate) const SEPARATING: u32 = 1 << 2;
pub(crate) const BEFORE_SEPARATOR: u32 = 1 << 3;
/// The bit above [`BEFORE_SEPARATOR`].
pub(crate) const BEHIND_SEPARATOR: u32 = BEFORE_SEPARATOR << 1;
pub(crate) const POINT: u32 = 1 << 5;
pub(crate) const STRESS: u32 = 1 << 6;
pub(crate) const VOWEL: u32 = 1 << 7;
/// A letter with which stress is composed.
pub(crate) const STRESSED: u32 = 1 << 8;
pub(crate) const SPACE: u32 = 1 << 9;
/// A letter whose marks do not count.
pub(crate) const BARE: u32 = 1 << 10;
/// A letter whose marks are letters.
pub(crate) const LETTER: u32 = 2 << 10;
/// A mark that is a letter behind a [`LETTER`].
pub(crate) const MARK: u32 = 3 << 10;
/// The bits that say whether a character counts as a letter; 0 if it does not.
pub(crate) const KIND: u32 = 3 << 10;
/// The first of the bits of the scripts in which words are mixed, in the order of [`SCRIPTS`].
pub(crate) const FIRST_SCRIPT: u32 = 12;
/// The bits of these scripts.
pub(crate) const ANY_SCRIPT: u32 = 7 << FIRST_SCRIPT;
/// A decoration begins here, or what it begins with ends here.
pub(crate) const DECORATING: u32 = 1 << 15;
/// A [`MARK`], [`DECORATING`], or a character that counts as another letter: few are.
pub(crate) const UNUSUAL: u32 = 1 << 16;
/// A character that counts as the first letter of a word in [`Tables::words`].
pub(crate) const FIRST_OF_WORD: u32 = 1 << 17;
/// As the second one: the bit above [`FIRST_OF_WORD`].
pub(crate) const SECOND_OF_WORD: u32 = FIRST_OF_WORD << 1;
/// A character without one of which no text is folded to simplified Chinese.
pub(crate) const TRADITIONAL: u32 = 1 << 19;

/// In the order in which ties are decided.
pub(crate) const SCRIPTS: [&str; 3] = ["latin", "cyrillic", "greek"];
/// The class of what neither ends a word nor is a letter of one: marks and invisible characters.
pub(crate) const IN_WORD: u8 = 1;
/// The class of the letters of the first script; those of the others follow.
pub(crate) const FIRST_CLASS: u8 = 2;

/// What the file says of each character.
pub(crate) struct Tables {
    /// What a character of a normalised text is to letters, and does when texts are compared by equality, as bits.
    pub(crate) roles: CodePoints<u32>,
    /// What to add to the code point of a character for the letter that it counts as.
    letters: CodePoints<u32>,
    /// Words of several letters that count as another word.
    pub(crate) words: Step,
    /// What to add to the code point of a letter with which stress is composed.
    unstressed: CodePoints<u32>,
    /// The class of a character of a text as written: 0 ends a word.
    pub(crate) scripts: CodePoints<u8>,
    /// Whether a character cannot be told apart from one of another script.
    pub(crate) same: CodePoints<bool>,
    /// For each script its letters by what looks like them.
    pub(crate) look_alikes: [HashMap<char, char>; SCRIPTS.len()],
    /// Of a character of a text as written: whether it is a raised digit, a digit, or neither counts nor ends a number.
    pub(crate) figures: CodePoints<Figure>,
}

/// What a character of a text as written is to figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Figure {
    /// It ends one.
    None,
    /// A decimal digit.
    Digit,
    /// No digit, but NFKC makes it a text that begins with one.
    Raised,
    /// It does not count.
    Ignored,
}

static TABLES: LazyLock<Tables> = LazyLock::new(build);

impl Tables {
    /// The tables, made at the first call.
    pub(crate) fn get() -> &'static Self {
        &TABLES
    }

    /// The roles of all characters of a normalised text.
    pub(crate) fn seen(&self, text: &[char]) -> u32 {
        text.iter().fold(0, |seen, &character| seen | self.roles.get(character))
    }

    /// The letter that a character counts as.
    #[inline]
    pub(crate) fn letter(&self, character: char) -> char {
        moved(character, self.letters.get(character))
    }

    /// A letter without the stress that is composed with it.
    pub(crate) fn unstressed(&self, character: char) -> char {
        moved(character, self.unstressed.get(character))
    }
}

/// The digest of the file that is part of the scheme's: `BLAKE2b` of 16 bytes.
#[must_use]
pub fn digest() -> [u8; 16] {
    Blake2b128::digest(FILE).into()
}

/// The entries of the file with this name, without the name.
fn entries(name: &str) -> impl Iterator<Item = &'static str> {
    FILE.lines().filter_map(move |line| {
        let (of, entry) = line.split_once('\t')?;
        (of == name).then_some(entry)
    })
}

/// The characters of a set.
fn set(name: &str) -> impl Iterator<Item = char> {
    entries(name).flat_map(|ranges| ranges.split(' ')).flat_map(|range| {
        let (first, last) = range.split_once('-').expect("a range has two ends");
        let code = |digits| u32::from_str_radix(digits, 16).expect("an end is a code point");
        unicode::characters(code(first)..=code(last))
    })
}

/// Characters with their forms.
fn forms(name: &str) -> impl Iterator<Item = (char, char)> {
    entries(name).map(|entry| {
        let (written, form) = entry.split_once('\t').expect("a form follows");
        (only(written), only(form))
    })
}

/// Words with their forms.
fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    entries("word").map(|entry| entry.split_once('\t').expect("a form follows"))
}

fn only(text: &str) -> char {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => character,
        _ => panic!("{text:?} is not one character"),
    }
}

fn build() -> Tables {
    Tables {
        roles: roles(),
        letters: becoming("fold"),
        words: Step::new(words()),
        unstressed: becoming("unstress"),
        scripts: scripts(),
        same: {
            let mut same = CodePoints::new(false);
            set("same").for_each(|character| same.set(character, true));
            same.shared()
        },
        look_alikes: look_alikes(),
        figures: figures(),
    }
}

#[inline]
fn moved(character: char, difference: u32) -> char {
    char::from_u32(u32::from(character).wrapping_add(difference)).unwrap_or(character)
}

/// Every code point, or what it becomes, less itself.
fn becoming(name: &str) -> CodePoints<u32> {
    let mut table = CodePoints::new(0);
    for (written, form) in forms(name) {
        table.set(written, u32::from(form).wrapping_sub(u32::from(written)));
    }
    table.shared()
}

fn roles() -> CodePoints<u32> {
    let mut roles = CodePoints::new(0);
    let add = |roles: &mut CodePoints<u32>, character, role| roles.set(character, roles.get(character) | role);
    for (name, role) in [
        ("east", EAST),
        ("latin", BESIDE_EAST),
        ("beside_east", BESIDE_EAST),
        ("separator", SEPARATING),
        ("bare", BARE | BEFORE_SEPARATOR | BEHIND_SEPARATOR),
        ("letter", LETTER | BEFORE_SEPARATOR | BEHIND_SEPARATOR),
        ("point", POINT),
        ("blank", POINT),
        ("stress", STRESS),
        ("vowel", VOWEL),
    ] {
        set(name).for_each(|character| add(&mut roles, character, role));
    }
    for number in set("number") {
        roles.set(number, roles.get(number) & !(BEFORE_SEPARATOR | BEHIND_SEPARATOR));
    }
    for (name, role) in [
        ("mark", MARK | UNUSUAL | BEFORE_SEPARATOR | BEHIND_SEPARATOR),
        ("accent", BEFORE_SEPARATOR),
    ] {
        set(name).for_each(|character| add(&mut roles, character, role));
    }
    for (place, name) in SCRIPTS.into_iter().enumerate() {
        set(name).for_each(|character| add(&mut roles, character, 1 << FIRST_SCRIPT << place));
    }
    simplified::traditional().for_each(|character| add(&mut roles, character, TRADITIONAL));
    ('0'..='9').for_each(|digit| add(&mut roles, digit, BESIDE_EAST));
    forms("unstress").for_each(|(letter, _)| add(&mut roles, letter, STRESSED));
    for (word, _) in words() {
        for (letter, role) in word.chars().zip([FIRST_OF_WORD, SECOND_OF_WORD]) {
            add(&mut roles, letter, role);
        }
    }
    for (written, letter) in forms("fold") {
        let of_letter = roles.get(letter) & (FIRST_OF_WORD | SECOND_OF_WORD);
        add(&mut roles, written, UNUSUAL | of_letter);
    }
    decorations::signs().for_each(|character| add(&mut roles, character, DECORATING | UNUSUAL));
    add(&mut roles, ' ', SPACE);
    roles.shared()
}

fn scripts() -> CodePoints<u8> {
    let mut scripts = CodePoints::new(0);
    let within = INVISIBLES.into_iter().flatten().chain(set("mark")).chain(set("accent"));
    within.for_each(|character| scripts.set(character, IN_WORD));
    for (class, name) in (FIRST_CLASS..).zip(SCRIPTS) {
        set(name).for_each(|character| scripts.set(character, class));
    }
    scripts.shared()
}

fn look_alikes() -> [HashMap<char, char>; SCRIPTS.len()] {
    let to_latin: HashMap<char, char> = forms("latin_like").collect();
    SCRIPTS.map(|script| {
        if script == SCRIPTS[0] {
            return to_latin.clone();
        }
        let own: HashMap<char, char> = forms(&format!("{script}_like")).collect();
        let through = to_latin
            .iter()
            .filter_map(|(&other, latin)| Some((other, *own.get(latin)?)));
        let mut all: HashMap<char, char> = through.chain(own.iter().map(|(&other, &form)| (other, form))).collect();
        set(script).for_each(|letter| {
            all.remove(&letter);
        });
        all
    })
}

fn figures() -> CodePoints<Figure> {
    let mut figures = CodePoints::new(Figure::None);
    let ignored = INVISIBLES.into_iter().flatten().chain(set("point")).chain(set("blank"));
    ignored.for_each(|character| figures.set(character, Figure::Ignored));
    set("digit").for_each(|character| figures.set(character, Figure::Digit));
    set("raised").for_each(|character| figures.set(character, Figure::Raised));
    figures.shared()
}
