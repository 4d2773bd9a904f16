//! Finds texts that share a long passage: anchors find them, and samples of shingles measure how much is shared.
//!
//! Sources: Schleimer, Wilkerson, Aiken, "Winnowing: Local Algorithms for Document Fingerprinting" (SIGMOD 2003); Broder,
//! "On the Resemblance and Containment of Documents" (SEQUENCES 1997). `consumer/fingerprint/parts.py` explains
//! the choice.

mod anchors;
mod reaches;
mod sample;
mod stretches;

use crate::sketch::{Reader, Shingling};
use anchors::Anchors;
use sample::Sample;

/// The anchors and the sample of a text; both are empty for a text without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// At most 16 hashes of stretches, 8 bytes each and big-endian; the 8 to look up come first.
    pub anchors: Vec<u8>,
    /// At most 1,024 hashes of shingles, 4 bytes each and big-endian, ascending.
    pub sample: Vec<u8>,
}

/// A reader that finds the parts of a text.
#[derive(Debug)]
pub struct Finder<S> {
    anchors: Anchors<S>,
    sample: Sample,
}

impl<S: Shingling> Finder<S> {
    /// A finder that has read nothing yet, for stretches with these hashes.
    #[must_use]
    pub fn new(shingling: S) -> Self {
        Self {
            anchors: Anchors::new(shingling),
            sample: Sample::default(),
        }
    }

    /// The parts, once the text is read.
    #[must_use]
    pub fn parts(self) -> Parts {
        Parts {
            anchors: self.anchors.packed(),
            sample: self.sample.packed(),
        }
    }
}

impl<S: Shingling> Reader for Finder<S> {
    #[inline]
    fn character(&mut self, character: char, is_cjk: bool) {
        self.anchors.push(character, is_cjk);
    }

    #[inline]
    fn shingle(&mut self, hash: u64) {
        self.sample.add(hash);
    }
}

#[cfg(test)]
mod tests;
