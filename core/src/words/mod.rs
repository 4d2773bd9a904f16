//! Splits texts into words as jieba 0.42.1 does, in its precise mode with the hidden Markov model.
//!
//! Source: <https://github.com/fxsjy/jieba>, `jieba/__init__.py` and `jieba/finalseg/__init__.py`. All sums are of `f64`,
//! in jieba's order, so that the same cut wins among nearly equal ones.

mod cutter;
mod embedded;
mod layout;
mod model;
mod own;
mod runs;

pub use cutter::{Cutter, Scratch};
pub use embedded::{WordId, Words};
