"""The addresses in URLs that network policies must let through."""

import pytest

from deploy.kubernetes.network import Place, addressed_places


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("kafka://a.kafka.svc:9092,b.kafka.svc:9093/articles,more", [Place("kafka", 9092), Place("kafka", 9093)]),
        ("hbase://gateway.hbase.svc/feed", [Place("hbase", 9090)]),
        ("hbase://gateway,other:9091/feed", [Place("", 9090), Place("", 9091)]),
        ("http://schemas.feed.svc:8081/a,https://schemas/b", [Place("", 443), Place("feed", 8081)]),
        ("postgresql://user@db.sql.svc/console", [Place("sql", 5432)]),
        ("lmdb:/data", []),
        ("-", []),
    ],
)
def test_all_addresses_of_a_url_are_found(url: str, places: list[Place]) -> None:
    """With the usual port where it names none, and without Kafka's topics."""
    assert addressed_places(url) == places
