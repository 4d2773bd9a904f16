"""A limit on poison: one bad record in a while is a dead letter, a feed of them is a fault that somebody has to see."""

from collections import deque

from consumer.errors import SourceError


class PoisonLimit:
    """Stops a run when more than ``share_max`` of the last ``records_min`` records, or some more, were bad."""

    def __init__(self, share_max: float, records_min: int) -> None:
        self._share_max = share_max
        self._records_min = records_min
        self._batches: deque[tuple[int, int]] = deque()
        self._records = 0
        self._bad = 0

    def see(self, records: int, bad: int) -> None:
        """Count a batch that is about to be answered; SourceError where it is too much."""
        self._batches.append((records, bad))
        self._records += records
        self._bad += bad
        while self._records - self._batches[0][0] >= self._records_min:
            gone = self._batches.popleft()
            self._records -= gone[0]
            self._bad -= gone[1]
        if self._records >= self._records_min and self._bad > self._share_max * self._records:
            raise SourceError(
                f"{self._bad} of the last {self._records} records cannot be judged, more than the share of "
                f"{self._share_max:g} that poison_share_max allows; see the dead letters for the reasons, mend the "
                "producer or the field mapping, or raise kafka.poison_share_max. Nothing of this batch was committed"
            )
