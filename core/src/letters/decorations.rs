//! Decorations, which people put around a text when they pass it on: `consumer/fingerprint/characters/decorations.py`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use blake2::{Blake2b128, Digest};

use super::tables::{KIND, Tables};

/// Each line has the kind of a word, and the word.
const FILE: &str = include_str!("decorations.tsv");
const LINK_CHARS_MAX: usize = 1024;
const NAME_CHARS_MAX: usize = 30;
const EMOJI_CHARS_MAX: usize = 4;
const EMOJI_LISTED_CHARS_MAX: usize = 8;
const LETTERS_LEFT_MIN: usize = 24;
const LETTERS_FREE: usize = 60;
const SHARE_LEFT: usize = 4;
const PLACES_FREE: usize = 4;
const LETTERS_A_PLACE: usize = 100;
/// Limit on the spaces and colons between a name and the words that introduce it.
const BETWEEN_MAX: usize = 3;

/// The words of decorations by kind; lists in which the longest word counts have the longest first.
struct Lists {
    leads: Vec<Vec<char>>,
    marks: Vec<Vec<char>>,
    links: Vec<Vec<char>>,
    boxed: HashSet<Vec<char>>,
    emoji: HashSet<Vec<char>>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| Lists {
    leads: longest_first("lead"),
    marks: longest_first("mark"),
    links: longest_first("link"),
    boxed: words("boxed").collect(),
    emoji: words("emoji").collect(),
});

/// The characters at which a name, a mark, or something in brackets begins, or at which the
/// beginning of a link ends.
pub(super) fn signs() -> impl Iterator<Item = char> {
    let marks = LISTS.marks.iter().map(|word| word[0]);
    let links = LISTS.links.iter().filter_map(|word| word.last().copied());
    "@[(【".chars().chain(marks).chain(links)
}

/// The digest of the lists that is part of the scheme's: `BLAKE2b` of 16 bytes.
#[must_use]
pub fn digest() -> [u8; 16] {
    Blake2b128::digest(FILE).into()
}

fn words(name: &str) -> impl Iterator<Item = Vec<char>> {
    FILE.lines().filter_map(move |line| {
        let (of, word) = line.split_once('\t')?;
        (of == name).then(|| word.chars().collect())
    })
}

fn longest_first(name: &str) -> Vec<Vec<char>> {
    let mut found: Vec<Vec<char>> = words(name).collect();
    found.sort_by_key(|word| std::cmp::Reverse(word.len()));
    found
}

struct Span {
    place: Range<usize>,
    is_link: bool,
}

/// The places of a normalised text's decorations, given the places of their [`signs`]; none if the text
/// is compared whole.
pub(super) fn decorations(text: &[char], signs: &[usize], tables: &Tables) -> Vec<Range<usize>> {
    let spans = Finder {
        text,
        tables,
        lists: &LISTS,
    }
    .spans(signs);
    if spans.is_empty() || is_too_much(&spans, text, tables) {
        return Vec::new();
    }
    spans.into_iter().map(|span| span.place).collect()
}

fn is_too_much(spans: &[Span], text: &[char], tables: &Tables) -> bool {
    let count = |text: &[char]| text.iter().filter(|&&c| tables.roles.get(c) & KIND != 0).count();
    let (mut linked, mut other, mut left, mut places, mut end) = (0, 0, 0, 0, 0);
    for Span { place, is_link } in spans {
        let between = count(&text[end..place.start]);
        left += between;
        places += usize::from(between > 0);
        *(if *is_link { &mut linked } else { &mut other }) += count(&text[place.clone()]);
        end = place.end;
    }
    left += count(&text[end..]);
    linked + other > left
        || left < LETTERS_LEFT_MIN
        || other > LETTERS_FREE.max(left / SHARE_LEFT)
        || places > PLACES_FREE + left / LETTERS_A_PLACE
}

struct Finder<'a> {
    text: &'a [char],
    tables: &'a Tables,
    lists: &'a Lists,
}

impl Finder<'_> {
    /// The decorations from the left; finding each takes a few characters.
    fn spans(&self, signs: &[usize]) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut end = 0;
        for &place in signs {
            if place < end {
                continue;
            }
            let span = match self.text[place] {
                '@' => self.name(place, end),
                '[' => self.boxed(place, ']'),
                '(' => self.boxed(place, ')'),
                '【' => self.boxed(place, '】'),
                _ => self.mark(place).or_else(|| self.link(place, end)),
            };
            if let Some(span) = span {
                end = span.place.end;
                spans.push(span);
            }
        }
        spans
    }

    /// The name after an @ with the words that introduce it, from `least` on.
    fn name(&self, place: usize, least: usize) -> Option<Span> {
        let is_of_name = |c: &&char| matches!(c, '_' | '-') || self.is_letter(**c);
        let length = self.text[place + 1..]
            .iter()
            .take(NAME_CHARS_MAX + 1)
            .take_while(is_of_name)
            .count();
        let before = place.checked_sub(1).map(|before| self.text[before]);
        let is_address = before.is_some_and(|c| is_plain(c) || matches!(c, '.' | '_' | '-'));
        if is_address || !(1..=NAME_CHARS_MAX).contains(&length) {
            return None;
        }
        let stop = place + 1 + length;
        let before = &self.text[least.max(place.saturating_sub(BETWEEN_MAX))..place];
        let between = before.iter().rev().take_while(|c| matches!(c, ' ' | ':')).count();
        let lead_stop = place - between;
        let start = self.lists.leads.iter().find_map(|lead| {
            let start = lead_stop.checked_sub(lead.len()).filter(|&start| start >= least)?;
            (self.text[start..].starts_with(lead) && !self.continues(start)).then_some(start)
        });
        Some(Span {
            place: start.unwrap_or(place)..stop,
            is_link: false,
        })
    }

    /// An [emoji], or a repost mark in any brackets.
    fn boxed(&self, place: usize, closing: char) -> Option<Span> {
        let inside = &self.text[place + 1..];
        let length = inside
            .iter()
            .take(EMOJI_LISTED_CHARS_MAX + 1)
            .position(|&c| c == closing)?;
        let inside = &inside[..length];
        let is_boxed = self.lists.boxed.contains(stripped(inside))
            || (closing == ']' && (self.lists.emoji.contains(inside) || self.is_emoji(inside)));
        is_boxed.then(|| Span {
            place: place..place + length + 2,
            is_link: false,
        })
    }

    /// Whether these are a few letters or digits, but not only digits.
    fn is_emoji(&self, inside: &[char]) -> bool {
        (1..=EMOJI_CHARS_MAX).contains(&inside.len())
            && inside.iter().all(|&c| self.is_letter(c))
            && !inside.iter().all(char::is_ascii_digit)
    }

    /// A repost mark that begins at a place.
    fn mark(&self, place: usize) -> Option<Span> {
        let mark = self
            .lists
            .marks
            .iter()
            .find(|mark| self.text[place..].starts_with(mark))?;
        Some(Span {
            place: place..place + mark.len(),
            is_link: false,
        })
    }

    /// A link whose beginning ends at a place, from `least` on.
    fn link(&self, place: usize, least: usize) -> Option<Span> {
        let before = &self.text[least..=place];
        let starts = self
            .lists
            .links
            .iter()
            .filter(|word| before.ends_with(word))
            .map(|word| place + 1 - word.len());
        // A host without a scheme must begin a word.
        let start = starts
            .into_iter()
            .find(|&start| self.text[start..].starts_with(&['h', 't', 't', 'p']) || !self.continues(start))?;
        let length = self.text[start..]
            .iter()
            .take(LINK_CHARS_MAX)
            .take_while(|&&c| is_of_link(c))
            .count();
        Some(Span {
            place: start..start + length,
            is_link: true,
        })
    }

    /// Whether an ASCII letter or digit continues an ASCII word.
    fn continues(&self, place: usize) -> bool {
        place > 0 && is_plain(self.text[place]) && is_plain(self.text[place - 1])
    }

    fn is_letter(&self, character: char) -> bool {
        self.tables.roles.get(character) & KIND != 0
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit()
}

fn is_of_link(character: char) -> bool {
    is_plain(character) || "./?=&_%#~:+@-".contains(character)
}

/// Without the space at each end; a normalised text has no two in a row.
fn stripped(text: &[char]) -> &[char] {
    let text = text.strip_prefix(&[' ']).unwrap_or(text);
    text.strip_suffix(&[' ']).unwrap_or(text)
}
