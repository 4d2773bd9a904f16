//! The runs of characters that jieba distinguishes by regular expressions.

use std::ops::Range;

/// The number of characters at the start of a non-empty text that agree in this property.
#[inline]
pub(super) fn run_length(text: &[char], is_alike: impl Fn(char) -> bool) -> usize {
    text.iter().take_while(|&&letter| is_alike(letter)).count()
}

/// Report the parts of a run without ideographs: matches of `([a-zA-Z0-9]+(?:\.\d+)?%?)`, and the text between them.
pub(super) fn split_ascii(run: &[char], mut found: impl FnMut(Range<usize>)) {
    let mut start = 0;
    while start < run.len() {
        let end = start + part_length(&run[start..]);
        found(start..end);
        start = end;
    }
}

/// The length of the part with which a run begins; 0 for an empty one only.
fn part_length(run: &[char]) -> usize {
    let word = run_length(run, |letter| letter.is_ascii_alphanumeric());
    if word == 0 {
        return run_length(run, |letter| !letter.is_ascii_alphanumeric());
    }
    let decimals = match &run[word..] {
        ['.', rest @ ..] => run_length(rest, |letter| letter.is_ascii_digit()),
        _ => 0,
    };
    let number = if decimals > 0 { word + 1 + decimals } else { word };
    if run.get(number) == Some(&'%') {
        number + 1
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_split_as_by_the_expression() {
        for (run, parts) in [
            ("1997.8.12", &["1997.8", ".", "12"][..]),
            ("50%-60.5%%", &["50%", "-", "60.5%", "%"]),
            ("a.b", &["a", ".", "b"]),
            ("--x_", &["--", "x", "_"]),
            (".5.", &[".", "5", "."]),
            ("5.%", &["5", ".%"]),
            ("", &[]),
        ] {
            let letters: Vec<char> = run.chars().collect();
            let mut found: Vec<String> = Vec::new();
            split_ascii(&letters, |range| found.push(letters[range].iter().collect()));
            assert_eq!(found, parts);
        }
    }
}
