//! Letters of another script that look like those around them: `consumer/fingerprint/characters/look_alikes.py`.

use super::tables::{FIRST_CLASS, IN_WORD, SCRIPTS, Tables};

/// The text as written, with one script for each word that mixes scripts; `None` if no word does.
///
/// A word is a run of Latin, Greek and Cyrillic letters, with their marks. It gets the script with the most
/// letters that look like no letter of another script; ties go to the first.
pub(super) fn in_one_script(text: &str, tables: &Tables) -> Option<String> {
    let mut changed = String::new();
    let mut taken = 0;
    let mut word = Word::default();
    for (place, character) in text.char_indices() {
        match tables.scripts.get(character) {
            0 => {
                if word.is_mixed() {
                    word.write(text, &mut taken, place, tables, &mut changed);
                }
                word = Word {
                    start: place + character.len_utf8(),
                    ..Word::default()
                };
            }
            IN_WORD => {}
            class => word.add(class, tables.same.get(character)),
        }
    }
    if word.is_mixed() {
        word.write(text, &mut taken, text.len(), tables, &mut changed);
    }
    if taken == 0 {
        return None;
    }
    changed.push_str(&text[taken..]);
    Some(changed)
}

#[derive(Default)]
struct Word {
    /// The start of the word, in bytes.
    start: usize,
    /// The number of its letters of each script.
    letters: [usize; SCRIPTS.len()],
    /// The number of those that look like no letter of another script.
    own: [usize; SCRIPTS.len()],
}

impl Word {
    fn add(&mut self, class: u8, is_same: bool) {
        let script = usize::from(class - FIRST_CLASS);
        self.letters[script] += 1;
        self.own[script] += usize::from(!is_same);
    }

    fn is_mixed(&self) -> bool {
        self.letters.iter().filter(|&&count| count > 0).count() > 1
    }

    /// Write the text from `taken` to the end of this word, which is at `end`.
    fn write(&self, text: &str, taken: &mut usize, end: usize, tables: &Tables, changed: &mut String) {
        let most = self.own.iter().max().copied().unwrap_or(0);
        let script = self.own.iter().position(|&count| count == most).unwrap_or(0);
        changed.push_str(&text[*taken..self.start]);
        let translated = text[self.start..end].chars();
        changed.extend(translated.map(|c| tables.look_alikes[script].get(&c).copied().unwrap_or(c)));
        *taken = end;
    }
}
