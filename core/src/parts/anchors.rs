//! The choice of anchors among a text's stretches.

use std::cmp::Reverse;

use super::reaches::Reaches;
use super::stretches::{NONE, Stretches};
use crate::sketch::Shingling;

pub(super) const POSTED: usize = 16;
const LOOKED_UP: usize = 8;
/// A text has one anchor per this many stretches, but at least those that are looked up.
const SPACING: usize = 62;
/// The stretches on either side that a candidate is compared with.
pub(super) const NEIGHBOURS: usize = 8;
/// Of this many stretches in a row only the smallest can be a candidate.
const BLOCK: usize = NEIGHBOURS + 1;
/// The stretches from the start of a block that are needed to decide on it.
const BLOCK_AND_NEIGHBOURS: usize = BLOCK + NEIGHBOURS;
/// More than a block with all neighbours, and a power of 2.
const REMEMBERED: usize = 32;

/// The limit on the anchors of a text with this many stretches.
pub(super) fn count_max(stretches: usize) -> usize {
    stretches.div_ceil(SPACING).clamp(LOOKED_UP, POSTED)
}

#[derive(Debug)]
pub(super) struct Anchors<S> {
    stretches: Stretches<S>,
    /// The hashes of the last stretches, by their place modulo 32.
    recent: [u64; REMEMBERED],
    /// The number of stretches so far.
    count: usize,
    /// The first stretch of the next block to decide on.
    block: usize,
    /// The place after the last stretch that fits.
    end: usize,
    reaches: Reaches,
}

impl<S: Shingling> Anchors<S> {
    pub(super) fn new(shingling: S) -> Self {
        Self {
            stretches: Stretches::new(shingling),
            recent: [NONE; REMEMBERED],
            count: 0,
            block: 0,
            end: 0,
            reaches: Reaches::default(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, character: char, is_cjk: bool) {
        if let Some(hash) = self.stretches.push(character, is_cjk) {
            self.add(hash);
        }
    }

    pub(super) fn packed(mut self) -> Vec<u8> {
        let last: Vec<u64> = self.stretches.last().collect();
        for hash in last.into_iter().chain([NONE; BLOCK_AND_NEIGHBOURS]) {
            self.add(hash);
        }
        let mut ranked = self.reaches.all(self.end);
        ranked.sort_unstable_by_key(|&(reach, hash)| (Reverse(reach), hash));
        let count_max = count_max(self.end);
        let mut chosen: Vec<u64> = Vec::with_capacity(count_max);
        for (_, hash) in ranked {
            if chosen.len() == count_max {
                break;
            }
            // A repeated hash is one anchor.
            if !chosen.contains(&hash) {
                chosen.push(hash);
            }
        }
        chosen.into_iter().flat_map(u64::to_be_bytes).collect()
    }

    /// Adds the next stretch, with which the next block may have all its neighbours.
    #[inline]
    fn add(&mut self, hash: u64) {
        self.recent[self.count % REMEMBERED] = hash;
        self.count += 1;
        if hash != NONE {
            self.end = self.count;
        }
        if self.count == self.block + BLOCK_AND_NEIGHBOURS {
            self.decide();
            self.block += BLOCK;
        }
    }

    /// Finds the candidate of a block, if it has one: of equal stretches the first is the smallest.
    fn decide(&mut self) {
        // Before the text, `recent` still has its initial value: no stretch.
        let near = |place: usize| self.recent[place % REMEMBERED];
        let mut place = self.block;
        let mut hash = near(place);
        for other in self.block + 1..self.block + BLOCK {
            let value = near(other);
            if value < hash {
                (place, hash) = (other, value);
            }
        }
        if (1..=NEIGHBOURS).all(|by| hash < near(place.wrapping_sub(by)) && hash <= near(place + by)) {
            self.reaches.push(place, hash);
        }
    }
}
