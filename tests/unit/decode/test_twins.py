"""Articles from Avro and Protobuf, as producers' own serializers write them, against the same articles from JSON."""

from dataclasses import replace
from typing import Any

import pytest

from consumer.decode.article import FieldMap, decode
from consumer.decode.schemas.registry import BriefRetry, RegistryOptions, SchemaFormat
from consumer.decode.schemas.schema_value import schema_parser
from consumer.model.limits import DecodeLimits
from tests.registry_server import any_registry
from tests.written_articles import FIELDS, WRITERS, as_json

MAPPED = replace(FieldMap(), **FIELDS)
LIMITS = DecodeLimits()
ARTICLES: list[dict[str, Any]] = [
    {
        "id": f"a{number}",
        "source": "wire",
        "lang": "zh",
        "title": "港口",
        "body": f"渡轮在黎明时分驶入港口 {number} 😀",
        "published": published,
    }
    for number, published in enumerate(
        ("2026-01-31T08:15:30.251+00:00", "1969-12-31T23:59:59.999+00:00", "9999-12-31T23:59:59+00:00")
    )
]


@pytest.mark.parametrize("written", ["avro", "protobuf"])
def test_an_article_is_the_same_however_it_is_written(written: SchemaFormat) -> None:
    """Every field: from a map, a nested record, an enum, and a time, to the millisecond."""
    with any_registry() as url, WRITERS[written](url, f"twins-{written}") as write:
        parse = schema_parser(written, RegistryOptions(url, 10, {}, {}), BriefRetry(), LIMITS)
        for article in ARTICLES:
            twin = decode(as_json(article), MAPPED, LIMITS, "text")
            assert twin.published_at is not None
            assert decode(write(article), MAPPED, LIMITS, "text", None, parse) == twin
