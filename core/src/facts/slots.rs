//! The slots of a text, which distinguish two fillings of the same frame: `consumer/fingerprint/slots.py`.

use std::cmp::Reverse;
use std::ops::Range;

use super::figures::{self, is_numeral};
use super::sample::hash;
use super::{Facts, end_of, first};
use crate::unicode::is_letter_or_number;

const SLOTS_KEPT: usize = 64;
const SURROUNDING_LETTERS: usize = 3;
/// Stands for another value among the surroundings.
const VALUE: char = '\0';
const TIMES_OF_DAY: [&str; 10] = [
    "上午", "下午", "凌晨", "清晨", "早晨", "早上", "中午", "傍晚", "晚上", "晚间",
];
const LANGUAGE_CHARS_MAX: usize = 5;
/// The longest ones first.
const LANGUAGES: [&str; 45] = [
    "印度尼西亚",
    "斯瓦希里",
    "罗马尼亚",
    "西班牙",
    "葡萄牙",
    "阿拉伯",
    "意大利",
    "维吾尔",
    "哈萨克",
    "土耳其",
    "匈牙利",
    "乌克兰",
    "希伯来",
    "乌尔都",
    "柬埔寨",
    "蒙古",
    "朝鲜",
    "印地",
    "马来",
    "印尼",
    "波斯",
    "希腊",
    "荷兰",
    "瑞典",
    "波兰",
    "捷克",
    "豪萨",
    "缅甸",
    "越南",
    "老挝",
    "中",
    "英",
    "法",
    "德",
    "日",
    "俄",
    "韩",
    "意",
    "葡",
    "西",
    "阿",
    "藏",
    "蒙",
    "维",
    "泰",
];

/// Values and their places.
#[derive(Default)]
struct Values {
    /// Each with its place in the text and in `facts`.
    found: Vec<(Range<usize>, Range<usize>)>,
    facts: String,
}

impl Facts for Values {
    fn add(&mut self, range: Range<usize>, fact: impl Iterator<Item = char>) {
        let start = self.facts.len();
        self.facts.extend(fact);
        self.found.push((range, start..self.facts.len()));
    }
}

/// The packed slots of a text in the form that is split into words, given the places of names; nothing without a slot.
///
/// Each slot has a hash of its surroundings and one of its value, of 4 bytes each, big-endian, in the order of the
/// surroundings. Only the first 64 slots whose surroundings occur once are packed.
#[must_use]
pub fn packed(text: &[char], names: &[Range<usize>]) -> Vec<u8> {
    let mut values = Values::default();
    figures::find_canonical(text, &mut values);
    find_numerals(text, &mut values);
    find_listed(text, &mut values);
    for name in names {
        values.add(name.clone(), text[name.clone()].iter().copied());
    }
    let mut slots = slots(text, values);
    slots.sort_unstable();
    let is_alone = |place: usize| {
        let same = |other: Option<&(u32, u32)>| other.is_some_and(|other| other.0 == slots[place].0);
        !same(place.checked_sub(1).and_then(|before| slots.get(before))) && !same(slots.get(place + 1))
    };
    (0..slots.len())
        .filter(|&place| is_alone(place))
        .take(SLOTS_KEPT)
        .flat_map(|place| [slots[place].0, slots[place].1])
        .flat_map(u32::to_be_bytes)
        .collect()
}

/// The hashes of the surroundings and of the value of each slot.
fn slots(text: &[char], values: Values) -> Vec<(u32, u32)> {
    let Values { mut found, facts } = values;
    found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
    let mut frame = Vec::with_capacity(text.len());
    let mut filled: Vec<(usize, String)> = Vec::new();
    let mut end = 0;
    for (range, fact) in found {
        if range.start < end {
            continue;
        }
        let length = frame.len();
        frame.extend(letters(&text[end..range.start]));
        end = range.end;
        match filled.last_mut() {
            Some((_, value)) if frame.len() == length => {
                value.push(' ');
                value.push_str(&facts[fact]);
            }
            _ => {
                filled.push((frame.len(), facts[fact].to_owned()));
                frame.push(VALUE);
            }
        }
    }
    frame.extend(letters(&text[end..]));
    let mut surroundings = String::new();
    filled
        .iter()
        .map(|(place, value)| {
            surroundings.clear();
            surroundings.extend(&frame[place.saturating_sub(SURROUNDING_LETTERS)..*place]);
            surroundings.push('|');
            surroundings.extend(frame[place + 1..].iter().take(SURROUNDING_LETTERS));
            (hash(&surroundings), hash(value))
        })
        .collect()
}

fn letters(text: &[char]) -> impl Iterator<Item = char> {
    text.iter().copied().filter(|&character| is_letter_or_number(character))
}

/// Adds Chinese numerals: two or more in a row, or one after 第 or before a counter.
fn find_numerals(text: &[char], values: &mut Values) {
    let mut place = 0;
    while let Some(start) = first(text, place, is_numeral) {
        place = end_of(text, start, is_numeral);
        let is_ordinal = text[..start].last() == Some(&'第') || text.get(place).is_some_and(|&unit| is_counted(unit));
        if place - start > 1 || is_ordinal {
            values.add(start..place, text[start..place].iter().copied());
        }
    }
}

/// Adds times of day and languages.
fn find_listed(text: &[char], values: &mut Values) {
    let mut place = 0;
    while let Some(start) = first(text, place, |character| character >= '\u{4e00}') {
        let length = listed(&text[start..]);
        place = start + length.max(1);
        if length > 0 {
            values.add(start..place, text[start..place].iter().copied());
        }
    }
}

/// The length of the time of day or language at the beginning of a text; 0 if there is none.
fn listed(text: &[char]) -> usize {
    let begins = |word: &&&str| {
        word.chars()
            .enumerate()
            .all(|(place, letter)| text.get(place) == Some(&letter))
    };
    let length = |word: &&str| word.chars().count();
    let is_language = |word: &&&str| text.get(length(word)).is_some_and(|&end| is_of_language(end)) && begins(word);
    // Checked first, because few letters are followed by one of these, and the lists are long.
    let near = &text[1..text.len().min(1 + LANGUAGE_CHARS_MAX)];
    if near.iter().any(|&character| is_of_language(character))
        && let Some(language) = LANGUAGES.iter().find(is_language)
    {
        return length(language) + 1;
    }
    match near {
        ['午' | '晨' | '上' | '晚' | '间', ..] => TIMES_OF_DAY.iter().find(begins).map_or(0, length),
        _ => 0,
    }
}

const fn is_of_language(character: char) -> bool {
    matches!(character, '文' | '语')
}

const fn is_counted(unit: char) -> bool {
    matches!(
        unit,
        '年' | '月' | '日' | '号' | '次' | '届' | '期' | '集' | '季' | '章' | '卷' | '辑' | '版'
    )
}
