//! A value for every code point.

use std::collections::HashMap;
use std::hash::Hash;

const CODE_POINTS: usize = 0x11_0000;
const BLOCK: usize = 256;
const BLOCKS: usize = CODE_POINTS / BLOCK;

/// A value for every code point, found with two reads.
///
/// Code points are in blocks of 256, and equal blocks are stored once, so that the values of all
/// ideographs fit into the first cache of a processor.
pub(crate) struct CodePoints<T> {
    numbers: Box<[u16; BLOCKS]>,
    blocks: Vec<[T; BLOCK]>,
}

impl<T: Copy + Eq + Hash> CodePoints<T> {
    /// Give every code point this value.
    pub(crate) fn new(value: T) -> Self {
        Self {
            numbers: Box::new([0; BLOCKS]),
            blocks: vec![[value; BLOCK]],
        }
    }

    /// The value of a character.
    #[inline]
    pub(crate) fn get(&self, character: char) -> T {
        let code = character as usize;
        self.blocks[usize::from(self.numbers[code / BLOCK])][code % BLOCK]
    }

    /// Give a character another value. Block 0 is that of all code points without their own block.
    pub(crate) fn set(&mut self, character: char, value: T) {
        let code = character as usize;
        let number = &mut self.numbers[code / BLOCK];
        if *number == 0 {
            *number = u16::try_from(self.blocks.len()).expect("there are fewer than 65,536 blocks");
            self.blocks.push(self.blocks[0]);
        }
        self.blocks[usize::from(*number)][code % BLOCK] = value;
    }

    /// Store equal blocks once. Call this when all values are set.
    pub(crate) fn shared(self) -> Self {
        let mut kept: HashMap<[T; BLOCK], u16> = HashMap::new();
        let mut blocks = Vec::new();
        let renumbered: Vec<u16> = self
            .blocks
            .into_iter()
            .map(|block| {
                *kept.entry(block).or_insert_with(|| {
                    blocks.push(block);
                    u16::try_from(blocks.len() - 1).expect("there are fewer than 65,536 blocks")
                })
            })
            .collect();
        let mut numbers = self.numbers;
        for number in numbers.iter_mut() {
            *number = renumbered[usize::from(*number)];
        }
        Self { numbers, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_point_keeps_its_value() {
        let mut table = CodePoints::new(0_u32);
        let others = || ('\0'..=char::MAX).filter(|&c| u32::from(c) % 1000 < 300);
        others().for_each(|c| table.set(c, u32::from(c) % 7));
        let table = table.shared();
        for c in '\0'..=char::MAX {
            let expected = if u32::from(c) % 1000 < 300 { u32::from(c) % 7 } else { 0 };
            assert_eq!(table.get(c), expected);
        }
    }

    #[test]
    fn equal_blocks_are_kept_once() {
        let mut table = CodePoints::new(false);
        ('\u{4e00}'..='\u{9fff}').for_each(|c| table.set(c, true));
        assert_eq!(table.shared().blocks.len(), 2);
    }
}
