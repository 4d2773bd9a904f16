//! A table of the effect of normalising on each character.

use std::collections::HashSet;
use std::iter::once;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use icu_properties::props::{CanonicalCombiningClass, ChangesWhenNfkcCasefolded};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::rules::Rules;
use crate::unicode::{self, CodePoints, INVISIBLE, INVISIBLES, SPACES};

/// The effect of normalising on a character.
///
/// A character *begins a segment* if nothing before it can change what it becomes: the forms of
/// segments, one after the other, are the form of the text. All but [`Entry::Joins`] and
/// [`Entry::Odd`] do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    /// It stays.
    Plain,
    /// It becomes another one.
    Becomes(char),
    /// It becomes several characters: [`Table::several`].
    Several { first: u16, count: u8 },
    /// It is white space, or becomes a space.
    Space,
    /// It is removed.
    Invisible,
    /// It stays, but marks around it are sorted by combining class; 0 is none. If it `composes`, it
    /// becomes one character with some that come before it.
    Joins { class: u8, composes: bool },
    /// It changes in a way that depends on the characters before it.
    Odd,
}

/// An [`Entry`] for every character.
pub(super) struct Table {
    entries: CodePoints<Entry>,
    several: Vec<char>,
}

/// The jamo that follow others in a syllable.
const HANGUL_VOWELS: RangeInclusive<char> = '\u{1161}'..='\u{1175}';
const HANGUL_FINALS: RangeInclusive<char> = '\u{11a8}'..='\u{11c2}';

static TABLE: LazyLock<Table> = LazyLock::new(build);

impl Table {
    /// The table, built by the first call.
    pub(super) fn get() -> &'static Self {
        &TABLE
    }

    /// The entry of a character.
    #[inline]
    pub(super) fn entry(&self, character: char) -> Entry {
        self.entries.get(character)
    }

    /// The characters of an [`Entry::Several`].
    #[inline]
    pub(super) fn several(&self, first: u16, count: u8) -> &[char] {
        let first = usize::from(first);
        &self.several[first..first + usize::from(count)]
    }
}

fn build() -> Table {
    let rules = Rules::new();
    let composed = rules.all_composed();
    let seconds = composed.iter().map(|&(_, second)| second);
    let composing: HashSet<char> = seconds.chain(HANGUL_VOWELS).chain(HANGUL_FINALS).collect();
    let classes = CodePointMapData::<CanonicalCombiningClass>::new();
    let marks = classes.iter_ranges_for_value_complemented(CanonicalCombiningClass::NotReordered);
    let changing = CodePointSetData::new::<ChangesWhenNfkcCasefolded>();
    // No other character changes, is sorted, or composes with one before it.
    let candidates = marks
        .chain(changing.iter_ranges())
        .flat_map(unicode::characters)
        .chain(composing.iter().copied())
        .chain(composed.iter().map(|&(character, _)| character))
        .chain(SPACES.into_iter().chain(INVISIBLES).flatten());
    let mut table = Table {
        entries: CodePoints::new(Entry::Plain),
        several: Vec::new(),
    };
    for character in candidates {
        let entry = entry(character, &rules, &composing, &mut table.several);
        table.entries.set(character, entry);
    }
    table
}

/// The entry of a character; if it becomes several characters, they are added to `several`.
fn entry(character: char, rules: &Rules, composing: &HashSet<char>, several: &mut Vec<char>) -> Entry {
    if unicode::classes(character) & INVISIBLE != 0 {
        return Entry::Invisible;
    }
    let compatible = rules.compatible(once(character));
    let begins = compatible.chars().next().is_some_and(|first| {
        let first = rules.first(first);
        rules.class(first) == 0 && !composing.contains(&first)
    });
    let folded = rules.fold_compatible(compatible);
    let mut characters = folded.chars();
    let (Some(first), second) = (characters.next(), characters.next()) else {
        return Entry::Odd;
    };
    if !begins {
        let stays = first == character && second.is_none() && rules.first(character) == character;
        let (class, composes) = (rules.class(character), composing.contains(&character));
        return if stays {
            Entry::Joins { class, composes }
        } else {
            Entry::Odd
        };
    }
    if second.is_some() {
        let start = several.len();
        several.extend(folded.chars());
        return match (u16::try_from(start), u8::try_from(several.len() - start)) {
            (Ok(first), Ok(count)) => Entry::Several { first, count },
            _ => Entry::Odd,
        };
    }
    if unicode::is_space(first) {
        Entry::Space
    } else if first == character {
        Entry::Plain
    } else {
        Entry::Becomes(first)
    }
}
