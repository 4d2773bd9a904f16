//! The reaches of candidates: the distances to the nearest smaller hash, or to an equal one before.

/// A candidate not yet followed by a smaller one.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: usize,
    hash: u64,
    /// The distance to the smaller or equal one before it, or to the place just before the text.
    back: usize,
}

/// The reaches of a text's candidates, which are added in order.
#[derive(Debug, Default)]
pub(super) struct Reaches {
    /// Ascending by hash.
    open: Vec<Open>,
    /// Reaches with hashes.
    known: Vec<(usize, u64)>,
}

impl Reaches {
    /// Adds a candidate.
    pub(super) fn push(&mut self, place: usize, hash: u64) {
        while let Some(last) = self.open.pop_if(|last| last.hash > hash) {
            self.known.push((last.back.min(place - last.place), last.hash));
        }
        let back = self.open.last().map_or(place + 1, |last| place - last.place);
        self.open.push(Open { place, hash, back });
    }

    /// All reaches with their hashes, in no particular order; the last stretch ends just before `end`.
    pub(super) fn all(mut self, end: usize) -> Vec<(usize, u64)> {
        let open = self.open.into_iter();
        self.known
            .extend(open.map(|last| (last.back.min(end - last.place), last.hash)));
        self.known
    }
}
