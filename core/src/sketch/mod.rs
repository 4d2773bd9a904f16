//! Sketches: one-permutation `MinHash` over character shingles.
//!
//! Sources: Li, Owen, Zhang, "One Permutation Hashing" (NIPS 2012); Shrivastava, "Optimal Densification for Fast and
//! Accurate Minwise Hashing" (ICML 2017); Li, König, "b-Bit Minwise Hashing" (WWW 2010).
//!
//! The top 8 bits of a shingle's hash select a bin, which keeps the minimum of the other 56 bits. Before any use, an empty
//! bin takes the minimum of another bin. The uses, by bin:
//!
//! ```text
//! bins 0 .. bands × band_minima − 1     lane-1 keys: consecutive minima fold into one band each
//! the next 64 bins                        bit 8 of each minimum: the one-bit minima a posting carries
//! all bins                                bits 0-7 of each minimum: the stored sketch
//! ```
//!
//! A *marked* sketch has 0 for each empty bin, and 1 plus the bits from 9 on, modulo 255, for each filled bin.

mod letters;
mod minima;
mod shingles;

use crate::hashes::mix_64;
use minima::{BINS, Minima};

pub use letters::{OfLetters, TextOfLetters};
pub use shingles::{LONG, OfWords, Powers, Reader, SHORT, Shingled, Shingling, TextOfWords, declared_shingle};

const BANDS_MAX: usize = 16;
const ONE_BITS: usize = 64;
const BAND_SEED: u64 = 0xd1b5_4a32_d192_ed03;

/// The minima used for bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    bands: usize,
    band_minima: usize,
}

impl Layout {
    /// A layout of 0 to 16 bands of one or more minima; `None` for others, or if it leaves no room for one-bit minima.
    #[must_use]
    pub const fn new(bands: usize, band_minima: usize) -> Option<Self> {
        if bands > BANDS_MAX || band_minima < 1 {
            return None;
        }
        match bands.checked_mul(band_minima) {
            Some(band_bins) if band_bins <= BINS - ONE_BITS => Some(Self { bands, band_minima }),
            _ => None,
        }
    }

    /// The number of bands.
    #[must_use]
    pub const fn bands(&self) -> usize {
        self.bands
    }
}

/// The sketch of a text's shingles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// The lowest 8 bits of each minimum: 256 bytes, none if no sketch is requested.
    pub bytes: Vec<u8>,
    /// The one-bit minima, the first one in the most significant bit.
    pub one_bits: u64,
    /// The minima of each band folded into one number; its top 16 bits are a lane-1 key.
    pub bands: Vec<u64>,
    /// The number of bins with shingles, which grows with the number of different shingles.
    pub filled_bins: usize,
}

impl Sketch {
    /// The value in place of a sketch if none is requested.
    #[must_use]
    pub fn none(layout: &Layout) -> Self {
        Self {
            bytes: Vec::new(),
            one_bits: 0,
            bands: vec![0; layout.bands],
            filled_bins: 0,
        }
    }
}

/// Sketches a text while another reader reads along. A text without a shingle has minima of 0.
#[must_use]
pub fn sketch<T: Shingled>(text: &T, layout: &Layout, along: &mut impl Reader) -> Sketch {
    let mut minima = Minima::new();
    text.read(&mut (&mut minima, along));
    let filled_bins = minima.filled();
    let marked = T::MARKED.then(|| minima.marked());
    let minima = minima.densified();
    let low_bytes = || minima.iter().map(|minimum| minimum.to_le_bytes()[0]).collect();
    let band_bins = layout.bands * layout.band_minima;
    Sketch {
        bytes: marked.unwrap_or_else(low_bytes),
        one_bits: minima
            .iter()
            .skip(band_bins)
            .take(ONE_BITS)
            .fold(0, |bits, minimum| bits << 1 | (minimum >> 8 & 1)),
        bands: minima
            .chunks(layout.band_minima)
            .take(layout.bands)
            .map(folded)
            .collect(),
        filled_bins,
    }
}

fn folded(band: &[u64]) -> u64 {
    band.iter()
        .fold(BAND_SEED, |folded, &minimum| mix_64(folded.wrapping_add(minimum)))
}

#[cfg(test)]
mod tests;
