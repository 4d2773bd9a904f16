//! The compiled engine: the steps of `consumer/fingerprint` from a text to its fingerprint, sketch and index keys.
//!
//! ```text
//! text ──▶ normalise ──▶ forms ──▶ words ──▶ features ──▶ summing ──▶ fingerprint
//!                             ├──▶ sketch ──▶ sketch, one-bit minima, band keys
//!                             ├──▶ known ──▶ known shingles, the smallest ones
//!                             ├──▶ parts ──▶ anchors, sample
//!                             └──▶ facts
//! ```
//!
//! The Python engine is the reference: both give the same bytes.

pub mod counting;
pub mod engine;
pub mod equality;
pub mod evidence;
pub mod facts;
pub mod forms;
pub mod hashes;
pub mod known;
pub mod letters;
pub mod lexicon;
pub mod normalise;
pub mod parts;
mod python;
pub mod scheme;
pub mod simplified;
pub mod sketch;
pub mod summing;
pub mod unicode;
pub mod words;
