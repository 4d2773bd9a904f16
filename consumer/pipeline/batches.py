"""What the loop reports about whole batches: begun, committed, measured, abandoned."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.model.article import Extracted, TimeFault
from consumer.model.dead_letter import DeadLetter
from consumer.model.record import RawBatch
from consumer.model.verdict import Outcome, Verdict


class BatchBegun(NamedTuple):
    """This batch is about to be judged."""

    batch: RawBatch


class BatchMeasured(NamedTuple):
    """What can be measured in a batch that was committed, beside its verdicts; reported before ``BatchCommitted``.

    ``outcomes`` has the source and the outcome of each article, in order. ``keyword_counts`` int64[n] has the number of
    distinct keywords of each article with a body. ``headers_lost`` counts records with headers that the client could
    not hand out unchanged, ``time_faults`` articles whose ``published_at`` could not be read, by reason,
    ``pages`` web pages by what was taken from them, ``without_text`` articles whose body is markup without any text.
    """

    records: int
    size_bytes: int
    outcomes: Sequence[tuple[str, Outcome]]
    keyword_counts: npt.NDArray[np.int64]
    headers_lost: int = 0
    time_faults: Mapping[TimeFault, int] = MappingProxyType({})
    pages: Mapping[Extracted, int] = MappingProxyType({})
    without_text: int = 0


class BatchCommitted(NamedTuple):
    """A batch was committed with these verdicts and dead letters."""

    verdicts: Sequence[Verdict]
    letters: Sequence[DeadLetter]


class BatchAbandoned(NamedTuple):
    """A batch was given up. Whoever owns its partitions reads it again."""
