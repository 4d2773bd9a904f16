//! The letters and figures of a text, of which its shingles are: `consumer/fingerprint/letters.py`.
//!
//! Most texts have neither words of two scripts nor decorations, and take one pass over a table.

mod decorations;
mod look_alikes;
mod tables;

use crate::normalise::normalise;
use crate::simplified;
pub use decorations::digest as decorations_digest;
pub use tables::digest;
pub(crate) use tables::*;

/// The letters and figures of a text, given as written and normalised.
///
/// Without `decorations` those of links, names and other decorations do not count.
#[must_use]
pub fn letters(text: &str, normalised: &[char], without_decorations: bool) -> Vec<char> {
    let tables = Tables::get();
    let mut letters = Letters::with_capacity(normalised.len());
    letters.add(normalised, tables);
    if letters.has_two_scripts()
        && let Some(changed) = look_alikes::in_one_script(text, tables)
    {
        let changed = normalise(&changed);
        letters.clear();
        letters.add(&changed, tables);
        if without_decorations {
            letters.leave_out_decorations(&changed, tables);
        }
    } else if without_decorations {
        letters.leave_out_decorations(normalised, tables);
    }
    if letters.is_east_asian {
        settled(letters.form, tables)
    } else {
        letters.form
    }
}

/// The letters in simplified characters, those that look alike as one.
fn settled(form: Vec<char>, tables: &Tables) -> Vec<char> {
    let mut form = simplified::fold_always(&form).unwrap_or(form);
    for character in &mut form {
        *character = tables.settled(*character);
    }
    form
}

/// The letters of a text that have been read so far.
struct Letters {
    form: Vec<char>,
    /// The bits of all characters in [`Tables::letters`].
    seen: u32,
    /// Whether the last letter is one whose marks are letters.
    keeps_marks: bool,
    /// Whether there is what Chinese is folded of.
    is_east_asian: bool,
    /// Where decorations may be in the last piece.
    signs: Vec<usize>,
}

impl Letters {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            form: Vec::with_capacity(capacity),
            seen: 0,
            keeps_marks: false,
            is_east_asian: false,
            signs: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.form.clear();
        (self.seen, self.keeps_marks, self.is_east_asian) = (0, false, false);
    }

    /// Read a piece of a normalised text.
    fn add(&mut self, text: &[char], tables: &Tables) {
        self.signs.clear();
        for (place, &character) in text.iter().enumerate() {
            let entry = tables.letters.get(character);
            self.seen |= entry;
            self.is_east_asian |= character >= simplified::EAST_ASIAN_FROM;
            if entry & DECORATING != 0 {
                self.signs.push(place);
            }
            match entry & KIND {
                0 => continue,
                MARK if !self.keeps_marks => continue,
                MARK => {}
                kind => self.keeps_marks = kind == LETTER,
            }
            self.form.extend(char::from_u32(entry & FORM));
        }
    }

    /// Whether words may mix scripts.
    fn has_two_scripts(&self) -> bool {
        (self.seen & ANY_SCRIPT).count_ones() > 1
    }

    /// Read the text again without its decorations, if it has any.
    fn leave_out_decorations(&mut self, text: &[char], tables: &Tables) {
        let places = decorations::decorations(text, &self.signs, tables);
        if places.is_empty() {
            return;
        }
        self.clear();
        let mut end = 0;
        for place in places {
            self.add(&text[end..place.start], tables);
            end = place.end;
        }
        self.add(&text[end..], tables);
    }
}
