//! Hashes of words, as wide as the fingerprints of their schemes. `docs/use/schemes.md` says which scheme has which.

mod jenkins;
mod mix;
mod multiply_xor;
mod siphash;

use md5::Md5;
use sha1::{Digest, Sha1};

pub use jenkins::hashlittle2;
pub use mix::{fnv1a_64, mix_64};
pub use siphash::siphash_13;

/// The increment of `SplitMix64`.
pub const SPLITMIX_INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The maximum number of bytes of a character in UTF-8.
const UTF8_BYTES_MAX: usize = 4;
/// Characters that are checked together for being ASCII.
const ASCII_TOGETHER: usize = 32;

/// The number of bits of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 64 bits.
    Single,
    /// 128 bits.
    Double,
}

/// A hash of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordHash {
    /// FNV-1a of the word's UTF-8 (RFC 9923).
    Fnv1a,
    /// The multiply-xor hash of the word's code points.
    MultiplyXor(Width),
    /// The multiply-xor hash of the word's UTF-16 units.
    MultiplyXorUtf16(Width),
    /// The leading bits of the MD5 of the word's UTF-8 (RFC 1321), used for its even spread, not for security.
    Md5(Width),
    /// The leading bits of the SHA-1 of the word's UTF-8 (FIPS 180-4), used for its even spread, not for security.
    Sha1(Width),
    /// Jenkins' lookup3 of the word's UTF-8: primary × 2³² + secondary.
    Jenkins,
    /// The word's row of a matrix of random ±1, a 1 for +1: outputs of `SplitMix64` seeded with the word's FNV-1a.
    ///
    /// Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002), with entries of ±1
    /// (Achlioptas, "Database-friendly random projections", JCSS 2003).
    Hyperplanes(Width),
}

impl WordHash {
    /// The hash of the scheme with this name; `None` for an unknown scheme.
    #[must_use]
    pub fn from_scheme(name: &str) -> Option<Self> {
        Some(match name {
            "jieba-tfidf/1" | "jieba-tfidf/2" | "jieba-tfidf/3" => Self::Fnv1a,
            "multiply-xor-64/1" => Self::MultiplyXor(Width::Single),
            "multiply-xor-128/1" => Self::MultiplyXor(Width::Double),
            "multiply-xor-utf16-64/1" => Self::MultiplyXorUtf16(Width::Single),
            "multiply-xor-utf16-128/1" => Self::MultiplyXorUtf16(Width::Double),
            "md5-64/1" => Self::Md5(Width::Single),
            "md5-128/1" => Self::Md5(Width::Double),
            "sha1-64/1" => Self::Sha1(Width::Single),
            "sha1-128/1" => Self::Sha1(Width::Double),
            "jenkins-64/1" => Self::Jenkins,
            "hyperplanes-64/1" => Self::Hyperplanes(Width::Single),
            "hyperplanes-128/1" => Self::Hyperplanes(Width::Double),
            _ => return None,
        })
    }

    /// The number of bits: 64 or 128.
    #[must_use]
    pub const fn bits(&self) -> usize {
        match self.width() {
            Width::Single => 64,
            Width::Double => 128,
        }
    }

    /// Hashes a word: the most significant 64 bits first, and 0 after a hash of 64 bits. `utf8` is memory for encoding.
    #[must_use]
    pub fn hash(&self, word: &[char], utf8: &mut Vec<u8>) -> [u64; 2] {
        let wide = match self {
            Self::Fnv1a => [fnv1a_64(encode(word, utf8)), 0],
            Self::MultiplyXor(width) => lowest(multiply_xor::hash(word.iter().map(|&c| u32::from(c))), *width),
            Self::MultiplyXorUtf16(width) => lowest(multiply_xor::hash(multiply_xor::utf16_units(word)), *width),
            Self::Md5(_) => leading(&Md5::digest(encode(word, utf8))),
            Self::Sha1(_) => leading(&Sha1::digest(encode(word, utf8))),
            Self::Jenkins => [jenkins_64(encode(word, utf8)), 0],
            Self::Hyperplanes(_) => row(fnv1a_64(encode(word, utf8))),
        };
        match self.width() {
            Width::Single => [wide[0], 0],
            Width::Double => wide,
        }
    }

    const fn width(self) -> Width {
        match self {
            Self::Fnv1a | Self::Jenkins => Width::Single,
            Self::MultiplyXor(width)
            | Self::MultiplyXorUtf16(width)
            | Self::Md5(width)
            | Self::Sha1(width)
            | Self::Hyperplanes(width) => width,
        }
    }
}

/// Return a text's UTF-8, written into `utf8` in place of its content.
pub fn encode<'a>(text: &[char], utf8: &'a mut Vec<u8>) -> &'a [u8] {
    // Reserving room for all characters first takes a third of the time of appending one by one.
    let room = UTF8_BYTES_MAX * text.len();
    if utf8.len() < room {
        utf8.resize(room, 0);
    }
    let mut end = 0;
    for part in text.chunks(ASCII_TOGETHER) {
        if part.iter().fold(0, |all, &character| all | u32::from(character)) < 0x80 {
            let bytes = &mut utf8[end..end + part.len()];
            for (byte, &character) in bytes.iter_mut().zip(part) {
                [*byte, ..] = u32::from(character).to_le_bytes();
            }
            end += part.len();
        } else {
            for &character in part {
                end += put(character, &mut utf8[end..]);
            }
        }
    }
    &utf8[..end]
}

/// Write the UTF-8 of a character to the beginning of `room`, at least four bytes, and return its length.
#[inline]
fn put(character: char, room: &mut [u8]) -> usize {
    let code = u32::from(character);
    if !(0x800..0x1_0000).contains(&code) {
        return character.encode_utf8(room).len();
    }
    // Most characters that are not ASCII have three bytes. Four are written; the next character overwrites the last.
    let bytes = 0x80_80e0 | code >> 12 | (code >> 6 & 0x3f) << 8 | (code & 0x3f) << 16;
    room[..UTF8_BYTES_MAX].copy_from_slice(&bytes.to_le_bytes());
    3
}

fn jenkins_64(bytes: &[u8]) -> u64 {
    let (primary, secondary) = hashlittle2(bytes, 0, 0);
    u64::from(primary) << 32 | u64::from(secondary)
}

/// The first two outputs of `SplitMix64`.
const fn row(seed: u64) -> [u64; 2] {
    let first = seed.wrapping_add(SPLITMIX_INCREMENT);
    [mix_64(first), mix_64(first.wrapping_add(SPLITMIX_INCREMENT))]
}

/// The lowest bits of a number.
const fn lowest(number: u128, width: Width) -> [u64; 2] {
    #[allow(clippy::cast_possible_truncation)] // cut into halves
    let (high, low) = ((number >> 64) as u64, number as u64);
    match width {
        Width::Single => [low, 0],
        Width::Double => [high, low],
    }
}

/// The leading 128 bits of a digest of at least that length.
fn leading(digest: &[u8]) -> [u64; 2] {
    let mut words = digest
        .chunks_exact(8)
        .map(|word| word.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)));
    [words.next().unwrap_or(0), words.next().unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(scheme: &str, word: &str) -> [u64; 2] {
        let word: Vec<char> = word.chars().collect();
        WordHash::from_scheme(scheme)
            .expect("the scheme exists")
            .hash(&word, &mut b"of the word before".to_vec())
    }

    #[test]
    fn schemes_have_the_published_hashes() {
        for (scheme, word, hash) in [
            ("jieba-tfidf/1", "区块链", [0xf675_51a3_3d02_54b1, 0]),
            ("jieba-tfidf/2", "共识", [0xb10a_771c_80d0_91b7, 0]),
            ("md5-64/1", "abc", [0x9001_5098_3cd2_4fb0, 0]),
            ("md5-128/1", "abc", [0x9001_5098_3cd2_4fb0, 0xd696_3f7d_28e1_7f72]),
            ("sha1-64/1", "abc", [0xa999_3e36_4706_816a, 0]),
            ("sha1-128/1", "abc", [0xa999_3e36_4706_816a, 0xba3e_2571_7850_c26c]),
            ("multiply-xor-64/1", "", [0, 0]),
            ("multiply-xor-128/1", "", [0, 0]),
            ("jenkins-64/1", "", [0xdead_beef_dead_beef, 0]),
            (
                "hyperplanes-64/1",
                "",
                [mix_64(fnv1a_64(b"").wrapping_add(SPLITMIX_INCREMENT)), 0],
            ),
        ] {
            assert_eq!(hashed(scheme, word), hash, "{scheme} {word}");
        }
        assert_eq!(WordHash::from_scheme("jieba-tfidf/4"), None);
    }

    #[test]
    fn characters_are_encoded_as_by_the_standard_library() {
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        let mut utf8 = Vec::new();
        for text in [
            &all[..],
            &all[..200],
            &all[100..131],
            &all[..33],
            &all[0x7ff..0x801],
            &[],
        ] {
            let expected: String = text.iter().collect();
            assert_eq!(encode(text, &mut utf8), expected.as_bytes());
        }
    }

    #[test]
    fn narrow_hashes_are_halves_of_wide_ones() {
        for word in ["51区", "外星人", "𠮷野家"] {
            for name in ["md5", "sha1", "hyperplanes"] {
                assert_eq!(
                    hashed(&format!("{name}-64/1"), word)[0],
                    hashed(&format!("{name}-128/1"), word)[0]
                );
            }
            for name in ["multiply-xor", "multiply-xor-utf16"] {
                assert_eq!(
                    hashed(&format!("{name}-64/1"), word)[0],
                    hashed(&format!("{name}-128/1"), word)[1]
                );
            }
        }
    }

    #[test]
    fn units_differ_from_code_points_beyond_the_first_plane_only() {
        for (word, alike) in [("51区", true), ("\u{ffff}", true), ("\u{10000}", false)] {
            assert_eq!(
                hashed("multiply-xor-64/1", word) == hashed("multiply-xor-utf16-64/1", word),
                alike
            );
        }
    }
}
