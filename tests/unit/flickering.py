"""What is out of reach for a while, as a store, a registry or a broker may be."""


class Flickering:
    """Raises ``error`` so many times, and then answers how often it was called."""

    def __init__(self, outages: int, error: Exception) -> None:
        self.outages = outages
        self.error = error
        self.calls = 0

    def call(self) -> int:
        """Fail, or answer."""
        self.calls += 1
        if self.calls <= self.outages:
            raise self.error
        return self.calls
