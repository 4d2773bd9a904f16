//! FNV-1a for words, and the finalizer of `SplitMix64`, which mixes short inputs.

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Hashes bytes with FNV-1a to 64 bits.
///
/// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (RFC 9923).
#[must_use]
pub fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_OFFSET, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

/// Mixes a value so that each of its bits flips about half of the result's; a bijection.
///
/// Source: the finalizer of `SplitMix64` (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014) with the constants of Stafford's mix 13.
#[inline]
#[must_use]
pub const fn mix_64(value: u64) -> u64 {
    let first = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_has_the_published_values() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
            ("上海", 0x4ef4_ef9e_e82a_f0c5),
            ("北京", 0x9aa1_e75c_f025_7d61),
        ] {
            assert_eq!(fnv1a_64(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn mixed_multiples_of_the_increment_are_what_splitmix_gives_first() {
        let increment = 0x9e37_79b9_7f4a_7c15_u64;
        let first = [1, 2, 3].map(|step: u64| mix_64(increment.wrapping_mul(step)));
        assert_eq!(
            first,
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]
        );
    }
}
