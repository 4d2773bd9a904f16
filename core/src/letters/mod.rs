//! Extracts the letters and figures of a text for its shingles: `consumer/fingerprint/characters/letters.py`.
//!
//! Most texts have neither words of two scripts nor decorations, and take one pass.

mod decorations;
mod look_alikes;
mod tables;

use crate::normalise::Normalised;
pub use decorations::digest as decorations_digest;
pub use tables::digest;
pub(crate) use tables::*;

/// The results of one pass over a text.
#[derive(Debug)]
pub struct Found {
    /// The letters and figures.
    pub letters: Vec<char>,
    /// The roles of all characters of the normalised text, see [`Tables`].
    pub(crate) seen: u32,
}

/// The letters and figures of a text, given as written and normalised.
///
/// Without `decorations` those of links, names and other decorations do not count.
#[must_use]
pub fn letters(text: &str, normalised: &[char], without_decorations: bool) -> Found {
    let tables = Tables::get();
    let mut letters = Letters::with_capacity(normalised.len());
    letters.add(normalised, tables);
    let seen = letters.seen;
    if letters.has_two_scripts()
        && let Some(changed) = look_alikes::in_one_script(text, tables)
    {
        let changed = Normalised::of(&changed).form;
        letters.clear();
        letters.add(&changed, tables);
        if without_decorations {
            letters.leave_out_decorations(&changed, tables);
        }
    } else if without_decorations {
        letters.leave_out_decorations(normalised, tables);
    }
    let Letters { form, words, .. } = letters;
    let letters = match tables.words.fold(&form, words) {
        Some(folded) => folded.text,
        None => form,
    };
    Found { letters, seen }
}

/// The letters of a text that have been read so far.
struct Letters {
    form: Vec<char>,
    /// The bits of all characters in [`Tables::roles`].
    seen: u32,
    /// The role of the last letter that is no mark.
    last: u32,
    /// The places in the last piece where decorations may be.
    signs: Vec<usize>,
    /// The places where words that count as others may begin.
    words: Vec<usize>,
}

impl Letters {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            form: Vec::with_capacity(capacity),
            seen: 0,
            last: 0,
            signs: Vec::new(),
            words: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.form.clear();
        self.words.clear();
        (self.seen, self.last) = (0, 0);
    }

    /// Read a piece of a normalised text.
    fn add(&mut self, text: &[char], tables: &Tables) {
        self.signs.clear();
        let mut end = self.form.len();
        // One more, because characters that are not letters are written too, and then overwritten.
        self.form.resize(end + text.len() + 1, '\0');
        let (mut seen, mut last) = (self.seen, self.last);
        for (place, &character) in text.iter().enumerate() {
            let role = tables.roles.get(character);
            seen |= role;
            let (mut letter, mut is_letter) = (character, role & KIND != 0);
            if role & UNUSUAL != 0 {
                letter = tables.letter(character);
                if role & DECORATING != 0 {
                    self.signs.push(place);
                }
                if role & KIND == MARK {
                    if last & KIND != LETTER {
                        continue;
                    }
                    // The next character has the same letter before it.
                    self.form[end] = letter;
                    end += 1;
                    is_letter = false;
                }
            }
            if is_letter {
                if last & role >> 1 & FIRST_OF_WORD != 0 {
                    self.words.push(end - 1);
                }
                last = role;
            }
            // Always written, so that the processor need not predict a branch: words are short.
            self.form[end] = letter;
            end += usize::from(is_letter);
        }
        (self.seen, self.last) = (seen, last);
        self.form.truncate(end);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> String {
        letters(text, &Normalised::of(text).form, false)
            .letters
            .iter()
            .collect()
    }

    #[test]
    fn radicals_are_folded_as_the_ideographs_that_they_count_as() {
        assert_eq!(form("\u{2ed1}"), form("长"));
        assert_eq!(form("\u{2ed1}"), form("長"));
    }

    #[test]
    fn words_count_as_others_where_they_stand_in_either_script() {
        assert_eq!(form("軟-體 a"), form("软件a"));
        assert_eq!(form("软体"), form("軟件"));
        assert_ne!(form("软体"), form("体软"));
    }
}
