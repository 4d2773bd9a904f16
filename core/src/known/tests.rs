//! Known shingles and the smallest ones against sets of the standard library.

use std::collections::BTreeSet;

use super::filter::GROUPS;
use super::*;
use crate::hashes::mix_64;

fn packed(hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    hashes.into_iter().flat_map(u64::to_be_bytes).collect()
}

fn hashes(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(mix_64)
}

fn smallest<const COUNT_MAX: usize>(hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut smallest = Smallest::<COUNT_MAX>::default();
    hashes.into_iter().for_each(|hash| smallest.shingle(hash));
    smallest.packed()
}

#[test]
fn the_smallest_are_those_of_an_ordered_set() {
    for count in [0, 1, 2, 3, 5, 6, 7, 40, 1_000] {
        let all: Vec<u64> = hashes(count).flat_map(|hash| [hash, hash % 1_000, hash]).collect();
        let ordered: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(smallest::<3>(all), packed(ordered.into_iter().take(3)), "{count}");
    }
}

#[test]
fn the_order_and_repetitions_do_not_matter() {
    let expected = packed(0..4);
    assert_eq!(smallest::<4>(0..50), expected);
    assert_eq!(smallest::<4>((0..50).rev()), expected);
    assert_eq!(smallest::<4>((0..50).rev().flat_map(|hash| [hash; 9])), expected);
    assert_eq!(smallest::<4>([7; 100]), packed([7]));
    assert_eq!(smallest::<2>([u64::MAX; 9]), packed([u64::MAX]));
    assert_eq!(smallest::<2>([u64::MAX, 0, u64::MAX, 0, 0]), packed([0, u64::MAX]));
}

#[test]
fn a_set_has_its_hashes_and_no_others() {
    for count in [0, 1, 2, 3, 63, 64, 65, 4_000] {
        let known = KnownShingles::new(hashes(count).chain(hashes(count / 2)).collect());
        assert_eq!(known.len() as u64, count);
        assert_eq!(known.is_empty(), count == 0);
        let mut hits = known.hits();
        hashes(3 * count + 9).for_each(|hash| hits.shingle(hash));
        assert_eq!(hits.packed(), packed(hashes(count).collect::<BTreeSet<_>>()));
    }
}

#[test]
fn hits_are_the_known_ones_of_a_text() {
    let known = KnownShingles::new(hashes(10_000).filter(|hash| hash % 2 == 0).collect());
    let mut hits = known.hits();
    hashes(300).chain(hashes(200)).for_each(|hash| hits.shingle(hash));
    let expected: BTreeSet<u64> = hashes(300).filter(|hash| hash % 2 == 0).collect();
    assert_eq!(hits.packed(), packed(expected));

    let mut hits = known.hits();
    hashes(10_000).for_each(|hash| hits.shingle(hash));
    let expected: BTreeSet<u64> = hashes(10_000).filter(|hash| hash % 2 == 0).collect();
    assert!(expected.len() > KNOWN_SHINGLES_MAX);
    assert_eq!(hits.packed(), packed(expected.into_iter().take(KNOWN_SHINGLES_MAX)));
}

#[test]
fn the_filter_passes_all_hashes_of_a_set_and_few_others_whatever_their_top_bits() {
    let drawn = |shift: u64, count: u64| hashes(count).map(move |hash| hash >> shift);
    // Nearly all hashes in few groups, and a few in all.
    let set: Vec<u64> = drawn(5, 20_000).chain(drawn(2, 2_000)).chain(drawn(0, 200)).collect();
    let filter = Filter::of(&set);
    assert!(set.iter().all(|&hash| filter.may_contain(hash)));
    assert!(filter.bytes() <= 2 * set.len() + 8 * GROUPS);
    let passing = hashes(200_000)
        .skip(100_000)
        .filter(|&hash| filter.may_contain(hash))
        .count();
    assert!(passing < 6_000, "{passing}");
    assert!(!hashes(1_000).any(|hash| Filter::of(&[]).may_contain(hash)));
}

#[test]
fn few_others_pass_the_filter_and_it_is_small() {
    for count in [2_730, 2_731, 4_000, 5_461] {
        // As the smallest hashes of texts are, with top bits of 0.
        let small = |hash: u64| hash >> 8;
        let filter = Filter::of(&hashes(count).map(small).collect::<Vec<_>>());
        assert!(hashes(count).all(|hash| filter.may_contain(small(hash))));
        let others = hashes(3 * count + 100_000).skip(usize::try_from(3 * count).expect("small"));
        let passing = others.filter(|&hash| filter.may_contain(hash)).count();
        assert!(passing < 6_000, "{count}: {passing}");
        assert!(filter.bytes() as u64 <= 2 * count, "{count}");
        let table = Table::of(hashes(count).map(small).collect());
        assert!(table.bytes() as u64 <= 10 * count + 8, "{count}");
    }
}
