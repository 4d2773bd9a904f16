//! Reads the modules in which jieba keeps its model: `P=` and a literal of dictionaries, strings and numbers.

use std::collections::BTreeMap;

/// A dictionary by its keys.
pub type Table<Value> = BTreeMap<String, Value>;

/// What can be a value of a dictionary.
pub trait Value: Sized {
    /// Read one at the beginning of the rest.
    fn read(rest: &mut Rest<'_>) -> Self;
}

impl Value for f64 {
    fn read(rest: &mut Rest<'_>) -> Self {
        let digits = rest.until(&[',', '}']).trim_end();
        digits.parse().unwrap_or_else(|_| panic!("{digits:?} is not a number"))
    }
}

impl<Inner: Value> Value for Table<Inner> {
    fn read(rest: &mut Rest<'_>) -> Self {
        let mut table = Self::new();
        rest.expect('{');
        while !rest.skip('}') {
            let key = string(rest);
            rest.expect(':');
            let value = Inner::read(rest);
            assert!(table.insert(key, value).is_none(), "a key comes twice");
            // jieba has no comma after the last value.
            if !rest.skip(',') {
                rest.expect('}');
                break;
            }
        }
        table
    }
}

/// Read the dictionary that a module assigns to `P`; panics if the module does anything else.
pub fn assigned<Inner: Value>(module: &str) -> Table<Inner> {
    let (before, literal) = module.split_once("P=").expect("the module assigns to P");
    assert!(
        matches!(before.trim(), "" | "from __future__ import unicode_literals"),
        "{before:?} comes before P"
    );
    let mut rest = Rest(literal.trim_start());
    let table = Table::read(&mut rest);
    assert!(rest.0.trim().is_empty(), "{:?} comes after the literal", rest.0);
    table
}

/// Read a string of characters, each as it is or as `\uXXXX`.
fn string(rest: &mut Rest<'_>) -> String {
    rest.expect('\'');
    let written = rest.until(&['\'']);
    rest.expect('\'');
    let Some(codes) = written.strip_prefix("\\u") else {
        assert!(
            !written.contains('\\'),
            "{written:?} has an escape that is not understood"
        );
        return written.to_owned();
    };
    codes
        .split("\\u")
        .map(|code| character(code).unwrap_or_else(|| panic!("{written:?} is not understood")))
        .collect()
}

/// The character that four hexadecimal digits stand for.
fn character(code: &str) -> Option<char> {
    let digits = Some(code).filter(|digits| digits.len() == 4)?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// What is still to be read.
pub struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Read up to the first of these characters.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let (read, rest) = self.0.split_at(self.0.find(ends).expect("the literal ends too early"));
        self.0 = rest;
        read
    }

    /// Skip this character and white space after it, if it comes next.
    fn skip(&mut self, character: char) -> bool {
        let Some(rest) = self.0.strip_prefix(character) else {
            return false;
        };
        // White space in a string belongs to it, but no key of jieba begins with one.
        self.0 = rest.trim_start();
        true
    }

    /// Skip this character and white space after it; panics if another one comes next.
    fn expect(&mut self, character: char) {
        assert!(
            self.skip(character),
            "{character:?} is missing before {:?}",
            self.0.get(..20)
        );
    }
}
