"""Decodes a Kafka message into an article.

By default the key is the article's id, and a message without a value retracts the article.
"""

from collections.abc import Callable
from typing import Final, Literal

from consumer.decode.article import check_id
from consumer.model.article import Article, Reason
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord

IdFrom = Literal["key", "value"]
DecodeValue = Callable[[bytes, str | None], Article]
"""Decodes a value into an article. The second argument is the key, if that is the id. An ``ArticleDecoder`` is one."""

_KEY: Final = "the key"


def decode_message(record: RawRecord, decode_value: DecodeValue, id_from: IdFrom, id_bytes_max: int) -> Article:
    """Decode a record from a topic. Raises ``BadRecord``, and the errors of ``decode_value``.

    With ``id_from`` "value" the key is ignored, so a message without a value cannot be a retraction.
    """
    data = record.whole()
    if id_from == "value":
        if record.is_null:
            raise BadRecord(
                Reason.NULL_VALUE, 'the message has no value; with id_from = "value" it does not say what it retracts'
            )
        return decode_value(data, None)
    key = _key(record.key, id_bytes_max)
    return Article(id=key, body=None) if record.is_null else decode_value(data, key)


def _key(key: bytes | None, id_bytes_max: int) -> str:
    if key is None:
        raise BadRecord(
            Reason.MISSING_KEY, 'the message has no key; send the id as the key, or set kafka.id_from = "value"'
        )
    try:
        article_id = key.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(Reason.INVALID_KEY, f"the key is not UTF-8: {error.reason} at byte {error.start}") from error
    check_id(article_id, _KEY, id_bytes_max)
    return article_id
