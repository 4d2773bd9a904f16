//! The forms by which texts are equal: `consumer/fingerprint/characters/equality.py`.

use std::borrow::Cow;

use crate::letters::{
    BEHIND_SEPARATOR, BESIDE_EAST, EAST, Figure, POINT, SEPARATING, SPACE, STRESS, STRESSED, TRADITIONAL, Tables, VOWEL,
};
use crate::normalise::Normalised;
use crate::simplified;

/// Two forms of a text.
#[derive(Debug)]
pub struct Forms<'a> {
    /// The form that is split into words and searched for facts.
    pub read: Cow<'a, [char]>,
    /// The same without separators between letters, `None` if there are none.
    pub compact: Option<Vec<char>>,
}

impl Forms<'_> {
    /// The form that the text digest is of: `read` without separators between letters.
    #[must_use]
    pub fn compared(&self) -> &[char] {
        self.compact.as_deref().unwrap_or(&self.read)
    }
}

/// The forms by which a text is equal to others, given the text as written and normalised, and the roles of all
/// characters of the normalised text.
#[must_use]
pub(crate) fn forms<'a>(text: &str, normalised: &'a Normalised, seen: u32) -> Forms<'a> {
    let tables = Tables::get();
    let changed = if normalised.makes_digits {
        set_off(text, tables).map(|changed| Normalised::of(&changed).form)
    } else {
        None
    };
    let (form, seen) = match changed {
        None => (Cow::Borrowed(&*normalised.form), seen),
        Some(form) => {
            let seen = tables.seen(&form);
            (Cow::Owned(form), seen)
        }
    };
    let (form, compact) = if seen & (POINT | STRESS | STRESSED) != 0 {
        let form = plain(&form, tables);
        let compact = compact(&form, tables);
        (Cow::Owned(form), compact)
    } else if seen & EAST != 0 && seen & SPACE != 0 {
        let (form, compact) = without_needless(&form, tables);
        (Cow::Owned(form), compact)
    } else if seen & SEPARATING != 0 {
        let compact = compact(&form, tables);
        (form, compact)
    } else {
        (form, None)
    };
    if seen & TRADITIONAL == 0 {
        return Forms { read: form, compact };
    }
    // Separators are dropped before folding, because a phrase is folded as one even if it contains them.
    Forms {
        compact: compact.map(|compact| simplified::fold(&compact).unwrap_or(compact)),
        read: simplified::fold(&form).map_or(form, Cow::Owned),
    }
}

/// The text as written with ^ between a digit and a raised digit after it, `None` if there are none.
fn set_off(text: &str, tables: &Tables) -> Option<String> {
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

/// The text without points, overlays, stress, blanks, and the white space next to ideographs and
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
const fn is_needless(before: u32, behind: u32) -> bool {
    let beside = EAST | BESIDE_EAST;
    before & EAST != 0 && behind & beside != 0 || before & beside != 0 && behind & EAST != 0
}

/// The text without white space next to ideographs and kana, as [`plain`] returns it, and that text [`compact`].
fn without_needless(text: &[char], tables: &Tables) -> (Vec<char>, Option<Vec<char>>) {
    let mut form = vec!['\0'; text.len()];
    let mut compact = Compact::new(text.len());
    let (mut end, mut last, mut has_space) = (0, 0, false);
    for &character in text {
        let role = tables.roles.get(character);
        if has_space && is_needless(last, role) {
            end -= 1;
            compact.end -= 1;
        }
        form[end] = character;
        end += 1;
        compact.push(character, role);
        has_space = role & SPACE != 0;
        if !has_space {
            last = role;
        }
    }
    form.truncate(end);
    (form, compact.unless_equal(end))
}

/// The text without white space, hyphens, dots and low lines between two letters, `None` if there are none.
fn compact(text: &[char], tables: &Tables) -> Option<Vec<char>> {
    let mut compact = Compact::new(text.len());
    for &character in text {
        compact.push(character, tables.roles.get(character));
    }
    compact.unless_equal(text.len())
}

/// The form of a text without separators between letters, as it is written.
struct Compact {
    form: Vec<char>,
    /// The place after the last character.
    end: usize,
    /// The place after the last character that is not a separator.
    kept: usize,
    /// The role of that character, shifted so that `BEFORE_SEPARATOR` meets [`BEHIND_SEPARATOR`].
    before: u32,
}

impl Compact {
    fn new(room: usize) -> Self {
        Self {
            form: vec!['\0'; room],
            end: 0,
            kept: 0,
            before: 0,
        }
    }

    #[inline]
    fn push(&mut self, character: char, role: u32) {
        // No separator is a letter.
        if self.before & role & BEHIND_SEPARATOR != 0 {
            self.end = self.kept;
        }
        self.form[self.end] = character;
        self.end += 1;
        if role & SEPARATING == 0 {
            (self.kept, self.before) = (self.end, role << 1);
        }
    }

    /// The form, unless it has this length, which is that of the text.
    fn unless_equal(mut self, length: usize) -> Option<Vec<char>> {
        self.form.truncate(self.end);
        (self.end < length).then_some(self.form)
    }
}
