//! Names in Latin text: capitalised words of the text as written, because case folding removes capitals.

use std::borrow::Cow;

use super::dates::is_month;
use super::sample::Sample;
use super::{end_of, first};

/// Adds the capitalised words after a word, comma, semicolon or bracket, or before another one, except months.
pub(super) fn find(written: &str, facts: &mut Sample) {
    let text = visible(written);
    let mut place = 0;
    while let Some(start) = first(&text, place, |byte| byte.is_ascii_uppercase()) {
        // Later capitals in the same word do not begin another.
        place = end_of(&text, start + 1, is_inner);
        let letters = text[start..place]
            .iter()
            .map(|byte| char::from(byte.to_ascii_lowercase()));
        let is_name = is_within_sentence(&text[..start]) || is_beside_another(&text, start, place);
        if letters.len() > 1 && is_name && !is_month(&letters) {
            facts.add(letters);
        }
    }
}

/// The text in ASCII: full-width letters become plain ones, and the rest is dropped.
///
/// This drops invisible characters too, which a spammer can insert into any name.
fn visible(written: &str) -> Cow<'_, [u8]> {
    if written.is_ascii() {
        return Cow::Borrowed(written.as_bytes());
    }
    let plain = |character: char| match character {
        'Ａ'..='Ｚ' => Some(b'A' + distance('Ａ', character)),
        'ａ'..='ｚ' => Some(b'a' + distance('ａ', character)),
        '\u{2019}' => Some(b'\''),
        other => u8::try_from(other).ok().filter(u8::is_ascii),
    };
    Cow::Owned(written.chars().filter_map(plain).collect())
}

/// How far a letter is from the first one of its alphabet.
fn distance(first: char, letter: char) -> u8 {
    u8::try_from(u32::from(letter) - u32::from(first)).unwrap_or_default()
}

/// `(?<=[\w,;(] )`
fn is_within_sentence(before: &[u8]) -> bool {
    matches!(before, [.., byte, b' '] if is_word(*byte) || matches!(byte, b',' | b';' | b'('))
}

/// `(?<![\w-])` before the word, and `(?= [A-Z])` after it.
fn is_beside_another(text: &[u8], start: usize, end: usize) -> bool {
    let is_begin = text[..start].last().is_none_or(|&byte| !is_inner(byte));
    is_begin && matches!(text[end..], [b' ', b'A'..=b'Z', ..])
}

/// `[\w-]` of ASCII.
const fn is_inner(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// `\w` of ASCII.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
