//! Numbers in their canonical form, where letters are compared: `consumer/fingerprint/figures.py`.

use std::borrow::Cow;

use super::end_of;
use super::figures::is_digit;
use crate::letters::{Figure, Tables};

/// The Arabic decimal separator.
pub(super) const ARABIC_POINT: char = '\u{66b}';
/// Limit on groups of thousands with marks that also separate the numbers of a list.
const GROUPS_MAX: usize = 6;
const GROUP_DIGITS: usize = 3;
const ADDRESS_PARTS: usize = 4;
const ADDRESS_PART_MAX: u32 = 255;

/// The kind of number at a place, and its end.
pub(super) enum Number {
    /// One number, or several with marks such as hyphens between them.
    One(usize),
    /// A list, with a mark between every two numbers.
    List(usize),
}

/// The text with ASCII digits, and with one character each for hyphens and apostrophes.
pub(super) fn in_plain_marks(text: &[char]) -> Cow<'_, [char]> {
    // Most texts have no such character, so this avoids a branch per character.
    if !text
        .iter()
        .fold(false, |found, &character| found | may_change(character))
    {
        return Cow::Borrowed(text);
    }
    let tables = Tables::get();
    Cow::Owned(text.iter().map(|&character| plain(character, tables)).collect())
}

/// Whether a character may be a mark or a digit that counts as another.
const fn may_change(character: char) -> bool {
    let code = character as u32;
    let is_other_script = code >= 0x2bc && code < 0x2000 || code > 0xa4cf && code < 0xac00 || code > 0xd7a3;
    let is_mark = code & !0x3 == 0x2010 || code & !0x1 == 0x2018 || code == 0x2212;
    is_other_script | is_mark
}

fn plain(character: char, tables: &Tables) -> char {
    match character {
        _ if !may_change(character) => character,
        '\u{2010}' | '\u{2012}' | '\u{2013}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{2bc}' | '\u{66c}' => '\'',
        _ if tables.figures.get(character) == Figure::Digit => tables.letter(character),
        _ => character,
    }
}

/// The number whose first digit is here, with apostrophes, low lines or spaces between thousands.
pub(super) fn spaced(text: &[char], start: usize) -> Option<Number> {
    let end = leading(text, start)?;
    let has_group = text.get(end).is_some_and(|&mark| is_list_mark(mark)) && is_group(text, end + 1);
    if !has_group || text[..start].last() == Some(&'^') {
        return None;
    }
    if let Some(end) = list(text, start) {
        return Some(Number::List(end));
    }
    let mut end = grouped(text, start)?;
    while let Some([':' | '/' | '-', '0'..='9']) = text.get(end..end + 2) {
        let next = end + 1;
        end = grouped(text, next).unwrap_or_else(|| with_decimals(text, end_of(text, next, is_digit)));
    }
    Some(Number::One(end))
}

/// Splits a list.
pub(super) fn of_list(list: &[char]) -> impl Iterator<Item = &[char]> {
    list.split(|&character| is_list_mark(character))
}

/// The end of more groups than a number has.
fn list(text: &[char], start: usize) -> Option<usize> {
    let mut end = leading(text, start)?;
    let mut groups = 0;
    while text.get(end).is_some_and(|&mark| is_list_mark(mark)) && is_group(text, end + 1) {
        end += 1 + GROUP_DIGITS;
        groups += 1;
    }
    (groups > GROUPS_MAX).then_some(end)
}

/// The end of one number with groups after the same mark, and with decimals.
fn grouped(text: &[char], start: usize) -> Option<usize> {
    let mut end = leading(text, start)?;
    let mark = *text.get(end).filter(|&&mark| is_list_mark(mark))?;
    let mut groups = 0;
    while groups < GROUPS_MAX && text.get(end) == Some(&mark) && is_group(text, end + 1) {
        end += 1 + GROUP_DIGITS;
        groups += 1;
    }
    if let Some(['.' | ',' | ARABIC_POINT, '0'..='9']) = text.get(end..end + 2) {
        end = end_of(text, end + 1, is_digit);
    }
    let goes_on = matches!(
        text.get(end..end + 2),
        Some(['.' | ',' | '\'' | '_' | ARABIC_POINT, '0'..='9'])
    );
    (groups > 0 && !goes_on).then_some(end)
}

/// The end of decimals, and of further digits after points or commas.
fn with_decimals(text: &[char], place: usize) -> usize {
    let mut end = place;
    while let Some(['.' | ',' | ARABIC_POINT, '0'..='9']) = text.get(end..end + 2) {
        end = end_of(text, end + 1, is_digit);
    }
    end
}

/// The end of one to three digits that do not begin with 0, if no others follow.
fn leading(text: &[char], start: usize) -> Option<usize> {
    let near = &text[start..text.len().min(start + GROUP_DIGITS + 1)];
    let digits = end_of(near, 0, is_digit);
    (digits <= GROUP_DIGITS && matches!(near, ['1'..='9', ..])).then_some(start + digits)
}

/// Whether three digits are here, and no more.
fn is_group(text: &[char], start: usize) -> bool {
    let near = &text[start..text.len().min(start + GROUP_DIGITS + 1)];
    end_of(near, 0, is_digit) == GROUP_DIGITS
}

/// The numbers of a figure in their canonical form, with the marks between them.
pub(super) fn canonical(figure: &[char]) -> Vec<char> {
    let mut form = Vec::with_capacity(figure.len());
    for part in figure.split_inclusive(|&character| is_between(character)) {
        let (number, mark) = match part.split_last() {
            Some((&mark, number)) if is_between(mark) => (number, Some(mark)),
            _ => (part, None),
        };
        add_number(number, &mut form);
        form.extend(mark);
    }
    form
}

/// Adds a number without thousands separators and with a decimal point; doubtful ones are unchanged.
fn add_number(number: &[char], form: &mut Vec<char>) {
    let removed = if number.iter().any(|&character| is_list_mark(character)) {
        None
    } else if has_thousands(number, ',', '.') {
        Some(',')
    } else if has_thousands(number, '.', ',') && !is_address(number) {
        Some('.')
    } else if has_one_point(number) {
        None
    } else {
        return form.extend(number);
    };
    for &character in number {
        match character {
            _ if Some(character) == removed || is_list_mark(character) => {}
            ',' | ARABIC_POINT => form.push('.'),
            _ => form.push(character),
        }
    }
}

/// `[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:[.٫][0-9]+)?` with these marks.
fn has_thousands(number: &[char], mark: char, point: char) -> bool {
    let Some(mut end) = leading(number, 0).filter(|&end| number.get(end) == Some(&mark)) else {
        return false;
    };
    while number.get(end) == Some(&mark) && is_group(number, end + 1) {
        end += 1 + GROUP_DIGITS;
    }
    match number[end..] {
        [] => true,
        [first, ..] => (first == point || first == ARABIC_POINT) && end_of(number, end + 1, is_digit) == number.len(),
    }
}

/// `[0-9]+[,٫][0-9]+`
fn has_one_point(number: &[char]) -> bool {
    let end = end_of(number, 0, is_digit);
    matches!(number.get(end), Some(',' | &ARABIC_POINT)) && end_of(number, end + 1, is_digit) == number.len()
}

/// Whether these are four numbers of one byte each.
fn is_address(number: &[char]) -> bool {
    let mut parts = number.split(|&character| character == '.');
    let is_byte = |part: &[char]| {
        let value = part
            .iter()
            .try_fold(0, |value, digit| Some(10 * value + digit.to_digit(10)?));
        value.is_some_and(|value| value <= ADDRESS_PART_MAX)
    };
    parts.clone().count() == ADDRESS_PARTS && parts.all(is_byte)
}

/// The sign of the number that starts here, if it has one; a hyphen between digits is not a sign.
pub(super) fn sign(text: &[char], start: usize, number: &[char]) -> Option<char> {
    match text[..start] {
        [sign @ ('+' | '-')] if is_signed(number) => Some(sign),
        [.., before, sign @ ('+' | '-')] if is_before_sign(before) && is_signed(number) => Some(sign),
        _ => None,
    }
}

/// `[0-9]+(?:\.[0-9]+)?(?:-[0-9]+(?:\.[0-9]+)?)?`: a number, or a range of two.
fn is_signed(figure: &[char]) -> bool {
    let number = |place| {
        let end = end_of(figure, place, is_digit);
        match figure.get(end..end + 2) {
            Some(['.', '0'..='9']) => end_of(figure, end + 1, is_digit),
            _ => end,
        }
    };
    let end = number(0);
    end == figure.len() || figure[end] == '-' && number(end + 1) == figure.len()
}

const fn is_before_sign(character: char) -> bool {
    matches!(
        character,
        ' ' | '(' | '[' | '{' | '<' | '〈' | '《' | '「' | '『' | '【' | '〔' | '〖'
    ) || matches!(character, '"' | '\'' | '“' | '‘' | ',' | ':' | ';' | '=' | '、' | '。')
}

const fn is_between(character: char) -> bool {
    matches!(character, ':' | '/' | '-')
}

const fn is_list_mark(character: char) -> bool {
    matches!(character, ' ' | '\'' | '_')
}
