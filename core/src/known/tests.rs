//! Known shingles and the smallest ones against sets of the standard library.

use std::collections::BTreeSet;

use super::filter::GROUPS;
use super::table::number;
use super::*;
use crate::hashes::mix_64;

fn packed(hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    hashes.into_iter().flat_map(u64::to_be_bytes).collect()
}

fn hashes(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(mix_64)
}

/// Hashes as a part of a set: packed, ascending, with duplicates.
fn held(hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut hashes: Vec<u64> = hashes.into_iter().collect();
    hashes.sort_unstable();
    hashes.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn set_of(parts: impl IntoIterator<Item = Vec<u8>>) -> KnownShingles {
    let parts = parts.into_iter().map(|part| Box::new(part) as HeldHashes).collect();
    KnownShingles::new(parts).expect("hashes that ascend")
}

fn table_of(hashes: impl IntoIterator<Item = u64>) -> Table {
    Table::of(Box::new(held(hashes))).expect("hashes that ascend")
}

fn filter_of(hashes: impl IntoIterator<Item = u64>) -> Filter {
    Filter::of(&[held(hashes).as_chunks().0])
}

fn hits_of(known: &KnownShingles, hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut hits = known.hits();
    hashes.into_iter().for_each(|hash| hits.shingle(hash));
    hits.packed()
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
        let expected = packed(hashes(count).collect::<BTreeSet<_>>());
        let asked = || hashes(3 * count + 9);
        // In one part with duplicates, and in two that overlap.
        let known = set_of([held(hashes(count).chain(hashes(count / 2)))]);
        assert_eq!(hits_of(&known, asked()), expected, "{count}");
        let known = set_of([
            held(hashes(count / 2)),
            held(hashes(count).skip(1)),
            held(hashes(1.min(count))),
        ]);
        assert_eq!(hits_of(&known, asked()), expected, "{count}");
    }
    assert_eq!(hits_of(&set_of([]), hashes(99).chain([0, u64::MAX])), packed([]));
}

#[test]
fn hits_are_the_known_ones_of_a_text() {
    let even = |count| hashes(count).filter(|hash| hash % 2 == 0);
    let known = set_of([held(even(10_000))]);
    let expected: BTreeSet<u64> = even(300).collect();
    assert_eq!(hits_of(&known, hashes(300).chain(hashes(200))), packed(expected));

    let expected: BTreeSet<u64> = even(10_000).collect();
    assert!(expected.len() > KNOWN_SHINGLES_MAX);
    assert_eq!(
        hits_of(&known, hashes(10_000)),
        packed(expected.into_iter().take(KNOWN_SHINGLES_MAX))
    );
}

#[test]
fn a_table_finds_hashes_however_they_crowd() {
    let crowded = |place: u64| mix_64(place) >> (place % 60);
    for count in [0, 1, 2, 3, 9, 100, 5_000] {
        let repeated = || (0..200).map(|_| 17);
        let table = table_of((0..count).map(crowded).chain(repeated()).chain([0, u64::MAX]));
        let set: BTreeSet<u64> = (0..count).map(crowded).chain([0, 17, u64::MAX]).collect();
        for hash in (0..3 * count)
            .map(crowded)
            .chain([0, 1, 16, 17, 18, u64::MAX - 1, u64::MAX])
        {
            let found = table
                .bucket(hash)
                .of(table.hashes())
                .binary_search_by_key(&hash, number);
            assert_eq!(found.is_ok(), set.contains(&hash), "{count}: {hash}");
        }
    }
}

#[test]
fn parts_ascend_and_end_with_a_hash() {
    let refused = |part: Vec<u8>| KnownShingles::new(vec![Box::new(part)]).is_err();
    assert!(refused([2_u64, 1].into_iter().flat_map(u64::to_le_bytes).collect()));
    assert!(refused(held([1, 2])[..15].to_vec()));
    assert!(!refused(held([1, 1, 2])));
}

#[test]
fn the_filter_passes_all_hashes_of_a_set_and_few_others_whatever_their_top_bits() {
    let drawn = |shift: u64, count: u64| hashes(count).map(move |hash| hash >> shift);
    // Nearly all hashes in few groups, and a few in all.
    let set: Vec<u64> = drawn(5, 20_000).chain(drawn(2, 2_000)).chain(drawn(0, 200)).collect();
    let filter = filter_of(set.iter().copied());
    assert!(set.iter().all(|&hash| filter.may_contain(hash)));
    assert!(filter.bytes() <= 2 * set.len() + 8 * GROUPS);
    let passing = hashes(200_000)
        .skip(100_000)
        .filter(|&hash| filter.may_contain(hash))
        .count();
    assert!(passing < 6_000, "{passing}");
    assert!(!hashes(1_000).any(|hash| filter_of([]).may_contain(hash)));
}

#[test]
fn few_others_pass_the_filter_and_it_is_small() {
    for count in [2_730, 2_731, 4_000, 5_461] {
        // As the smallest hashes of texts are, with top bits of 0.
        let small = |hash: u64| hash >> 8;
        let filter = filter_of(hashes(count).map(small));
        assert!(hashes(count).all(|hash| filter.may_contain(small(hash))));
        let others = hashes(3 * count + 100_000).skip(usize::try_from(3 * count).expect("small"));
        let passing = others.filter(|&hash| filter.may_contain(hash)).count();
        assert!(passing < 6_000, "{count}: {passing}");
        assert!(filter.bytes() as u64 <= 2 * count, "{count}");
        assert!(
            table_of(hashes(count).map(small)).bytes() as u64 <= 2 * count,
            "{count}"
        );
    }
}
