"""Keeps Python's collector from going through what was loaded at the start, again and again."""

import gc


def settle_heap() -> None:
    """Collect garbage once, and leave out of later collections whatever is alive now.

    Modules, words and routes live as long as the process. With them a full collection takes some 50 ms, every few
    seconds, during which no thread runs Python: one request in a hundred waited for one. Without them it takes less
    than a millisecond. Called once, when everything is loaded.
    """
    gc.collect()
    gc.freeze()
