"""Where the offsets of a group are."""

import pytest

from tests.chaos.kafka.leadership import place_of_offsets


@pytest.mark.parametrize(
    ("group", "place"),
    # As java.lang.String.hashCode gives them. That of the third is the smallest int, of which Kafka makes 0.
    [("", 0), ("hello", 22), ("polygenelubricants", 0), ("dupwatch", 22), ("𠮷野家", 7)],
)
def test_a_group_has_the_place_that_kafka_gives_it(group: str, place: int) -> None:
    """Of the fifty partitions that there are by default."""
    assert place_of_offsets(group, 50) == place
