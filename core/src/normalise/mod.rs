//! Normalises texts, so that invisible changes do not change a fingerprint: `normalise` of
//! `consumer/fingerprint/characters/normalise.py`.
//!
//! Python applies each step to the whole text. Here one pass looks up each character in a table and
//! writes its form ([`entries`]). This pass also handles marks that are in order, and letters that
//! compose with the mark after them. Where that is not enough, the segment around the character goes
//! through the steps as in Python ([`segment`]). Work and memory are linear in the text and its form.

mod entries;
mod rules;
mod segment;
#[cfg(test)]
mod tests;

use crate::unicode::is_space;
use entries::{Entry, Table};
use rules::Rules;
use segment::Segments;

/// As in the Stream-Safe Text Format of UAX #15: more combining marks in a row are dropped.
const MARKS_IN_A_ROW_MAX: usize = 30;

/// Fold a text: remove invisible characters, NFKC, casefold, collapse white space, strip.
///
/// Of more than 30 combining marks in a row only the first 30 stay, before and after folding. Idempotent.
#[must_use]
pub fn normalise(text: &str) -> Vec<char> {
    Normalised::of(text).form
}

/// A normalised text.
#[derive(Debug)]
pub struct Normalised {
    /// The text.
    pub form: Vec<char>,
    /// Whether it may have a digit that was written as another character, such as a superscript.
    pub makes_digits: bool,
}

impl Normalised {
    /// Normalise a text, as [`normalise`] does.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut form = Vec::new();
        let mut makes_digits = false;
        if text.is_ascii() {
            ascii(text, &mut form);
        } else {
            form.reserve(text.chars().count());
            let mut normaliser = Normaliser {
                text,
                table: Table::get(),
                rules: Rules::new(),
                form: &mut form,
                makes_digits: false,
            };
            normaliser.all();
            makes_digits = normaliser.makes_digits;
        }
        if form.last() == Some(&' ') {
            form.pop();
        }
        Self { form, makes_digits }
    }
}

/// The text unchanged, for schemes that split it as written.
#[must_use]
pub fn as_written(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn ascii(text: &str, form: &mut Vec<char>) {
    form.reserve(text.len());
    for byte in text.bytes() {
        match byte {
            b'\t'..=b'\r' | 0x1c..=b' ' => space(form),
            _ => form.push(char::from(byte.to_ascii_lowercase())),
        }
    }
}

/// Write a space, unless the form is empty or ends with one.
#[inline]
fn space(form: &mut Vec<char>) {
    if form.last().is_some_and(|&last| last != ' ') {
        form.push(' ');
    }
}

fn put(character: char, form: &mut Vec<char>) {
    if is_space(character) {
        space(form);
    } else {
        form.push(character);
    }
}

struct Normaliser<'a> {
    text: &'a str,
    table: &'static Table,
    rules: Rules,
    form: &'a mut Vec<char>,
    /// See [`Normalised::makes_digits`].
    makes_digits: bool,
}

/// The segment being written, see [`Entry`].
struct Segment {
    /// Its start in the text, in bytes, and in the form.
    place: usize,
    start: usize,
    /// The place of the last character of class 0 in the form, unless it is a space or one of several.
    starter: Option<usize>,
    /// The lowest combining class with which the next mark is in order, `None` for that of the
    /// starter's last mark.
    class: Option<u8>,
    /// The combining class of the last mark after the starter, 0 if there is none.
    blocking: u8,
    /// The number of marks in a row so far.
    marks: usize,
}

impl Segment {
    #[inline]
    fn at(place: usize, form: &[char], starter: Option<usize>) -> Self {
        Self {
            place,
            start: form.len(),
            starter,
            class: None,
            blocking: 0,
            marks: 0,
        }
    }
}

impl Normaliser<'_> {
    fn all(&mut self) {
        let mut segments = Segments::default();
        let mut place = 0;
        while let Some(segment) = self.simple(place) {
            self.makes_digits = true;
            self.form.truncate(segment.start);
            place = segments.compose(self.text, segment.place, self.table, &self.rules, self.form);
        }
    }

    /// Normalise from the start of a segment to the end, or to a segment that needs more than the
    /// table.
    fn simple(&mut self, from: usize) -> Option<Segment> {
        let mut segment = Segment::at(from, self.form, None);
        for (offset, character) in self.text[from..].char_indices() {
            let place = from + offset;
            match self.table.entry(character) {
                Entry::Plain => {
                    segment = Segment::at(place, self.form, Some(self.form.len()));
                    self.form.push(character);
                }
                Entry::Becomes(other) => {
                    segment = Segment::at(place, self.form, Some(self.form.len()));
                    self.makes_digits |= other.is_ascii_digit();
                    self.form.push(other);
                }
                Entry::Space => {
                    segment = Segment::at(place, self.form, None);
                    space(self.form);
                }
                Entry::Several { first, count } => {
                    segment = Segment::at(place, self.form, None);
                    segment.class = Some(u8::MAX);
                    let several = self.table.several(first, count);
                    self.makes_digits |= several.first().is_some_and(char::is_ascii_digit);
                    for &c in several {
                        put(c, self.form);
                    }
                }
                Entry::Invisible => {}
                Entry::Joins { class, composes } => {
                    if !self.join(character, class, composes, &mut segment) {
                        return Some(segment);
                    }
                }
                Entry::Odd => return Some(segment),
            }
        }
        None
    }

    /// Write a character that may have to be sorted or composed with those before it; false if that
    /// needs the whole segment.
    fn join(&mut self, character: char, class: u8, composes: bool, segment: &mut Segment) -> bool {
        if class != 0 {
            if segment.marks == MARKS_IN_A_ROW_MAX {
                return true;
            }
            let least = segment.class.unwrap_or_else(|| self.class_of_last(segment));
            if class < least {
                return false;
            }
            segment.marks += 1;
            segment.class = Some(class);
        }
        if !composes {
            segment.blocking = class;
            self.form.push(character);
            return true;
        }
        self.compose(character, class, segment)
    }

    /// Write a character that may compose with the last starter, folded or not.
    fn compose(&mut self, character: char, class: u8, segment: &mut Segment) -> bool {
        let Some(starter) = segment.starter else {
            return false;
        };
        let blocked = segment.blocking != 0 && segment.blocking >= class;
        let one = self.rules.composed(self.form[starter], character);
        if let Some(one) = one.filter(|_| !blocked) {
            self.form[starter] = one;
        } else {
            if class == 0 {
                segment.starter = Some(self.form.len());
            }
            segment.blocking = class;
            self.form.push(character);
        }
        if class == 0 {
            (segment.class, segment.marks) = (None, 0);
        }
        true
    }

    fn class_of_last(&self, segment: &Segment) -> u8 {
        self.form[segment.start..]
            .last()
            .map_or(0, |&c| self.rules.last_class(c))
    }
}
