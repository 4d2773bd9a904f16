//! The tables of the treatment of each character: `consumer/fingerprint/characters/letter_tables.py`.

use std::collections::HashMap;
use std::sync::LazyLock;

use blake2::{Blake2b128, Digest};

use super::decorations;
use crate::simplified::{self, Step};
use crate::unicode::{self, CodePoints, INVISIBLES};

/// Each line has a name, then ranges of code points, which form a set, or a character or word and its form.
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
/// A mark that counts as a letter after a [`LETTER`].
pub(crate) const MARK: u32 = 3 << 10;
/// The bits for whether a character counts as a letter; 0 if it does not.
pub(crate) const KIND: u32 = 3 << 10;
/// The first of the bits of the scripts in which words are mixed, in the order of [`SCRIPTS`].
pub(crate) const FIRST_SCRIPT: u32 = 12;
/// The bits of these scripts.
pub(crate) const ANY_SCRIPT: u32 = 7 << FIRST_SCRIPT;
/// A decoration, or the end of its first word, may be here.
pub(crate) const DECORATING: u32 = 1 << 15;
/// A [`MARK`], [`DECORATING`], or a character that counts as another letter. These are rare.
pub(crate) const UNUSUAL: u32 = 1 << 16;
/// A character that counts as the first letter of a word in [`Tables::words`].
pub(crate) const FIRST_OF_WORD: u32 = 1 << 17;
/// As the second one: the bit above [`FIRST_OF_WORD`].
pub(crate) const SECOND_OF_WORD: u32 = FIRST_OF_WORD << 1;
/// A traditional Chinese character. Texts without one are not folded.
pub(crate) const TRADITIONAL: u32 = 1 << 19;

/// The scripts, in the order that decides ties.
pub(crate) const SCRIPTS: [&str; 3] = ["latin", "cyrillic", "greek"];
/// The class of marks and invisible characters, which neither end a word nor count as letters.
pub(crate) const IN_WORD: u8 = 1;
/// The class of the letters of the first script; those of the others follow.
pub(crate) const FIRST_CLASS: u8 = 2;

/// The tables in the file.
pub(crate) struct Tables {
    /// The roles of a character of a normalised text, for letters and for equality, as bits.
    pub(crate) roles: CodePoints<u32>,
    /// The difference from the code point of a character to the letter that it counts as.
    letters: CodePoints<u32>,
    /// Words of several letters that count as another word.
    pub(crate) words: Step,
    /// The difference from the code point of a letter composed with stress to the plain letter.
    unstressed: CodePoints<u32>,
    /// The class of a character of a text as written: 0 ends a word.
    pub(crate) scripts: CodePoints<u8>,
    /// Whether a letter looks exactly like one of another script.
    pub(crate) same: CodePoints<bool>,
    /// For each script, its letters by the characters that look like them.
    pub(crate) look_alikes: [HashMap<char, char>; SCRIPTS.len()],
    /// The part that a character of a text as written plays in figures.
    pub(crate) figures: CodePoints<Figure>,
}

/// The part that a character plays in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Figure {
    /// It ends a figure.
    None,
    /// A decimal digit.
    Digit,
    /// Not a digit, but NFKC turns it into a text that begins with one.
    Raised,
    /// It does not count, nor end a figure.
    Ignored,
}

static TABLES: LazyLock<Tables> = LazyLock::new(build);

impl Tables {
    /// The tables, built by the first call.
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

/// The difference from each code point to its form.
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
