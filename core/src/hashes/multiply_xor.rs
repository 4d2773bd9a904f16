//! The multiply-xor string hash with the multiplier 1000003.
//!
//! Source: `string_hash` of `CPython` up to 3.2, which several `SimHash` programs adopted; some widened it to 128 bits.

const MULTIPLIER: u128 = 1_000_003;
const FIRST_SHIFT: u32 = 7;

/// Hashes units of a string: x = first × 2⁷, then x × 1000003 xor unit, last xor the number of units; 0 for none.
///
/// The lower 64 bits are the hash of 64 bits, because no step carries downwards.
pub(super) fn hash(units: impl Iterator<Item = u32>) -> u128 {
    let mut units = units.peekable();
    let Some(&first) = units.peek() else { return 0 };
    let mut count = 0;
    let state = units.fold(u128::from(first) << FIRST_SHIFT, |state, unit| {
        count += 1;
        state.wrapping_mul(MULTIPLIER) ^ u128::from(unit)
    });
    state ^ count
}

/// The UTF-16 units of a word, as a Java program sees it; they differ from code points only beyond U+FFFF.
pub(super) fn utf16_units(word: &[char]) -> impl Iterator<Item = u32> {
    word.iter().flat_map(|character| {
        let mut pair = [0; 2];
        let units = character.encode_utf16(&mut pair).len();
        pair.into_iter().take(units).map(u32::from)
    })
}
