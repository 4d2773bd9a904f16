//! Jenkins' lookup3, the function `hashlittle2`.
//!
//! Source: Bob Jenkins, lookup3.c (May 2006, public domain), burtleburtle.net/bob/c/lookup3.c.

const INITIAL: u32 = 0xdead_beef;
const WORD_BYTES: usize = 4;
const BLOCK_BYTES: usize = 3 * WORD_BYTES;
/// The rotations of the mixing steps; a, b and c take turns.
const MIX_ROTATIONS: [u32; 6] = [4, 6, 8, 16, 19, 4];
const FINAL_ROTATIONS: [u32; 7] = [14, 11, 25, 16, 4, 14, 24];

/// Hashes bytes to two numbers, the primary first; the other arguments are the initial values.
#[must_use]
pub fn hashlittle2(bytes: &[u8], primary: u32, secondary: u32) -> (u32, u32) {
    #[allow(clippy::cast_possible_truncation)] // the length counts modulo 2³²
    let start = INITIAL.wrapping_add(bytes.len() as u32).wrapping_add(primary);
    let mut state = [start, start, start.wrapping_add(secondary)];
    // The last block, full or not, is mixed differently from those before it.
    let mut blocks = bytes.chunks(BLOCK_BYTES);
    if let Some(last) = blocks.next_back() {
        for block in blocks {
            add(&mut state, block);
            mix(&mut state);
        }
        add(&mut state, last);
        finish(&mut state);
    }
    (state[2], state[1])
}

/// Adds a block; missing bytes count as zeros.
fn add(state: &mut [u32; 3], block: &[u8]) {
    for (sum, bytes) in state.iter_mut().zip(block.chunks(WORD_BYTES)) {
        let mut word = [0; WORD_BYTES];
        word[..bytes.len()].copy_from_slice(bytes);
        *sum = sum.wrapping_add(u32::from_le_bytes(word));
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for rotation in MIX_ROTATIONS {
        a = a.wrapping_sub(c) ^ c.rotate_left(rotation);
        c = c.wrapping_add(b);
        (a, b, c) = (b, c, a);
    }
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for rotation in FINAL_ROTATIONS {
        c = (c ^ b).wrapping_sub(b.rotate_left(rotation));
        (a, b, c) = (b, c, a);
    }
    // After seven steps the three are rotated by one place.
    *state = [c, a, b];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_driver_that_comes_with_it() {
        let text = b"Four score and seven years ago";
        for (primary, secondary, hashed) in [
            (0, 0, (0x1777_0551, 0xce72_26e6)),
            (0, 1, (0xe360_7cae, 0xbd37_1de4)),
            (1, 0, (0xcd62_8161, 0x6cbe_a4b3)),
        ] {
            assert_eq!(hashlittle2(text, primary, secondary), hashed);
        }
        assert_eq!(hashlittle2(b"", 0, 0), (INITIAL, INITIAL));
        assert_eq!(hashlittle2(b"", 0, INITIAL), (0xbd5b_7dde, INITIAL));
        assert_eq!(hashlittle2(b"", INITIAL, INITIAL), (0x9c09_3ccd, 0xbd5b_7dde));
    }
}
