//! The choice of anchors among a text's stretches.

use std::cmp::Reverse;

use super::reaches::Reaches;
use super::stretches::{NONE, Stretches};

pub(super) const POSTED: usize = 16;
/// How many stretches on either side a candidate is smaller than.
pub(super) const NEIGHBOURS: usize = 8;
/// More than a candidate with all its neighbours, and a power of 2.
const REMEMBERED: usize = 32;

#[derive(Debug)]
pub(super) struct Anchors {
    stretches: Stretches,
    /// The hashes of the last stretches, by their place modulo 32.
    recent: [u64; REMEMBERED],
    /// How many stretches there are so far.
    count: usize,
    /// The place after the last stretch that fits.
    end: usize,
    reaches: Reaches,
}

impl Default for Anchors {
    fn default() -> Self {
        Self {
            stretches: Stretches::default(),
            recent: [NONE; REMEMBERED],
            count: 0,
            end: 0,
            reaches: Reaches::default(),
        }
    }
}

impl Anchors {
    #[inline]
    pub(super) fn push(&mut self, character: char, is_cjk: bool) {
        if let Some(hash) = self.stretches.push(character, is_cjk) {
            self.add(hash);
        }
    }

    pub(super) fn packed(mut self) -> Vec<u8> {
        let last: Vec<u64> = self.stretches.last().collect();
        for hash in last.into_iter().chain([NONE; NEIGHBOURS]) {
            self.add(hash);
        }
        let mut ranked = self.reaches.all(self.end);
        ranked.sort_unstable_by_key(|&(reach, hash)| (Reverse(reach), hash));
        let mut chosen: Vec<u64> = Vec::with_capacity(POSTED);
        for (_, hash) in ranked {
            if chosen.len() == POSTED {
                break;
            }
            // One that a text has again and again is one anchor.
            if !chosen.contains(&hash) {
                chosen.push(hash);
            }
        }
        chosen.into_iter().flat_map(u64::to_be_bytes).collect()
    }

    /// Adds the next stretch, with which the one that now has all its neighbours is decided on.
    #[inline]
    fn add(&mut self, hash: u64) {
        let place = self.count;
        self.recent[place % REMEMBERED] = hash;
        self.count += 1;
        if hash != NONE {
            self.end = self.count;
        }
        if let Some(middle) = place.checked_sub(NEIGHBOURS)
            && self.is_candidate(middle)
        {
            self.reaches.push(middle, self.recent[middle % REMEMBERED]);
        }
    }

    /// Whether a stretch is the smallest among its neighbours; of equal ones the first is.
    #[inline]
    fn is_candidate(&self, place: usize) -> bool {
        // Before the text there is what `recent` had at first: no stretch.
        let near = |other: usize| self.recent[other % REMEMBERED];
        let hash = near(place);
        (1..=NEIGHBOURS).all(|by| hash < near(place.wrapping_sub(by)) && hash <= near(place + by))
    }
}
