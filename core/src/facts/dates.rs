//! Dates with the name of a month.

use std::ops::Range;

use super::end_of;

/// The months, each with its abbreviation.
const MONTHS: [(&str, &str); 12] = [
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may", "may"),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
];
/// The one abbreviation of four letters.
const SEPT: &str = "sept";
const MONTH_CHARS_MAX: usize = 9;
const YEAR_DIGITS: usize = 4;

/// A number with the month and the year next to it, which are empty if there are none.
pub(super) struct Date<'a> {
    pub(super) parts: [&'a [char]; 3],
    /// Where it begins in the text.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
}

/// Reads the month after a number, or before it, and then the year after both.
pub(super) fn around(text: &[char], number: Range<usize>) -> Date<'_> {
    let (month, end) = match month_behind(text, number.end) {
        Some(month) => (&text[month.clone()], month.end),
        None => (month_before(&text[..number.start]), number.end),
    };
    // A month before the number is followed by a space.
    let is_before = end == number.end && !month.is_empty();
    let start = number.start - if is_before { month.len() + 1 } else { 0 };
    let year = if month.is_empty() { None } else { year_behind(text, end) };
    let year = year.unwrap_or(end..end);
    Date {
        start,
        parts: [&text[number], month, &text[year.clone()]],
        end: year.end,
    }
}

/// Whether these are the letters of a month's English name or abbreviation.
pub(super) fn is_month(letters: &(impl Iterator<Item = char> + Clone)) -> bool {
    let is = |name: &str| name.chars().eq(letters.clone());
    MONTHS.iter().any(|(name, abbreviation)| is(name) || is(abbreviation)) || is(SEPT)
}

/// `(?:st|nd|rd|th)? ([a-z]{3,9})(?![a-z])`, if the group is a month.
fn month_behind(text: &[char], place: usize) -> Option<Range<usize>> {
    let start = behind(text, behind_ordinal(text, place), ' ')?;
    let month = start..end_of(text, start, |character: char| character.is_ascii_lowercase());
    is_month(&text[month.clone()].iter().copied()).then_some(month)
}

/// The last word of the nine characters before a final space if it is a month, else nothing.
fn month_before(text: &[char]) -> &[char] {
    let Some((&' ', before)) = text.split_last() else {
        return &[];
    };
    let near = &before[before.len().saturating_sub(MONTH_CHARS_MAX)..];
    let word = near.rsplit(|&character| character == ' ').next().unwrap_or_default();
    if is_month(&word.iter().copied()) { word } else { &[] }
}

/// `(?:st|nd|rd|th)?,? ([0-9]{4})(?![0-9])`
fn year_behind(text: &[char], place: usize) -> Option<Range<usize>> {
    let place = behind_ordinal(text, place);
    let start = behind(text, behind(text, place, ',').unwrap_or(place), ' ')?;
    let year = start..end_of(text, start, |character: char| character.is_ascii_digit());
    (year.len() == YEAR_DIGITS).then_some(year)
}

/// The place after `st`, `nd`, `rd` or `th`, or the same place without one.
fn behind_ordinal(text: &[char], place: usize) -> usize {
    match text.get(place..place + 2) {
        Some(['s', 't'] | ['n' | 'r', 'd'] | ['t', 'h']) => place + 2,
        _ => place,
    }
}

/// The place after this character, if it is here.
fn behind(text: &[char], place: usize, character: char) -> Option<usize> {
    (text.get(place) == Some(&character)).then_some(place + 1)
}
