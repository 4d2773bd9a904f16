"""A batch is fingerprinted in pieces, and each piece is progress for the thread that waits for it."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import Fingerprinter, Fingerprints, KnownShingles, Scheme
from consumer.lifecycle.thread_progress import WorkerProgressed
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.workers import pool
from consumer.workers.pool import PIECE_CHARS_MAX, InlineFingerprinting, ThreadedFingerprinting, pieces
from consumer.workers.word_files import load_lexicon

TEXTS = ["一场大雨过后，河水上涨了。", "", "The ferry leaves at noon.", "渡船中午出发。", "short"]
LANGUAGES = ["zh", "", "en", "", ""]


@given(st.lists(st.integers(0, 2 * PIECE_CHARS_MAX // 3), max_size=8))
def test_pieces_are_the_batch(lengths: Sequence[int]) -> None:
    """In order, each once; a piece of several texts is within the limit, and there are no more pieces than needed."""
    texts = ["x" * length for length in lengths]
    found = pieces(texts)
    assert [text for piece in found for text in texts[piece]] == texts
    chars = [sum(map(len, texts[piece])) for piece in found]
    for piece, count in zip(found, chars, strict=True):
        assert count <= PIECE_CHARS_MAX or piece.stop - piece.start == 1
    for at in range(len(found) - 1):
        assert chars[at] + len(texts[found[at + 1].start]) > PIECE_CHARS_MAX


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of a batch in five pieces is what is made of it at once, and each piece was a turn."""
    turns: list[int] = []
    fingerprinting = InlineFingerprinting(Fingerprinter(Scheme(), load_lexicon()), lambda: turns.append(1))
    whole = fingerprinting.submit(TEXTS, LANGUAGES).result().fingerprints
    assert len(turns) == 1
    monkeypatch.setattr(pool, "PIECE_CHARS_MAX", 1)
    cut = fingerprinting.submit(TEXTS, LANGUAGES).result().fingerprints
    # The empty text goes with the first.
    assert len(turns) == 1 + len(TEXTS)
    assert isinstance(cut, Fingerprints)
    for field in fields(Fingerprints):
        ours, theirs = getattr(cut, field.name), getattr(whole, field.name)
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours == theirs


def test_a_batch_is_given_up_between_two_pieces() -> None:
    """Where the run is to stop."""

    def turn() -> None:
        raise Abandoned("the time is up")

    with pytest.raises(Abandoned):
        InlineFingerprinting(Fingerprinter(Scheme(), load_lexicon()), turn).submit(TEXTS, LANGUAGES)


def test_threads_share_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are computed ahead, in pieces; each is what it would be at once, and each piece is a turn."""
    monkeypatch.setattr(pool, "PIECE_CHARS_MAX", 20)
    hooks = Hooks()
    turned: list[WorkerProgressed] = []
    hooks.on(WorkerProgressed, turned.append)
    engine = Fingerprinter(Scheme(), load_lexicon())
    expected = engine.fingerprint(TEXTS, LANGUAGES)
    threads = ThreadedFingerprinting(engine, 1, hooks)
    try:
        assert threads.ahead == 2
        found = [threads.submit(TEXTS, LANGUAGES).result(60).fingerprints for _ in range(3)]
    finally:
        threads.close()
    for fingerprints in found:
        np.testing.assert_array_equal(fingerprints.codes, expected.codes)
        assert fingerprints.keywords == expected.keywords
    assert len(turned) == 3 * len(pieces(TEXTS)) > 3


def test_an_error_in_a_thread_is_that_of_the_batch() -> None:
    """As if it had been computed here."""

    class Failing(Fingerprinter):
        def fingerprint(
            self, texts: Sequence[str], languages: Sequence[str] | None = None, known: KnownShingles | None = None
        ) -> Fingerprints:
            raise ValueError("too heavy")

    threads = ThreadedFingerprinting(Failing(Scheme(), load_lexicon()), 2)
    try:
        with pytest.raises(ValueError, match="too heavy"):
            threads.submit(TEXTS, LANGUAGES).result(60)
    finally:
        threads.close()
