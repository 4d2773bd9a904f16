//! Dates, numbers and codes in a normalised text.

use std::borrow::Cow;
use std::ops::Range;

use super::numbers::{self, ARABIC_POINT, Number};
use super::{Facts, dates, end_of, first};

/// Limit on the letters before a digit that belong to a code.
const CODE_LETTERS_MAX: usize = 8;
const DAY_CHARS_MAX: usize = 2;
const YEAR_DIGITS_MAX: usize = 4;
const MONTH_DIGITS_MAX: usize = 2;

/// Adds figures: dates, numbers with their separators, and codes, which are figures with letters before them.
pub(super) fn find(text: &[char], facts: &mut impl Facts) {
    // A part of a fact is not another fact.
    let mut taken = 0;
    let mut place = 0;
    while let Some(start) = first(text, place, is_digit) {
        place = end_of_figure(text, start);
        if start >= taken {
            taken = add(text, start..place, facts);
        }
    }
}

/// Adds numbers in Chinese numerals: two or more in a row, or one after 第.
pub(super) fn find_in_words(text: &[char], facts: &mut impl Facts) {
    let mut place = 0;
    while let Some(start) = first(text, place, is_numeral) {
        place = end_of(text, start, is_numeral);
        if place - start > 1 || text[..start].last() == Some(&'第') {
            facts.add(start..place, text[start..place].iter().copied());
        }
    }
}

/// Adds the same, with numbers in their canonical form.
pub(super) fn find_canonical(text: &[char], facts: &mut impl Facts) {
    let text = &numbers::in_plain_marks(text);
    let mut taken = 0;
    let mut place = 0;
    while let Some(start) = first(text, place, is_digit) {
        let number = match date(text, start) {
            Some(end) => Number::One(end),
            None => canonical_number(text, start),
        };
        let (Number::One(end) | Number::List(end)) = number;
        place = end;
        if start < taken {
            continue;
        }
        if matches!(number, Number::List(_)) {
            let mut place = start;
            for number in numbers::of_list(&text[start..end]) {
                facts.add(place..place + number.len(), number.iter().copied());
                place += number.len() + 1;
            }
        } else if letters_before(text, start) == 0 {
            taken = add_canonical(text, start..end, facts);
        } else {
            taken = add(text, start..end, facts);
        }
    }
}

/// The number whose first digit is at `start`; with letters before it, it is part of a code and has no spaces.
fn canonical_number(text: &[char], start: usize) -> Number {
    let spaced = if letters_before(text, start) == 0 {
        numbers::spaced(text, start)
    } else {
        None
    };
    spaced.unwrap_or_else(|| {
        let is_between = |mark| is_mark(mark) || mark == ARABIC_POINT;
        Number::One(end_of_number(text, end_of(text, start, is_digit), is_between))
    })
}

/// Adds a figure without letters before it, and returns where the fact ends.
fn add_canonical(text: &[char], figure: Range<usize>, facts: &mut impl Facts) -> usize {
    let Range { start, end } = figure;
    let number = &text[start..end];
    if number.len() <= DAY_CHARS_MAX {
        let date = dates::around(text, figure);
        let sign = numbers::sign(text, start, number).filter(|_| date.parts[1].is_empty());
        let fact = date.parts.iter().flat_map(|part| without(' ', part));
        facts.add(date.start..date.end, sign.into_iter().chain(fact));
        return date.end;
    }
    let has_marks = number.iter().any(|&character| !is_digit(character));
    let is_date = number.last().is_some_and(|&last| !is_digit(last));
    let number = if has_marks && !is_date {
        Cow::Owned(numbers::canonical(number))
    } else {
        Cow::Borrowed(number)
    };
    let sign = numbers::sign(text, start, &number);
    facts.add(start..end, sign.into_iter().chain(without(' ', &number)));
    end
}

/// Adds the fact that a figure belongs to, and returns where it ends.
fn add(text: &[char], figure: Range<usize>, facts: &mut impl Facts) -> usize {
    let Range { start, end } = figure;
    let letters = letters_before(text, start);
    if letters > 0 {
        let end = end_of(text, end, |character| is_letter(character) || is_digit(character));
        facts.add(start - letters..end, without(' ', &text[start - letters..end]));
        return end;
    }
    if figure.len() <= DAY_CHARS_MAX {
        let date = dates::around(text, figure);
        facts.add(
            date.start..date.end,
            date.parts.iter().flat_map(|part| without(' ', part)),
        );
        return date.end;
    }
    let number = &text[figure.clone()];
    let removed = if has_thousands(number) { ',' } else { ' ' };
    facts.add(figure, without(removed, number));
    end
}

/// The end of the figure whose first digit is at `start`: of a date in Chinese or Japanese, else of a number.
///
/// There is no digit before `start`: a figure that ends with digits takes all of them.
fn end_of_figure(text: &[char], start: usize) -> usize {
    date(text, start).unwrap_or_else(|| end_of_number(text, end_of(text, start, is_digit), is_mark))
}

/// The end of the date in Chinese or Japanese whose first digit is at `start`.
fn date(text: &[char], start: usize) -> Option<usize> {
    let end = end_of(text, start, is_digit);
    match end - start {
        digits if digits <= MONTH_DIGITS_MAX => year(text, end).or_else(|| day_of_month(text, end)),
        digits if digits <= YEAR_DIGITS_MAX => year(text, end),
        _ => None,
    }
}

/// What follows the digits of a year: ` ?年(?: ?[0-9]{1,2} ?月(?: ?[0-9]{1,2} ?[日号])?)?`
fn year(text: &[char], place: usize) -> Option<usize> {
    let year = unit(text, place, &['年'])?;
    match number(text, year, &['月']) {
        Some(month) => number(text, month, &['日', '号']).or(Some(month)),
        None => Some(year),
    }
}

/// What follows the digits of a month: ` ?月 ?[0-9]{1,2} ?[日号]`
fn day_of_month(text: &[char], place: usize) -> Option<usize> {
    number(text, unit(text, place, &['月'])?, &['日', '号'])
}

/// What follows the first digits of a number: marks, each with digits after it.
fn end_of_number(text: &[char], place: usize, is_between: impl Fn(char) -> bool) -> usize {
    let mut end = place;
    while let Some([mark, '0'..='9']) = text.get(end..end + 2)
        && is_between(*mark)
    {
        end = end_of(text, end + 1, is_digit);
    }
    end
}

/// ` ?[0-9]{1,2}`, and then a unit.
fn number(text: &[char], place: usize, units: &[char]) -> Option<usize> {
    let start = behind_space(text, place);
    match text[start..] {
        ['0'..='9', '0'..='9', ..] => unit(text, start + 2, units),
        ['0'..='9', ..] => unit(text, start + 1, units),
        _ => None,
    }
}

/// ` ?` and one of these units.
fn unit(text: &[char], place: usize, units: &[char]) -> Option<usize> {
    let start = behind_space(text, place);
    let is_here = text.get(start).is_some_and(|character| units.contains(character));
    is_here.then_some(start + 1)
}

fn behind_space(text: &[char], place: usize) -> usize {
    place + usize::from(text.get(place) == Some(&' '))
}

/// The number of letters right before a place, at most those of a code.
fn letters_before(text: &[char], place: usize) -> usize {
    let near = text[..place].iter().rev().take(CODE_LETTERS_MAX);
    near.take_while(|&&character| is_letter(character)).count()
}

/// Whether a number's commas are before every three of its digits: `[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?`
fn has_thousands(number: &[char]) -> bool {
    let point = number.iter().position(|&character| character == '.');
    let (whole, decimals) = number.split_at(point.unwrap_or(number.len()));
    let mut groups = whole.split(|&character| character == ',');
    let leading = groups.next().unwrap_or_default();
    // A number has only digits between separators, at least one; a figure with a unit is not a number.
    whole.len() > leading.len()
        && leading.len() <= 3
        && groups.all(|group| group.len() == 3)
        && number
            .iter()
            .all(|&character| is_digit(character) || matches!(character, ',' | '.'))
        && decimals.iter().skip(1).all(|&character| is_digit(character))
}

fn without(removed: char, characters: &[char]) -> impl Iterator<Item = char> {
    characters
        .iter()
        .copied()
        .filter(move |&character| character != removed)
}

const fn is_mark(character: char) -> bool {
    matches!(character, '.' | ',' | ':' | '/' | '-')
}

pub(super) const fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

const fn is_letter(character: char) -> bool {
    character.is_ascii_lowercase()
}

pub(super) const fn is_numeral(character: char) -> bool {
    let is_ten_or_less = matches!(
        character,
        '一' | '二' | '三' | '四' | '五' | '六' | '七' | '八' | '九' | '十'
    );
    is_ten_or_less || matches!(character, '〇' | '零' | '两' | '百' | '千' | '万' | '亿')
}
