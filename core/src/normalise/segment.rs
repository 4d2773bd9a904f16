//! Normalises segments that need more than the table, by all steps in order.

use super::entries::{Entry, Table};
use super::rules::Rules;
use super::{MARKS_IN_A_ROW_MAX, put};
use crate::unicode::is_mark;

/// A normaliser of segments, with reusable buffers.
#[derive(Default)]
pub(super) struct Segments {
    visible: String,
}

impl Segments {
    /// Write the form of the segment that begins at a place, and return the place of the next one.
    pub(super) fn compose(
        &mut self,
        text: &str,
        place: usize,
        table: &Table,
        rules: &Rules,
        form: &mut Vec<char>,
    ) -> usize {
        let end = self.read(text, place, table);
        let mut row = Row::default();
        for character in rules.fold(self.visible.chars()).chars() {
            if row.keeps(character) {
                put(character, form);
            }
        }
        end
    }

    /// Keep the visible characters of the segment, and return the start of the next one.
    fn read(&mut self, text: &str, place: usize, table: &Table) -> usize {
        self.visible.clear();
        let mut row = Row::default();
        for (offset, character) in text[place..].char_indices() {
            match table.entry(character) {
                Entry::Invisible => continue,
                Entry::Joins { .. } | Entry::Odd => {}
                _ if self.visible.is_empty() => {}
                _ => return place + offset,
            }
            if row.keeps(character) {
                self.visible.push(character);
            }
        }
        text.len()
    }
}

/// Counts the combining marks in a row.
#[derive(Default)]
struct Row {
    marks: usize,
}

impl Row {
    /// Whether a character is not a mark beyond the limit.
    fn keeps(&mut self, character: char) -> bool {
        self.marks = if is_mark(character) { self.marks + 1 } else { 0 };
        self.marks <= MARKS_IN_A_ROW_MAX
    }
}
