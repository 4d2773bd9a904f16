//! The hidden Markov model that splits ideographs that are not words of the dictionary: `finalseg/__init__.py`.

use std::ops::Range;

use super::layout::HAN;

/// The states in alphabetical order: begin, end and middle of a word, and a single character.
const B: usize = 0;
const E: usize = 1;
const M: usize = 2;
const S: usize = 3;
/// By state: the two states that can come before it, in alphabetical order.
const BEFORE: [[usize; 2]; 4] = [[E, S], [B, M], [B, M], [E, S]];
/// Logarithms of the model's probabilities.
pub(super) struct Model {
    /// Of each state at the beginning.
    pub(super) start: [f64; 4],
    /// Of each state after each state.
    pub(super) transitions: [[f64; 4]; 4],
    /// Of each character of [`HAN`] in each state, an f64.
    pub(super) emissions: &'static [[[u8; 8]; 4]],
}

impl Model {
    /// Report the words of a run of characters of [`HAN`], as places in the run.
    ///
    /// The Viterbi algorithm. Of two equally likely paths the one through the later letter wins, as the greater of
    /// Python's tuples. `steps` is reusable memory.
    pub(super) fn split(&self, run: &[char], steps: &mut Vec<u8>, found: impl FnMut(Range<usize>)) {
        let Some((&first, others)) = run.split_first() else {
            return;
        };
        steps.clear();
        // Nothing comes before the first character.
        steps.push(0);
        let emitted = self.emitted(first);
        let mut weights: [f64; 4] = std::array::from_fn(|state| self.start[state] + emitted[state]);
        for &letter in others {
            let (next, step) = self.step(&weights, &self.emitted(letter));
            weights = next;
            steps.push(step);
        }
        states_of(steps, if weights[S] >= weights[E] { S } else { E });
        report(steps, found);
    }

    /// The weights of all states at the next character, and for each state a bit that chooses from [`BEFORE`].
    fn step(&self, weights: &[f64; 4], emitted: &[f64; 4]) -> ([f64; 4], u8) {
        let mut step = 0;
        let next = std::array::from_fn(|state| {
            let [earlier, later] =
                BEFORE[state].map(|before| weights[before] + self.transitions[before][state] + emitted[state]);
            step |= u8::from(later >= earlier) << state;
            if later >= earlier { later } else { earlier }
        });
        (next, step)
    }

    fn emitted(&self, letter: char) -> [f64; 4] {
        self.emissions[letter as usize - *HAN.start() as usize].map(f64::from_le_bytes)
    }
}

/// Replace the steps by the states on the path that ends in this state.
fn states_of(steps: &mut [u8], last: usize) {
    let mut state = last;
    for step in steps.iter_mut().rev() {
        let later = usize::from(*step >> state & 1);
        #[allow(clippy::cast_possible_truncation)] // there are four
        {
            *step = state as u8;
        }
        state = BEFORE[state][later];
    }
}

/// Report the words by their states: each word ends with E, or is S. The last state is one of these.
fn report(states: &[u8], mut found: impl FnMut(Range<usize>)) {
    let mut begin = 0;
    for (place, &state) in states.iter().enumerate() {
        match usize::from(state) {
            B => begin = place,
            E => found(begin..place + 1),
            S => found(place..place + 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::words::Words;

    fn split(text: &str) -> Vec<String> {
        let run: Vec<char> = text.chars().collect();
        let mut words = Vec::new();
        Words::embedded()
            .model
            .split(&run, &mut Vec::new(), |range| words.push(run[range].iter().collect()));
        words
    }

    #[test]
    fn words_that_no_dictionary_has_are_found() {
        assert_eq!(
            split("他来到了网易杭研大厦"),
            ["他来", "到", "了", "网易", "杭", "研大厦"]
        );
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split("好"), ["好"]);
    }

    #[test]
    fn of_equally_likely_ways_the_later_letter_wins() {
        // The model knows neither character, and unknown ones outweigh everything else.
        assert_eq!(split("\u{9fd5}\u{9fd4}"), ["\u{9fd5}", "\u{9fd4}"]);
    }
}
