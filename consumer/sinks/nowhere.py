"""A sink that keeps nothing: for runs whose result is what they leave in the store."""

from collections.abc import Sequence

from consumer.model.ports import Answer, Marks, Rejection


class Nowhere:
    """Takes everything, and says nothing of it to anybody. Dead letters are somebody else's to write."""

    def emit(self, answers: Sequence[Answer]) -> None:
        """As the port says."""

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """As the port says."""

    def flush(self) -> None:
        """As the port says."""

    def marks(self) -> Marks | None:
        """As the port says."""
        return None

    def close(self) -> None:
        """As the port says."""
