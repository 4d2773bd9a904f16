//! `SimHash`: adds up weighted hashes bit by bit; the signs of the sums are the fingerprint.
//!
//! Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002); Manku, Jain, Das Sarma,
//! "Detecting Near-Duplicates for Web Crawling" (WWW 2007).
//!
//! Weights are rounded to multiples of 2⁻²⁰ and added as whole numbers of these, so their order does not matter.

use std::error::Error;
use std::fmt;

/// A weight of 1 in the units that are added.
const ONE: f64 = 1_048_576.0;
/// The limit below which the weights of a text must add up, in units: 2³² as a weight.
const SUM_MAX: u64 = 1 << 52;
const BYTES: usize = 8;

/// The error for weights of a text that add up to 2³² or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightsTooLarge;

impl fmt::Display for WeightsTooLarge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the weights of a text add up to 2**32 or more, which cannot be summed exactly")
    }
}

impl Error for WeightsTooLarge {}

/// Reduces hashes of 64 or 128 bits with their weights to a fingerprint, the most significant 64 bits first.
///
/// Hashes and fingerprints of 64 bits are the first number alone. Weights are finite and may be negative. A bit is 1
/// where its sum (+ the weight where a hash has a 1, − the weight where it has a 0) is above 0, with `tie` also where
/// it is 0.
///
/// # Errors
///
/// [`WeightsTooLarge`] if the weights without their signs add up to 2³² or more.
pub fn fingerprint(
    keywords: impl Iterator<Item = ([u64; 2], f64)>,
    bits: usize,
    tie: bool,
) -> Result<[u64; 2], WeightsTooLarge> {
    if bits <= 64 {
        let [first] = reduce(keywords.map(|([first, _], weight)| ([first], weight)), tie)?;
        Ok([first, 0])
    } else {
        reduce(keywords, tie)
    }
}

fn reduce<const WORDS: usize>(
    keywords: impl Iterator<Item = ([u64; WORDS], f64)>,
    tie: bool,
) -> Result<[u64; WORDS], WeightsTooLarge> {
    let mut sums = [const { ByteSums::new() }; WORDS];
    let mut total = 0_i64;
    let mut magnitude = 0_u64;
    for (hash, weight) in keywords {
        // A weight that is too large becomes the largest number, which the check below rejects.
        #[allow(clippy::cast_possible_truncation)]
        let units = (weight * ONE).round_ties_even() as i64;
        magnitude = magnitude.saturating_add(units.unsigned_abs());
        total = total.wrapping_add(units);
        for (sums, word) in sums.iter_mut().zip(hash) {
            sums.add(word, units);
        }
    }
    if magnitude >= SUM_MAX {
        return Err(WeightsTooLarge);
    }
    Ok(std::array::from_fn(|word| sums[word].signs(total, tie)))
}

/// The sum of the weights, in units, for every value of each of the eight bytes of a hash.
///
/// This takes eight additions for each keyword, and at the end a few thousand that the processor does several at a
/// time, in place of 64 additions for each keyword.
struct ByteSums([[i64; 256]; BYTES]);

impl ByteSums {
    const fn new() -> Self {
        Self([[0; 256]; BYTES])
    }

    fn add(&mut self, word: u64, units: i64) {
        for (sums, byte) in self.0.iter_mut().zip(word.to_be_bytes()) {
            let sum = &mut sums[usize::from(byte)];
            *sum = sum.wrapping_add(units);
        }
    }

    /// The bits with a positive sum, given the `total` of all weights in units. This destroys the sums.
    fn signs(&mut self, total: i64, tie: bool) -> u64 {
        let mut code = 0;
        for sums in &mut self.0 {
            let mut rest = sums.as_mut_slice();
            // The upper half has the bytes whose first bit is 1. Added to the lower half, the first bit no longer counts.
            while rest.len() > 1 {
                let (lower, upper) = rest.split_at_mut(rest.len() / 2);
                let ones: i64 = upper.iter().sum();
                for (sum, more) in lower.iter_mut().zip(upper) {
                    *sum += *more;
                }
                // The sum with signs is (weights of ones) − (weights of zeros) = 2 × (weights of ones) − total.
                let is_one = 2 * ones > total || (tie && 2 * ones == total);
                code = code << 1 | u64::from(is_one);
                rest = lower;
            }
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashes::fnv1a_64;

    fn of_words(words: &[(&str, f64)]) -> u64 {
        let keywords = words
            .iter()
            .map(|&(word, weight)| ([fnv1a_64(word.as_bytes()), 0], weight));
        fingerprint(keywords, 64, false).expect("small weights")[0]
    }

    /// The fingerprint of hashes of a few bits, which are the first of 64 bits; the others are 0.
    fn of_bits(features: &[(&str, f64)]) -> u64 {
        let bits = features[0].0.len();
        let keywords = features.iter().map(|&(hash, weight)| {
            (
                [u64::from_str_radix(hash, 2).expect("binary") << (64 - bits), 0],
                weight,
            )
        });
        fingerprint(keywords, 64, false).expect("small weights")[0] >> (64 - bits)
    }

    #[test]
    fn published_examples_hold() {
        assert_eq!(of_bits(&[("100101", 4.0), ("101011", 5.0)]), 0b10_1011);
        let five = [
            ("100101", 5.0),
            ("101011", 2.0),
            ("100111", 3.0),
            ("101111", 1.0),
            ("111011", 4.0),
        ];
        assert_eq!(of_bits(&five), 0b10_0111);
        assert_eq!(of_bits(&[("01011001", 45.11), ("11001011", 32.09)]), 0b0101_1001);
        assert_eq!(of_bits(&[("10", 3.0), ("01", 2.0), ("11", 4.0)]), 0b11);
        let words = [
            ("CEO", 11.7392),
            ("蓝翔", 11.7392),
            ("白富美", 11.7392),
            ("升职", 10.8562),
            ("加薪", 10.6426),
        ];
        assert_eq!(of_words(&words), 0x0ccd_10d8_88c4_92e7);
        assert_eq!(of_words(&[("上海", 45.11), ("北京", 32.09)]), 0x4ef4_ef9e_e82a_f0c5);
    }

    #[test]
    fn ties_and_nothing_are_as_the_scheme_says() {
        let tied = || [([u64::MAX, 0], 1.5), ([0, u64::MAX], 1.5)].into_iter();
        for bits in [64, 128] {
            assert_eq!(fingerprint(tied(), bits, false), Ok([0, 0]));
            assert_eq!(fingerprint([].into_iter(), bits, false), Ok([0, 0]));
        }
        assert_eq!(fingerprint(tied(), 64, true), Ok([u64::MAX, 0]));
        assert_eq!(fingerprint(tied(), 128, true), Ok([u64::MAX, u64::MAX]));
        assert_eq!(fingerprint([].into_iter(), 64, true), Ok([u64::MAX, 0]));
    }

    #[test]
    fn halves_of_a_unit_are_rounded_to_even() {
        // 1.5 and 2.5 units are 2 each, 0.5 units none.
        let unit = 1.0 / ONE;
        let keywords = |one: f64, other: f64| [([u64::MAX, 0], one * unit), ([0, 0], other * unit)].into_iter();
        assert_eq!(fingerprint(keywords(2.5, 1.5), 64, false), Ok([0, 0]));
        assert_eq!(fingerprint(keywords(2.500_01, 1.5), 64, false), Ok([u64::MAX, 0]));
        assert_eq!(fingerprint(keywords(0.5, 0.0), 64, false), Ok([0, 0]));
        assert_eq!(fingerprint(keywords(-0.5, 0.0), 64, true), Ok([u64::MAX, 0]));
    }

    #[test]
    fn weights_that_add_up_to_too_much_are_refused() {
        let most = 4_294_967_296.0;
        for weights in [
            &[most][..],
            &[most / 2.0; 2],
            &[-most / 2.0, most / 2.0],
            &[1e300; 9],
            &[f64::MAX, f64::MIN],
        ] {
            let keywords = weights.iter().map(|&weight| ([1, 0], weight));
            assert_eq!(fingerprint(keywords, 64, false), Err(WeightsTooLarge), "{weights:?}");
        }
        let keywords = [([1, 0], most - 1.0 / ONE)].into_iter();
        assert_eq!(fingerprint(keywords, 64, false), Ok([1, 0]));
    }
}
