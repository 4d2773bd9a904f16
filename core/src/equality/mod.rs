//! The forms by which texts are equal: `consumer/fingerprint/equality.py`.

use std::borrow::Cow;

use crate::letters::{
    BEFORE_SEPARATOR, BEHIND_SEPARATOR, BESIDE_EAST, EAST, Figure, POINT, SEPARATING, SPACE, STRESS, STRESSED, Tables,
    VOWEL,
};
use crate::normalise::normalise;
use crate::simplified;

/// Two forms of a text.
#[derive(Debug)]
pub struct Forms<'a> {
    /// What is split into words and searched for facts.
    pub read: Cow<'a, [char]>,
    /// The same without separators between letters, `None` where there are none.
    pub compact: Option<Vec<char>>,
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
    let form = match set_off(text, tables) {
        None => Cow::Borrowed(normalised),
        Some(changed) => Cow::Owned(normalise(&changed)),
    };
    let read = compact(&form, tables);
    let is_plain = read.seen & (POINT | STRESS | STRESSED) == 0 && (read.seen & EAST == 0 || read.seen & SPACE == 0);
    if is_plain {
        return read.in_simplified(form);
    }
    let form = plain(&form, tables);
    compact(&form, tables).in_simplified(Cow::Owned(form))
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
fn plain(text: &[char], tables: &Tables) -> Vec<char> {
    let mut form = Vec::with_capacity(text.len());
    let (mut last, mut is_vowel, mut has_space) = (0, false, false);
    for &character in text {
        let role = tables.roles.get(character);
        if role & POINT != 0 || role & STRESS != 0 && is_vowel {
            continue;
        }
        if role & STRESS == 0 {
            is_vowel = role & VOWEL != 0;
        }
        if role & SPACE != 0 {
            has_space = true;
            continue;
        }
        if has_space && !form.is_empty() && !is_needless(last, role) {
            form.push(' ');
        }
        has_space = false;
        form.push(if role & STRESSED == 0 {
            character
        } else {
            tables.unstressed(character)
        });
        last = role;
    }
    form
}

/// Whether a space between characters of these roles does not count.
fn is_needless(before: u16, behind: u16) -> bool {
    let beside = EAST | BESIDE_EAST;
    before & EAST != 0 && behind & beside != 0 || before & beside != 0 && behind & EAST != 0
}

/// What one pass over a text finds.
struct Compact {
    /// The text without white space, hyphens, dots and low lines that stand between two letters.
    /// None: there are none.
    form: Option<Vec<char>>,
    /// All roles of its characters.
    seen: u16,
    /// Whether it has what Chinese is folded of.
    is_east_asian: bool,
}

impl Compact {
    /// Fold both forms. A phrase that separators stand in is folded as one, so these went before.
    fn in_simplified(self, text: Cow<'_, [char]>) -> Forms<'_> {
        if !self.is_east_asian {
            return Forms {
                read: text,
                compact: self.form,
            };
        }
        Forms {
            compact: self.form.map(|form| simplified::fold_always(&form).unwrap_or(form)),
            read: simplified::fold_always(&text).map_or(text, Cow::Owned),
        }
    }
}

fn compact(text: &[char], tables: &Tables) -> Compact {
    let mut form: Option<Vec<char>> = None;
    let (mut taken, mut run, mut last, mut seen, mut is_east_asian) = (0, 0, 0, 0, false);
    for (place, &character) in text.iter().enumerate() {
        let role = tables.roles.get(character);
        seen |= role;
        is_east_asian |= character >= simplified::EAST_ASIAN_FROM;
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
    if let Some(form) = &mut form {
        form.extend_from_slice(&text[taken..]);
    }
    Compact {
        form,
        seen,
        is_east_asian,
    }
}
