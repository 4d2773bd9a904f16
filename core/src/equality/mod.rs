//! The forms by which texts are equal: `consumer/fingerprint/equality.py`.

use std::borrow::Cow;

use crate::letters::{
    BEFORE_SEPARATOR, BEHIND_SEPARATOR, BESIDE_EAST, EAST, Figure, POINT, SEPARATING, STRESS, Tables, VOWEL,
};
use crate::normalise::normalise;
use crate::simplified;

/// Two forms of a text.
#[derive(Debug)]
pub struct Forms<'a> {
    /// What is split into words and searched for facts.
    pub read: Cow<'a, [char]>,
    compact: Option<Vec<char>>,
}

impl Forms<'_> {
    /// The form that the text digest is of: `read` without separators between letters.
    #[must_use]
    pub fn compared(&self) -> &[char] {
        self.compact.as_deref().unwrap_or(&self.read)
    }
}

/// The forms by which a text is equal to others, given the text as written and normalised.
#[must_use]
pub fn forms<'a>(text: &str, normalised: &'a [char]) -> Forms<'a> {
    let tables = Tables::get();
    let plain = match set_off(text, tables) {
        None => plain(normalised, tables),
        Some(changed) => {
            let changed = normalise(&changed);
            Cow::Owned(plain(&changed, tables).into_owned())
        }
    };
    // A phrase that separators stand in is folded as one, so separators go before folding.
    let compact = compact(&plain, tables).map(|form| simplified::fold_always(&form).unwrap_or(form));
    let read = simplified::fold_always(&plain).map_or(plain, Cow::Owned);
    Forms { read, compact }
}

/// The text as written with ^ between a digit and a raised one behind it. None: there are none.
fn set_off(text: &str, tables: &Tables) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut changed: Option<String> = None;
    let (mut taken, mut is_digit) = (0, false);
    for (place, character) in text.char_indices() {
        match tables.figures.get(character) {
            Figure::Digit => is_digit = true,
            Figure::Ignored => {}
            Figure::None => is_digit = false,
            Figure::Raised => {
                if is_digit {
                    let changed = changed.get_or_insert_default();
                    changed.push_str(&text[taken..place]);
                    changed.push('^');
                    taken = place;
                }
                is_digit = false;
            }
        }
    }
    changed.map(|changed| changed + &text[taken..])
}

/// The text without points, overlays, stress, blanks, and the white space beside ideographs and
/// kana.
fn plain<'a>(text: &'a [char], tables: &Tables) -> Cow<'a, [char]> {
    if text
        .iter()
        .all(|&c| tables.roles.get(c) & (EAST | POINT | STRESS) == 0 && unstressed(c) == c)
    {
        return Cow::Borrowed(text);
    }
    let mut form = Vec::with_capacity(text.len());
    let (mut last, mut is_vowel, mut has_space) = (0, false, false);
    for &written in text {
        let character = unstressed(written);
        let role = tables.roles.get(character);
        if role & POINT != 0 || role & STRESS != 0 && is_vowel {
            continue;
        }
        if role & STRESS == 0 {
            is_vowel = role & VOWEL != 0;
        }
        if character == ' ' {
            has_space = true;
            continue;
        }
        if has_space && !form.is_empty() && !is_needless(last, role) {
            form.push(' ');
        }
        has_space = false;
        form.push(character);
        last = role;
    }
    Cow::Owned(form)
}

/// Whether a space between characters of these roles does not count.
fn is_needless(before: u8, behind: u8) -> bool {
    before & behind & EAST != 0
        || before & EAST != 0 && behind & BESIDE_EAST != 0
        || before & BESIDE_EAST != 0 && behind & EAST != 0
}

/// A letter without the stress that is composed with it.
fn unstressed(character: char) -> char {
    match character {
        'ѐ' => 'е',
        'ѝ' => 'и',
        _ => character,
    }
}

/// The text without white space, hyphens, dots and low lines that stand between two letters. None:
/// there are none.
fn compact(text: &[char], tables: &Tables) -> Option<Vec<char>> {
    let mut form: Option<Vec<char>> = None;
    let (mut taken, mut run, mut last) = (0, 0, 0);
    for (place, &character) in text.iter().enumerate() {
        let role = tables.roles.get(character);
        if role & SEPARATING != 0 {
            continue;
        }
        if run < place && last & BEFORE_SEPARATOR != 0 && role & BEHIND_SEPARATOR != 0 {
            form.get_or_insert_with(|| Vec::with_capacity(text.len()))
                .extend_from_slice(&text[taken..run]);
            taken = place;
        }
        run = place + 1;
        last = role;
    }
    form.map(|mut form| {
        form.extend_from_slice(&text[taken..]);
        form
    })
}
