//! Averages of inverse document frequencies, as Python computes them.

/// All values are multiples of 2⁻⁶⁰, so that their sum is exact in whole numbers.
const UNITS: f64 = 1_152_921_504_606_846_976.0;

/// The median, of an even number of values the greater one of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The sum, rounded once, by the number of values: `math.fsum(values) / len(values)`.
#[allow(clippy::cast_precision_loss)] // the one rounding that is meant, to nearest with halves to even
pub fn mean(values: &[f64]) -> f64 {
    let sum: i128 = values.iter().copied().map(units).sum();
    sum as f64 / UNITS / values.len() as f64
}

#[allow(clippy::cast_possible_truncation)] // it is a whole number, and small enough
fn units(value: f64) -> i128 {
    let scaled = value * UNITS;
    assert!(
        scaled.fract() == 0.0 && value.abs() < 1e6,
        "{value} cannot be summed exactly"
    );
    scaled as i128
}
